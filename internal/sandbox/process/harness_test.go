//go:build linux

package process

import (
	"context"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox"
)

// TestCompiledHarness checks that programs return the same value whether the guest's harness is source text, is
// compiled, or was compiled and then replaced by invalid data.
func TestCompiledHarness(t *testing.T) {
	for runtime, code := range map[string]string{quickjs: "return [1, 'a'.repeat(2), typeof URL]", "python": "result = [1, 'a' * 2, 'function']"} {
		t.Run(runtime, func(t *testing.T) {
			o := Options{Warm: -1, MaxWarm: -1}
			if runtime != quickjs {
				o.Interpreters = []RuntimeInterpreter{interpreterHere(t, runtime, 0)}
			}
			b := New(o)
			defer b.Close()
			k := b.kinds[runtime]
			value := func() string {
				s, err := b.Prepare(t.Context(), sandbox.SandboxSpec{Runtime: runtime, Limits: core.DefaultLimits()})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				r, err := s.Run(context.Background(), core.CheckedProgram{Code: code, Limits: core.DefaultLimits()}, echo)
				if err != nil || r.Error != nil {
					t.Fatal(err, r.Error)
				}
				return string(r.Value)
			}
			first := value()
			if k.harness.code.Load() != nil {
				t.Error("the harness was compiled for a single program")
			}
			testenv.WaitUntil(t, "the harness is compiled", func() bool {
				if now := value(); now != first {
					t.Fatalf("got %s before the harness was compiled, and %s at first", now, first)
				}
				return k.harness.code.Load() != nil
			})
			if now := value(); now != first {
				t.Errorf("compiled %s, as text %s", now, first)
			}
			if runtime != quickjs {
				return // which looks at it after it has said that it is ready
			}
			nonsense := []byte{4, 'm', 'a', 'i', 'n', 3, 1, 2, 3}
			k.harness.code.Store(&nonsense)
			if now := value(); now != first || k.harness.code.Load() != nil {
				t.Errorf("with an invalid harness: %s, as text %s", now, first)
			}
		})
	}
}
