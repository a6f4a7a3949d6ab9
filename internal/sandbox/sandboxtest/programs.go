package sandboxtest

import (
	"encoding/json"
	"slices"
	"testing"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/guest/guesttest"
	"retort/internal/sandbox/wire"
)

// programsAtOnce is the number of programs that run concurrently.
const programsAtOnce = 8

// Programs runs the programs of package guesttest on one runtime of a backend. It checks that each ends exactly as it
// does without a sandbox. The caller closes b. A sandbox affects every program in the same way, so only some of the
// programs run unless RETORT_FULL is set. In process sandboxes, a quarter of the programs run on QuickJS, half of
// them on Python, and another quarter divided among Node, Deno and Bun. Containers, user-space kernels and virtual
// machines each run a different eighth of the programs. Emulated machines run a quarter of their eighth. The tests of
// packages guest and guest/python run what is missing here, without a sandbox: all programs on QuickJS, and on each
// other runtime the programs that process sandboxes leave out.
func Programs(t *testing.T, b sandbox.Backend, runtime string) { ProgramsSlow(t, b, runtime, 1) }

// ProgramsSlow works like Programs for a backend with an emulated processor that is slower by factor.
func ProgramsSlow(t *testing.T, b sandbox.Backend, runtime string, factor int) {
	s := &backendSuite{runtime: runtime, slower: factor}
	of, part := 4, 0
	if runtime == "python" {
		of = 2
	}
	if parts := map[string]int{"node": 3, "deno": 7, "bun": 11}; parts[runtime] > 0 {
		of, part = 12, parts[runtime]
	}
	if n := slices.Index([]int{sandbox.Container, sandbox.UserKernel, sandbox.Machine}, b.Capabilities().Strength); n >= 0 {
		of, part = 8, n
	}
	if factor > 1 {
		of *= 4
	}
	programs := guesttest.ProgramSuite{Runtime: runtime, AtOnce: programsAtOnce, Of: of, Part: part, Run: func(t testing.TB, p core.CheckedProgram, h wire.CallHost) wire.ProgramEnd {
		t.Helper()
		return s.runToEnd(t, b, p, h)
	}}
	if runtime == "python" {
		const version = "import platform\nplatform.python_version()"
		end := s.runToEnd(t, b, core.CheckedProgram{Code: version}, echo)
		if err := json.Unmarshal(end.Value, &programs.Version); err != nil {
			t.Fatalf("%s %v: %v", end.Status, end.Error, err)
		}
	}
	programs.RunPrograms(t)
}

// runToEnd runs a program in its own sandbox. It returns how the program ended, without the warning that a weak
// backend adds to every report.
func (s *backendSuite) runToEnd(t testing.TB, b sandbox.Backend, p core.CheckedProgram, h wire.CallHost) wire.ProgramEnd {
	t.Helper()
	sandbox := s.prepareSandbox(t, b, p.Limits)
	p.ID, p.Language, p.Limits = "test", s.makeProgram(programText{}, p.Limits).Language, s.completeLimits(p.Limits)
	defer sandbox.Close()
	r, err := sandbox.Run(t.Context(), p, h)
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	about := b.Capabilities().Warning
	warnings := slices.DeleteFunc(r.Warnings, func(w string) bool { return about != "" && w == about })
	return wire.ProgramEnd{Status: r.Status, Value: r.Value, Error: r.Error, Output: r.Output, Warnings: warnings}
}
