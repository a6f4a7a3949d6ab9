package gvisor

import (
	"fmt"

	"retort/internal/core"
	"retort/internal/sandbox/exitcause"
)

// isOutOfMemory reports whether the runtime's standard error states that it ran out of memory.
func (r *guestRoot) isOutOfMemory(stderr string) bool {
	if r.i != nil {
		return r.i.Exhausted(stderr)
	}
	return exitcause.OutOfMemory(stderr)
}

// exitError returns the error for a container that ended without exceeding a limit. It derives the signal that ended
// the program from runsc's exit status, which follows the convention of shells.
func (g *guestContainer) exitError(file string) *core.Error {
	state := g.cmd.ProcessState
	x := exitcause.RuntimeExit{
		Op: Name + ".run", Subject: "the sandbox's process", State: state.String(), Killed: !state.Exited(),
		Stderr: g.stderr.String(), File: file, Runtime: g.root.runtime, Native: g.root.i != nil,
	}
	if signal, ok := exitcause.OfShell(state.ExitCode()); ok {
		x.Signal, x.State = signal, fmt.Sprintf("signal: %v", signal)
	}
	if g.root.i != nil {
		x.Crashed = g.root.i.Crashed
	}
	return exitcause.ExplainExit(x)
}
