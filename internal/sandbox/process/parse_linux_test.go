package process

import (
	"context"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox"
)

// TestParsedChild checks that a child that has parsed a program runs that program once, and no other program.
func TestParsedChild(t *testing.T) {
	testenv.Need(t, "python")
	b := New(Options{Interpreters: []RuntimeInterpreter{interpreterHere(t, "python", 0)}, Warm: -1})
	defer b.Close()
	b.parsed.within = testenv.Patience
	const code = "result = 6 * 7"
	parsed, err := b.Parse(t.Context(), "python", code)
	if err != nil || !strings.Contains(string(parsed.Known), "{") || len(parsed.Tree) == 0 {
		t.Fatalf("%s, %v", parsed.Known, err)
	}
	if told, err := parsed.Compiled(); err != nil || string(told) != "{}" {
		t.Fatalf("%s, %v", told, err)
	}
	waiting := b.parsed.list[0].child
	prepare := func(code string) *childSandbox {
		s, err := b.Prepare(t.Context(), sandbox.SandboxSpec{Runtime: "python", Limits: core.DefaultLimits(), Code: code})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s.(*childSandbox)
	}
	if s := prepare("result = 1"); s.child == waiting {
		t.Error("another program got the child")
	}
	s := prepare(code)
	if s.child != waiting {
		t.Error("the program did not get the child that has parsed it")
	}
	r, err := s.Run(context.Background(), core.CheckedProgram{Language: core.Python, Code: code, Limits: core.DefaultLimits()}, echo)
	if err != nil || string(r.Value) != "42" {
		t.Errorf("%v, %s %v %s", err, r.Status, r.Error, r.Value)
	}
	if s := prepare(code); s.child == waiting {
		t.Error("the child was given out twice")
	}
}

func parse(t *testing.T, b *Backend, code string) {
	t.Helper()
	parsed, err := b.Parse(t.Context(), "python", code)
	if err == nil {
		_, err = parsed.Compiled()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestParsedChildrenDoNotStay(t *testing.T) {
	testenv.Need(t, "python")
	b := New(Options{Interpreters: []RuntimeInterpreter{interpreterHere(t, "python", 0)}, Warm: -1})
	b.parsed.within = testenv.Patience
	parse(t, b, "1")
	waiting := b.parsed.list[0]
	waiting.end.Reset(0) // as if its time were up
	testenv.Receive(t, waiting.child.exited, "the end of a child whose program is never run")
	for i := range maxParsed + 1 {
		parse(t, b, strings.Repeat("1\n", i+1))
	}
	if n := len(b.parsed.list); n != maxParsed {
		t.Errorf("%d children wait, want %d", n, maxParsed)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if _, err := b.Parse(t.Context(), "python", "1"); err == nil {
		t.Error("a closed backend parses")
	}
}
