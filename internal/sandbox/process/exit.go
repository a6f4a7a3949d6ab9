package process

import (
	"os"
	"syscall"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox/exitcause"
	"retort/internal/sandbox/wire"
)

// Explain implements warmpool.Guest.
func (c *guestChild) Explain(end *wire.ProgramEnd, p core.CheckedProgram) {
	<-c.exited
	state, stderr := c.cmd.ProcessState, c.stderr.String()
	switch {
	case c.began.IsZero():
		end.Error = c.startError()
	case c.oomKilled || c.kind.exhausted(stderr) || c.exceededMemory(p.Limits):
		stop := wire.MemoryStop(p.Limits.Memory)
		end.Status, end.Error = stop.Status, stop.Reason
	case state.UserTime()+state.SystemTime() >= processorTime(p.Limits):
		end.Status = core.StatusTimeout
		end.Error = core.Errorf(core.KindLimit, "process.run", "the program used more than its %v of processor time", processorTime(p.Limits)).
			WithHint("make fewer or smaller steps, or use a longer timeout_ms")
	default:
		end.Status, end.Error = core.StatusError, c.exitError(state, stderr, p.Name)
	}
}

// startError returns the error for a child that ended before a program arrived, or nil if the engine killed it without
// standard error that says more.
func (c *guestChild) startError() *core.Error {
	state, detail := c.cmd.ProcessState, c.stderrSuffix()
	switch {
	case c.oomKilled || signalOf(state) != syscall.SIGKILL:
		return core.Errorf(core.KindRuntime, "process.run", "the sandbox's process ended (%s)%s", state, detail)
	case detail != "":
		return core.Errorf(core.KindRuntime, "process.run", "the sandbox's process wrote%s", detail)
	}
	return nil
}

// exitError returns the error for a child that ended without exceeding a limit.
func (c *guestChild) exitError(state *os.ProcessState, stderr, file string) *core.Error {
	signal := signalOf(state)
	return exitcause.ExplainExit(exitcause.RuntimeExit{
		Op: "process.run", Subject: "the sandbox's process", State: state.String(), Signal: signal,
		Killed: signal == syscall.SIGKILL, Stderr: stderr, File: file, Runtime: c.kind.runtime, Native: c.kind.native,
		Crashed: c.kind.crashed,
	})
}

// signalOf returns the signal that killed a process, or -1 if no signal has killed it.
func signalOf(state *os.ProcessState) syscall.Signal {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return -1
	}
	return status.Signal()
}

// processorTime returns how much processor time, summed over all processors, a child may use before the kernel kills
// it. It is well above the program's limit, which the engine enforces first.
func processorTime(l core.Limits) time.Duration {
	return l.Computing.Truncate(time.Second)*2 + 10*time.Second
}
