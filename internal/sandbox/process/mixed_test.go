//go:build linux

package process

import (
	"context"
	"sync"
	"testing"
	"time"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox"
)

// ending holds a program, in JavaScript and in Python, and how it must end.
type ending struct {
	js, py string
	limits core.Limits
	status core.OutcomeStatus
	// during is called after the program has made a call. It may be nil.
	during func(s sandbox.Sandbox, cancel func())
}

func endings() []ending {
	cancelled := func(_ sandbox.Sandbox, cancel func()) { cancel() }
	closed := func(s sandbox.Sandbox, _ func()) { _ = s.Close() }
	killed := func(s sandbox.Sandbox, _ func()) { _ = childOf(s).cmd.Process.Kill() }
	return []ending{
		{js: "return 1", py: "result = 1", status: core.StatusOK},
		{js: "await callMCPTool('x'); return 1", py: "call_mcp_tool('x')", status: core.StatusOK},
		{js: "null.x", py: "None.x", status: core.StatusError},
		{js: "for (;;);", py: "while True: pass", limits: core.Limits{Timeout: 50 * time.Millisecond}, status: core.StatusTimeout},
		{js: "globalThis.a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))", py: "a = []\nwhile True: a.append(b'x' * (1 << 20))", limits: core.Limits{Memory: 32 << 20, Result: 1 << 20}, status: core.StatusMemoryLimit},
		{js: "for (;;) console.log('x'.repeat(1000))", py: "while True: print('x' * 1000)", limits: core.Limits{Output: 5000}, status: core.StatusOutputLimit},
		{js: "for (;;) await callMCPTool('x')", py: "while True: call_mcp_tool('x')", limits: core.Limits{ToolCalls: 5}, status: core.StatusCallLimit},
		{js: "await callMCPTool('x'); await sleep(1e6)", py: "call_mcp_tool('x')\nawait sleep(1e6)", status: core.StatusCancelled, during: cancelled},
		{js: "await callMCPTool('x'); for (;;);", py: "call_mcp_tool('x')\nwhile True: pass", status: core.StatusCancelled, during: closed},
		{js: "await callMCPTool('x'); for (;;);", py: "call_mcp_tool('x')\nwhile True: pass", status: core.StatusError, during: killed},
	}
}

// TestMixed checks that programs that end in every way, 32 at a time on all runtimes, end as expected and leak
// nothing. Unless RETORT_FULL is set, it runs half of the combinations of ending and runtime, because TestContract
// covers every limit on every runtime.
func TestMixed(t *testing.T) {
	var o Options
	runtimes := []string{quickjs, quickjs} // twice, since its children start fast
	for _, name := range testedRuntimes[1:] {
		t.Run("with "+name, func(t *testing.T) {
			o.Interpreters = append(o.Interpreters, interpreterHere(t, name, core.DefaultLimits().Memory))
			runtimes = append(runtimes, name)
		})
	}
	testenv.CheckLeaks(t)
	b := New(o)
	ends := endings()
	programs, step := len(runtimes)*len(ends), 2
	if testenv.Full() {
		programs, step = 8*programs, 1
	}
	next := make(chan [2]int)
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for pair := range next {
				endOne(t, b, runtimes[pair[0]], ends[pair[1]])
			}
		})
	}
	for i := range programs {
		runtime, end := i%len(runtimes), i/len(runtimes)%len(ends)
		if (runtime+end)%step == 0 {
			next <- [2]int{runtime, end}
		}
	}
	close(next)
	all.Wait()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func endOne(t *testing.T, b *Backend, runtime string, e ending) {
	l := e.limits.WithDefaults(core.Limits{Timeout: testenv.Patience}).WithDefaults(core.DefaultLimits())
	s, err := b.Prepare(t.Context(), sandbox.SandboxSpec{Runtime: runtime, Limits: l})
	if err != nil {
		t.Error(err)
		return
	}
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	code := e.js
	if runtime == "python" {
		code = e.py
	}
	host := sandbox.HostFunc(func(_ context.Context, c core.ToolCall) (core.CallResult, error) {
		if e.during != nil {
			go e.during(s, cancel)
		}
		return core.CallResult{Value: c.Arguments}, nil
	})
	r, err := s.Run(ctx, core.CheckedProgram{Code: code, Limits: l}, host)
	if err != nil || r.Status != e.status {
		t.Errorf("%s: %q: %v, %s %v, want %s", runtime, code, err, r.Status, r.Error, e.status)
	}
}
