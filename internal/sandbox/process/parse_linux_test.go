package process

import (
	"context"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox"
)

// TestParsedChild checks that a child of Python that has parsed a program can run that program afterwards.
func TestParsedChild(t *testing.T) {
	testenv.Need(t, "python")
	b := newBackend(Options{Interpreters: []RuntimeInterpreter{interpreterHere(t, "python", 0)}, Once: true}, nil)
	o := b.poolOptions()
	o.KeepParsed = testenv.Patience
	b.Open(o)
	defer b.Close()
	const code = "result = 6 * 7"
	parsed, err := b.Parse(t.Context(), "python", code)
	if err != nil || !strings.Contains(string(parsed.Known), "{") || len(parsed.Tree) == 0 {
		t.Fatalf("%s, %v", parsed.Known, err)
	}
	if told, err := parsed.Compiled(); err != nil || string(told) != "{}" {
		t.Fatalf("%s, %v", told, err)
	}
	s, err := b.Prepare(t.Context(), sandbox.SandboxSpec{Runtime: "python", Limits: core.DefaultLimits(), Code: code})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if n := b.kinds["python"].harness.children.Load(); n != 1 {
		t.Errorf("%d children were started, want only the one that has parsed the program", n)
	}
	r, err := s.Run(context.Background(), core.CheckedProgram{Language: core.Python, Code: code, Limits: core.DefaultLimits()}, echo)
	if err != nil || string(r.Value) != "42" {
		t.Errorf("%v, %s %v %s", err, r.Status, r.Error, r.Value)
	}
}
