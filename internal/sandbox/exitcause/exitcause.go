// Package exitcause explains why a guest ended without reporting the end of its program. It converts an exit status,
// a signal and standard error to the error that models and people read.
package exitcause

import (
	"strings"
	"syscall"
	"unicode"

	"retort/internal/core"
)

// RuntimeExit describes how the process of a guest ended. The backend has already checked that no limit was exceeded.
type RuntimeExit struct {
	Op      string         // operation to name in the error, such as "docker.run"
	Subject string         // what has ended, such as "the container"
	State   string         // how it ended, in words, such as "exit status 3"
	Signal  syscall.Signal // number of the signal that ended the process; 0 or less if no signal did
	Killed  bool           // something outside the engine ended the process
	Stderr  string         // standard error of the runtime
	File    string         // file name of the program, as the runtime knows it
	Runtime string         // name of the runtime, such as "python"
	// Native is set for runtimes whose programs can make any system call, so that they can end their own process.
	Native bool
	// Crashed parses standard error for the line at which the program crashed, and for whether the call stack was too
	// deep. It may be nil.
	Crashed func(stderr, file string) (line int, deep bool)
}

const (
	effects     = "calls that the program made before may have taken effect"
	stackHint   = "look for endless recursion, or use a loop; a higher recursion limit does not enlarge the stack"
	crashHint   = "usually the cause is endless recursion, or values nested too deeply: use loops and flat values; " + effects
	killedHint  = "the machine may be short of memory; " + effects
	exitHint    = "a program must end with its last statement, not by exiting its process; " + effects
	restartHint = effects + "; run it again in smaller steps"
)

// Effects is a text for hints of errors. It warns that the program's earlier calls may have taken effect.
const Effects = effects

// ExplainExit returns an error that describes why the process of a guest ended. It never returns nil.
func ExplainExit(x RuntimeExit) *core.Error {
	detail := "(" + x.State + ")" + FirstStderrLine(x.Stderr)
	switch {
	case isCrash(x.Signal):
		return x.crashError(detail)
	case x.Killed:
		return core.Errorf(core.KindRuntime, x.Op, "%s was killed from outside %s", x.Subject, detail).WithHint(killedHint)
	}
	e := core.Errorf(core.KindRuntime, x.Op, "%s ended unexpectedly %s", x.Subject, detail)
	if x.Native && x.Signal <= 0 && FirstStderrLine(x.Stderr) == "" {
		return e.WithHint(exitHint)
	}
	return e.WithHint(restartHint)
}

// crashError returns the error for a crash of the runtime. Its hint blames the program: usually the program has
// exhausted the stack, which not every runtime detects.
func (x RuntimeExit) crashError(detail string) *core.Error {
	line, deep := 0, false
	if x.Crashed != nil {
		line, deep = x.Crashed(x.Stderr, x.File)
	}
	e := core.Errorf(core.KindRuntime, x.Op, "the program crashed %s %s", x.Runtime, detail).WithHint(crashHint)
	if deep {
		e = core.Errorf(
			core.KindRuntime, x.Op, "the call stack overflowed: functions called each other until the stack of %s was used up", x.Runtime,
		).WithHint(stackHint)
	}
	if e.Line = line; line > 0 {
		e.Column = 1
	}
	return e
}

// isCrash reports whether the signal is one that a fault in the process itself causes, such as a segmentation fault.
func isCrash(s syscall.Signal) bool {
	switch s {
	case syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGILL, syscall.SIGTRAP, syscall.SIGABRT, syscall.SIGFPE:
		return true
	}
	return false
}

// FirstStderrLine returns the first line of standard error that contains letters, preceded by a colon and a blank.
// Callers append it to a message. It returns "" if there is no such line.
func FirstStderrLine(stderr string) string {
	for line := range strings.Lines(stderr) {
		if line = strings.TrimSpace(line); strings.ContainsFunc(line, unicode.IsLetter) {
			return ": " + line
		}
	}
	return ""
}

// OutOfMemory reports whether the standard error of a Go program states that it ran out of memory. Interpreters have
// their own functions for that.
func OutOfMemory(stderr string) bool {
	return strings.Contains(stderr, "out of memory") || strings.Contains(stderr, "cannot allocate memory")
}

// OfShell returns the signal that killed a process, given an exit status that follows the convention of shells: 128
// plus the signal. ok is false for other statuses.
func OfShell(code int) (signal syscall.Signal, ok bool) {
	if code > 128 {
		return syscall.Signal(code - 128), true
	}
	return 0, false
}
