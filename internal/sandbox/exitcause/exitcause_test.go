package exitcause

import (
	"strings"
	"syscall"
	"testing"
)

func TestExplain(t *testing.T) {
	crashed := func(stderr, file string) (int, bool) {
		return strings.Count(stderr, file), strings.Contains(stderr, "deep")
	}
	base := RuntimeExit{Op: "test.run", Subject: "the sandbox's process", Runtime: "python", File: "p.py", Crashed: crashed}
	for name, c := range map[string]struct {
		change     func(*RuntimeExit)
		want, hint string
		line       int
	}{
		"fault": {func(x *RuntimeExit) {
			x.Signal, x.State, x.Stderr = syscall.SIGSEGV, "signal: segmentation fault", "p.py\n"
		}, "the program crashed python (signal: segmentation fault): p.py", crashHint, 1},
		"stack":  {func(x *RuntimeExit) { x.Signal, x.Stderr = syscall.SIGSEGV, "deep" }, "the call stack overflowed: functions called each other until the stack of python was used up", stackHint, 0},
		"killed": {func(x *RuntimeExit) { x.Signal, x.State, x.Killed = syscall.SIGKILL, "signal: killed", true }, "the sandbox's process was killed from outside (signal: killed)", killedHint, 0},
		"exit":   {func(x *RuntimeExit) { x.State, x.Native = "exit status 3", true }, "the sandbox's process ended unexpectedly (exit status 3)", exitHint, 0},
		"says":   {func(x *RuntimeExit) { x.State, x.Native, x.Stderr = "exit status 1", true, "\n--\n fatal: x\n" }, "the sandbox's process ended unexpectedly (exit status 1): fatal: x", restartHint, 0},
		"guest":  {func(x *RuntimeExit) { x.State = "exit status 2" }, "the sandbox's process ended unexpectedly (exit status 2)", restartHint, 0},
		"signal": {func(x *RuntimeExit) { x.State, x.Signal, x.Native = "signal: terminated", syscall.SIGTERM, true }, "the sandbox's process ended unexpectedly (signal: terminated)", restartHint, 0},
	} {
		x := base
		c.change(&x)
		if e := ExplainExit(x); e.Message != c.want || e.Hint != c.hint || e.Line != c.line {
			t.Errorf("%s: %s (%s), line %d", name, e.Message, e.Hint, e.Line)
		}
	}
}

func TestOfShell(t *testing.T) {
	if s, ok := OfShell(139); !ok || s != syscall.SIGSEGV {
		t.Error(s, ok)
	}
	for _, code := range []int{-1, 0, 1, 128} {
		if s, ok := OfShell(code); ok {
			t.Error(code, s)
		}
	}
}
