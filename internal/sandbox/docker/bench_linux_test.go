//go:build amd64 || arm64

package docker

import (
	"context"
	"testing"

	"retort/internal/core"
	"retort/internal/sandbox"
)

// BenchmarkSandbox measures a program in a newly started container, in a container that was waiting, and with a
// thousand calls.
func BenchmarkSandbox(b *testing.B) {
	for _, runner := range []string{"runc", "runsc"} {
		for name, test := range map[string]struct {
			warm int
			code string
		}{"cold": {-1, "return 1"}, "pool": {4, "return 1"}, "calls": {4, "for (let i = 0; i < 1000; i++) await callMCPTool('x')"}} {
			b.Run(runner+"/"+name, func(b *testing.B) {
				o := options(b, runner)
				o.Warm, o.MaxWarm = test.warm, test.warm
				backend := New(o)
				defer backend.Close()
				once(b, backend, "return 1")
				for b.Loop() {
					b.StopTimer()
					if test.warm > 0 {
						await(b, backend)
					}
					b.StartTimer()
					once(b, backend, test.code)
				}
			})
		}
	}
}

// await waits until a container is ready for a program. It takes a container from the backend's pool and gives it back
// unused.
func await(b *testing.B, backend sandbox.Backend) {
	s, err := backend.Prepare(b.Context(), sandbox.SandboxSpec{Runtime: quickjs})
	if err != nil {
		b.Fatal(err)
	}
	_ = s.Close()
}

func once(b *testing.B, backend sandbox.Backend, code string) {
	s, err := backend.Prepare(b.Context(), sandbox.SandboxSpec{Runtime: quickjs, Limits: core.DefaultLimits()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	r, err := s.Run(b.Context(), core.CheckedProgram{Code: code}, sandbox.HostFunc(nothing))
	if err != nil || r.Status != core.StatusOK {
		b.Fatal(err, r.Status, r.Error)
	}
}

func nothing(context.Context, core.ToolCall) (core.CallResult, error) {
	return core.CallResult{Value: []byte("1")}, nil
}
