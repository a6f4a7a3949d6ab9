//go:build linux

package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"retort/internal/pipeline/isolate"
	"retort/internal/run"
	"retort/internal/testenv"
)

// ending is a program in both languages, and how it ends.
type ending struct {
	js, py string
	limits run.Limits
	status run.Status
	during func(s isolate.Sandbox, cancel func()) // what is done to it meanwhile
}

func endings() []ending {
	const soon = 100 * time.Millisecond
	later := func(do func(s isolate.Sandbox, cancel func())) func(isolate.Sandbox, func()) {
		return func(s isolate.Sandbox, cancel func()) { time.AfterFunc(soon, func() { do(s, cancel) }) }
	}
	return []ending{
		{js: "return 1", py: "result = 1", status: run.StatusOK},
		{js: "await callMCPTool('x'); return 1", py: "call_mcp_tool('x')", status: run.StatusOK},
		{js: "null.x", py: "None.x", status: run.StatusError},
		{js: "for (;;);", py: "while True: pass", limits: run.Limits{Timeout: soon}, status: run.StatusTimeout},
		{js: "globalThis.a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))", py: "a = []\nwhile True: a.append(b'x' * (1 << 20))", limits: run.Limits{Memory: 32 << 20, Result: 1 << 20}, status: run.StatusMemoryLimit},
		{js: "for (;;) console.log('x'.repeat(1000))", py: "while True: print('x' * 1000)", limits: run.Limits{Output: 5000}, status: run.StatusOutputLimit},
		{js: "for (;;) await callMCPTool('x')", py: "while True: call_mcp_tool('x')", limits: run.Limits{ToolCalls: 5}, status: run.StatusCallLimit},
		{js: "await sleep(1e6)", py: "await sleep(1e6)", status: run.StatusCancelled, during: later(func(_ isolate.Sandbox, cancel func()) { cancel() })},
		{js: "for (;;);", py: "while True: pass", status: run.StatusCancelled, during: later(func(s isolate.Sandbox, _ func()) { _ = s.Close() })},
		{js: "for (;;);", py: "while True: pass", status: run.StatusError, during: later(func(s isolate.Sandbox, _ func()) { _ = s.(*sandbox).child.cmd.Process.Kill() })},
	}
}

// TestMixed runs five hundred programs, 32 at once, on all runtimes there are,
// which end in every way, and counts what is left of them.
func TestMixed(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var o Options
	runtimes := []string{quickjs, quickjs, quickjs, quickjs, quickjs, quickjs} // more of those whose children start fast
	for _, name := range everywhere[1:] {
		t.Run("with "+name, func(t *testing.T) {
			o.Interpreters = append(o.Interpreters, interpreterHere(t, name, run.DefaultLimits().Memory))
			if runtimes = append(runtimes, name); name == "python" {
				runtimes = append(runtimes, name, name)
			}
		})
	}
	for end := time.Now().Add(5 * time.Second); !strings.Contains(leftovers(t), "children []") && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond) // those of the tests before
	}
	before := leftovers(t)
	b := New(o)
	ends := endings()
	var all sync.WaitGroup
	for worker := range 32 {
		all.Go(func() {
			for i := worker; i < 500; i += 32 {
				endOne(t, b, runtimes[i%len(runtimes)], ends[i/len(runtimes)%len(ends)])
			}
		})
	}
	all.Wait()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		now := leftovers(t)
		if now == before {
			break
		}
		if time.Now().After(end) {
			t.Errorf("left: %s\nbefore: %s", now, before)
			break
		}
	}
}

func endOne(t *testing.T, b *Backend, runtime string, e ending) {
	l := e.limits.Or(run.Limits{Timeout: 60 * time.Second}).Or(run.DefaultLimits())
	s, err := b.Prepare(context.Background(), isolate.Spec{Runtime: runtime, Limits: l})
	if err != nil {
		t.Error(err)
		return
	}
	defer s.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	code := e.js
	if runtime == "python" {
		code = e.py
	}
	if e.during != nil {
		e.during(s, cancel)
	}
	r, err := s.Run(ctx, run.Program{Code: code, Limits: l}, echo)
	if err != nil || r.Status != e.status {
		t.Errorf("%s: %q: %v, %s %v", runtime, code, err, r.Status, r.Error)
	}
}

// leftovers counts what this process has of what children use.
func leftovers(t *testing.T) string {
	t.Helper()
	fds, _ := os.ReadDir("/proc/self/fd")
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), "retort-*"))
	var children strings.Builder
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, file := range tasks {
		data, _ := os.ReadFile(file)
		children.Write(data)
	}
	return fmt.Sprintf("%d descriptors, %d goroutines, children [%s], groups %v, directories %v", len(fds), runtime.NumGoroutine(), strings.TrimSpace(children.String()), testenv.Groups(os.Getpid()), dirs)
}
