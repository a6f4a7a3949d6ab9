package gvisor

import (
	"fmt"
	"strings"
	"syscall"

	"retort/internal/core"
)

const (
	effects     = "calls that the program had made before may have had their effects"
	stackHint   = "look for a recursion without an end, or use a loop; a higher limit of recursion does not make the stack larger"
	crashHint   = "most often that is a recursion without an end, or values nested too deeply: use loops and flat values; " + effects
	killedHint  = "the machine may be short of memory; " + effects
	exitHint    = "a program ends with its last statement, not by ending its process; " + effects
	restartHint = effects + "; run it again, in smaller steps"
)

// exhausted reports whether the runtime's standard error says that it ran out of memory.
func (r *root) exhausted(stderr string) bool {
	if r.i != nil {
		return r.i.Exhausted(stderr)
	}
	return strings.Contains(stderr, "out of memory") || strings.Contains(stderr, "cannot allocate memory")
}

// death returns the error for the end of a container that exceeded no limit. Like a shell, runsc reports in its exit
// status which signal ended the program.
func (g *container) death(file string) *core.Error {
	state := g.cmd.ProcessState
	if !state.Exited() {
		return core.Errorf(core.KindRuntime, Name+".run", "the sandbox was ended from outside (%s)%s", state, g.complaint()).WithHint(killedHint)
	}
	code := state.ExitCode()
	words := fmt.Sprintf("(exit status %d)%s", code, g.complaint())
	if code > 128 {
		words = fmt.Sprintf("(signal: %v)%s", syscall.Signal(code-128), g.complaint())
	}
	switch syscall.Signal(code - 128) {
	case syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGILL, syscall.SIGTRAP, syscall.SIGABRT, syscall.SIGFPE:
		return g.crash(words, file)
	}
	e := core.Errorf(core.KindRuntime, Name+".run", "the sandbox's process ended unexpectedly %s", words)
	if g.root.i != nil && g.complaint() == "" {
		return e.WithHint(exitHint)
	}
	return e.WithHint(restartHint)
}

// crash returns the error for a crash of the runtime, which a program can cause.
func (g *container) crash(words, file string) *core.Error {
	line, deep := 0, false
	if g.root.i != nil && g.root.i.Crashed != nil {
		line, deep = g.root.i.Crashed(g.stderr.String(), file)
	}
	e := core.Errorf(core.KindRuntime, Name+".run", "the program crashed %s %s", g.root.runtime, words).WithHint(crashHint)
	if deep {
		e = core.Errorf(core.KindRuntime, Name+".run", "the call stack overflowed: functions called each other until the stack of %s was gone", g.root.runtime).WithHint(stackHint)
	}
	if e.Line = line; line > 0 {
		e.Column = 1
	}
	return e
}
