package process

import (
	"context"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox"
)

// TestWaitingWakesNobody checks that a child process sleeps, instead of waking up repeatedly, while its program waits
// for the result of a call. This matters because many programs may wait at the same time.
func TestWaitingWakesNobody(t *testing.T) {
	for _, runtime := range testedRuntimes {
		t.Run(runtime, func(t *testing.T) {
			o := optionsFor(t, runtime)
			o.Warm = -1
			b := newBackend(o, nil).open()
			defer b.Close()
			l := core.DefaultLimits()
			s, err := b.Prepare(t.Context(), sandbox.SandboxSpec{Runtime: runtime, Limits: l})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			pid := childOf(s).cmd.Process.Pid
			// After a quick answer a guest waits in another way.
			code := "await callMCPTool('x'); await callMCPTool('x')"
			if runtime == "python" {
				code = "call_mcp_tool('x'); call_mcp_tool('x')"
			}
			var calls int
			r, err := s.Run(t.Context(), core.CheckedProgram{Code: code, Limits: l}, sandbox.HostFunc(func(context.Context, core.ToolCall) (core.CallResult, error) {
				if calls++; calls == 1 {
					return core.CallResult{Value: []byte("1")}, nil
				}
				if !testenv.FallsAsleep(pid) {
					t.Error("the process does not fall asleep while its program waits")
				}
				return core.CallResult{Value: []byte("1")}, nil
			}))
			if err != nil || r.Status != core.StatusOK {
				t.Fatalf("%v, %s %v", err, r.Status, r.Error)
			}
		})
	}
}
