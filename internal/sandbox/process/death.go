package process

import (
	"os"
	"syscall"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox/wire"
)

const (
	effects     = "calls that the program had made before may have had their effects"
	stackHint   = "look for a recursion without an end, or use a loop; a higher limit of recursion does not make the stack larger"
	crashHint   = "most often that is a recursion without an end, or values nested too deeply: use loops and flat values; " + effects
	killedHint  = "the machine may be short of memory; " + effects
	exitHint    = "a program ends with its last statement, not by ending its process; " + effects
	restartHint = effects + "; run it again, in smaller steps"
)

// explain sets the end of a program whose child exited by itself.
func (s *childSandbox) explain(end *wire.End, p core.Program) {
	c := s.child
	<-c.exited
	state, stderr := c.cmd.ProcessState, c.stderr.String()
	switch {
	case c.starved || s.kind.exhausted(stderr) || c.outgrew(p.Limits):
		stop := wire.MemoryStop(p.Limits.Memory)
		end.Status, end.Error = stop.Status, stop.Reason
	case state.UserTime()+state.SystemTime() >= processorTime(p.Limits):
		end.Status = core.StatusTimeout
		end.Error = core.Errorf(core.KindLimit, "process.run", "the program used more than its %v of processor time", processorTime(p.Limits)).
			WithHint("make fewer or smaller steps, or ask for a longer timeout_ms")
	default:
		end.Status, end.Error = core.StatusError, s.death(state, stderr, p.Name)
	}
}

// death returns the error for the end of a child that exceeded no limit.
func (s *childSandbox) death(state *os.ProcessState, stderr, file string) *core.Error {
	words := "(" + state.String() + ")" + s.child.complaint()
	switch signalOf(state) {
	case syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGILL, syscall.SIGTRAP, syscall.SIGABRT, syscall.SIGFPE:
		return s.crash(words, stderr, file)
	case syscall.SIGKILL:
		return core.Errorf(core.KindRuntime, "process.run", "the sandbox's process was ended from outside %s", words).WithHint(killedHint)
	}
	e := core.Errorf(core.KindRuntime, "process.run", "the sandbox's process ended unexpectedly %s", words)
	if state.Exited() && s.kind.native && s.child.complaint() == "" {
		return e.WithHint(exitHint)
	}
	return e.WithHint(restartHint)
}

// crash returns the error for a crash of the runtime. A program can cause one: not every runtime detects that its
// stack is exhausted.
func (s *childSandbox) crash(words, stderr, file string) *core.Error {
	line, deep := 0, false
	if s.kind.crashed != nil {
		line, deep = s.kind.crashed(stderr, file)
	}
	e := core.Errorf(core.KindRuntime, "process.run", "the program crashed %s %s", s.kind.runtime, words).WithHint(crashHint)
	if deep {
		e = core.Errorf(core.KindRuntime, "process.run", "the call stack overflowed: functions called each other until the stack of %s was gone", s.kind.runtime).WithHint(stackHint)
	}
	if e.Line = line; line > 0 {
		e.Column = 1
	}
	return e
}

// signalOf returns the signal that ended a process, or -1.
func signalOf(state *os.ProcessState) syscall.Signal {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return -1
	}
	return status.Signal()
}

// processorTime returns the total processor time that a program may use on all processors.
func processorTime(l core.Limits) time.Duration {
	return l.Computing.Truncate(time.Second)*2 + 10*time.Second
}
