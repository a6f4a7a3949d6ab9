package process

import (
	"os"
	"syscall"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox/exitcause"
	"retort/internal/sandbox/wire"
)

// explainExit sets the status and error in the argument end, for a program whose child exited by itself.
func (s *childSandbox) explainExit(end *wire.ProgramEnd, p core.CheckedProgram) {
	c := s.child
	<-c.exited
	state, stderr := c.cmd.ProcessState, c.stderr.String()
	switch {
	case c.oomKilled || s.kind.exhausted(stderr) || c.exceededMemory(p.Limits):
		stop := wire.MemoryStop(p.Limits.Memory)
		end.Status, end.Error = stop.Status, stop.Reason
	case state.UserTime()+state.SystemTime() >= processorTime(p.Limits):
		end.Status = core.StatusTimeout
		end.Error = core.Errorf(core.KindLimit, "process.run", "the program used more than its %v of processor time", processorTime(p.Limits)).
			WithHint("make fewer or smaller steps, or use a longer timeout_ms")
	default:
		end.Status, end.Error = core.StatusError, s.exitError(state, stderr, p.Name)
	}
}

// exitError returns the error for a child that ended without exceeding a limit.
func (s *childSandbox) exitError(state *os.ProcessState, stderr, file string) *core.Error {
	signal := signalOf(state)
	return exitcause.ExplainExit(exitcause.RuntimeExit{
		Op: "process.run", Subject: "the sandbox's process", State: state.String(), Signal: signal,
		Killed: signal == syscall.SIGKILL, Stderr: stderr, File: file, Runtime: s.kind.runtime, Native: s.kind.native,
		Crashed: s.kind.crashed,
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
