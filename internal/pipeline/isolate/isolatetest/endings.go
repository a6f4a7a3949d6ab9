package isolatetest

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"retort/internal/pipeline/isolate"
	"retort/internal/run"
)

// cancel cancels programs at several moments.
func (s *suite) cancel(t *testing.T) {
	b := s.backend(t)
	inCall := make(chan struct{}, 1)
	returned := make(chan struct{}, 1)
	stubborn := isolate.HostFunc(func(ctx context.Context, c run.Call) (run.Result, error) {
		inCall <- struct{}{}
		if bytes.Contains(c.Arguments, []byte("0")) {
			return run.Result{Value: c.Arguments}, nil
		}
		<-ctx.Done()
		time.Sleep(50 * time.Millisecond) // it takes a moment to give up
		returned <- struct{}{}
		return run.Result{}, ctx.Err()
	})
	afterCall := func(cancel func()) { go func() { <-inCall; time.AfterFunc(300*time.Millisecond, cancel) }() }
	duringCall := func(cancel func()) { go func() { <-inCall; cancel() }() }
	moments := map[string]struct {
		code   text
		cancel func(cancel func())
	}{
		"before":    {one, func(cancel func()) { cancel() }},
		"busy":      {text{"console.log('before'); await box.put(0); for (;;);", "print('before')\nbox.put(0)\nwhile True: pass"}, afterCall},
		"asleep":    {text{"console.log('before'); await box.put(0); await sleep(1e6)", "print('before')\nbox.put(0)\nsleep(1e6)"}, afterCall},
		"in a call": {text{"console.log('before'); await box.put(1)", "print('before')\nbox.put(1)"}, duringCall},
		"after calls": {text{"console.log('before'); box.put(1).catch(() => {}); return 1",
			"import asyncio\nprint('before')\nasyncio.create_task(box.put(1))\nawait asyncio.sleep(0)\nreturn 1"}, duringCall},
	}
	for name, m := range moments {
		t.Run(name, func(t *testing.T) {
			sandbox := s.prepare(t, b, run.Limits{})
			defer sandbox.Close()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			m.cancel(cancel)
			r, err := sandbox.Run(ctx, s.program(m.code, run.Limits{}), stubborn)
			if err != nil || r.Status != run.StatusCancelled || r.Error == nil || r.Error.Kind != run.KindCancelled {
				t.Errorf("%v, %s %v", err, r.Status, r.Error)
			}
			if strings.Contains(m.code.js, "before") && string(r.Output) != before {
				t.Errorf("output %q", r.Output)
			}
			if strings.Contains(m.code.js, "box.put(1)") {
				select {
				case <-returned:
				default:
					t.Error("Run returned while a call was under way")
				}
			}
		})
	}
	t.Run("at the end", func(t *testing.T) { s.cancelAtTheEnd(t, b) })
}

// cancelAtTheEnd cancels around the time that the program ends by itself: either
// end is good, a third is not.
func (s *suite) cancelAtTheEnd(t *testing.T, b isolate.Backend) {
	for i := range 10 {
		sandbox := s.prepare(t, b, run.Limits{})
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Duration(i)*500*time.Microsecond, cancel)
		r, err := sandbox.Run(ctx, s.program(one, run.Limits{}), echo)
		ok := r.Status == run.StatusOK && string(r.Value) == "1" || r.Status == run.StatusCancelled && r.Value == nil
		if err != nil || !ok {
			t.Errorf("%v, %s %s %v", err, r.Status, r.Value, r.Error)
		}
		cancel()
		_ = sandbox.Close()
	}
}

func (s *suite) close(t *testing.T) {
	b := s.backend(t)
	t.Run("sandbox during Run", func(t *testing.T) {
		sandbox := s.prepare(t, b, run.Limits{})
		time.AfterFunc(100*time.Millisecond, func() { _ = sandbox.Close() })
		r, err := sandbox.Run(context.Background(), s.program(forth, run.Limits{}), echo)
		if err != nil || r.Status != run.StatusCancelled {
			t.Errorf("%v, %s %v", err, r.Status, r.Error)
		}
		closeTwice(t, sandbox.Close)
	})
	t.Run("sandbox before Run", func(t *testing.T) {
		sandbox := s.prepare(t, b, run.Limits{})
		closeTwice(t, sandbox.Close)
		r, err := sandbox.Run(context.Background(), s.program(one, run.Limits{}), echo)
		if err != nil || r.Status != run.StatusCancelled {
			t.Errorf("%v, %s %v", err, r.Status, r.Error)
		}
	})
	t.Run("backend during Run", func(t *testing.T) {
		own := s.newBackend(t)
		sandbox := s.prepare(t, own, run.Limits{})
		time.AfterFunc(100*time.Millisecond, func() { _ = own.Close() })
		r, err := sandbox.Run(context.Background(), s.program(forth, run.Limits{}), echo)
		if err != nil || r.Status != run.StatusCancelled {
			t.Errorf("%v, %s %v", err, r.Status, r.Error)
		}
		closeTwice(t, own.Close)
		_, err = own.Prepare(context.Background(), isolate.Spec{Runtime: s.runtime, Limits: s.complete(run.Limits{})})
		if err == nil || run.AsError(err).Kind != run.KindSandboxUnavailable {
			t.Errorf("Prepare after Close: %v", err)
		}
	})
}

func closeTwice(t *testing.T, closer func() error) {
	t.Helper()
	for range 2 {
		if err := closer(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

func (s *suite) refusals(t *testing.T) {
	b := s.backend(t)
	if _, err := b.Prepare(context.Background(), isolate.Spec{Runtime: "cobol", Limits: s.complete(run.Limits{})}); err == nil || run.AsError(err).Kind != run.KindSandboxUnavailable {
		t.Errorf("an unknown runtime: %v", err)
	}
	sandbox := s.prepare(t, b, run.Limits{})
	defer sandbox.Close()
	if r, err := sandbox.Run(context.Background(), s.program(one, run.Limits{}), echo); err != nil || r.Status != run.StatusOK {
		t.Fatalf("%v, %s %v", err, r.Status, r.Error)
	}
	if r, err := sandbox.Run(context.Background(), s.program(one, run.Limits{}), echo); err == nil {
		t.Errorf("a second program ran: %s %s", r.Status, r.Value)
	}
}

// nothingIsLeft runs many programs that end in many ways and counts what is
// left of them when the backend is closed.
func (s *suite) nothingIsLeft(t *testing.T) {
	goroutines, files := runtime.NumGoroutine(), openFiles()
	b := s.newBackend(t)
	programs := 24
	if s.runtime == "quickjs" && b.Capabilities().Strength <= isolate.Process { // whose children start fast
		programs = 200
	}
	ends := []struct {
		code   text
		limits run.Limits
		status run.Status
	}{
		{text{"return (await box.put(1)).value", "box.put(1)['value']"}, run.Limits{}, run.StatusOK},
		{text{"console.log('x'); return 1", "print('x')"}, run.Limits{}, run.StatusOK},
		{text{"null.x", "None.x"}, run.Limits{}, run.StatusError},
		{text{"for (;;) console.log('x'.repeat(1000))", "while True: print('x' * 1000)"}, run.Limits{Output: 5000}, run.StatusOutputLimit},
		{text{"await Promise.all(Array.from({length: 50}, () => box.put(1)))", "import asyncio\nawait asyncio.gather(*[box.put(1) for i in range(50)])"}, run.Limits{ToolCalls: 20}, run.StatusCallLimit},
		{text{"box.put(1); box.put(2); throw new Error('left')", "import asyncio\nasyncio.create_task(box.put(1))\nawait asyncio.sleep(0)\nraise ValueError('left')"}, run.Limits{}, run.StatusError},
		{forth, run.Limits{Timeout: 50 * time.Millisecond}, run.StatusTimeout},
		{asleep, run.Limits{Timeout: 20 * time.Millisecond}, run.StatusTimeout},
	}
	var wg sync.WaitGroup
	for worker := range 16 {
		wg.Go(func() {
			for i := worker; i < programs; i += 16 {
				end := ends[i%len(ends)]
				if r := s.execute(t, b, end.code, end.limits, slowly); r.Status != end.status {
					t.Errorf("%s: %s %v", s.in(end.code), r.Status, r.Error)
				}
			}
		})
	}
	wg.Wait()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if left := children(t); left != "" {
		t.Errorf("child processes are left: %s", left)
	}
	eventually(t, "goroutines", func() (int, int) { return runtime.NumGoroutine(), goroutines })
	eventually(t, "open files", func() (int, int) { return openFiles(), files })
}

var slowly = isolate.HostFunc(func(ctx context.Context, c run.Call) (run.Result, error) {
	select {
	case <-time.After(time.Millisecond):
		return run.Result{Value: json.RawMessage(`{"value":1}`)}, nil
	case <-ctx.Done():
		return run.Result{}, ctx.Err()
	}
})

// eventually waits until there is no more of something than there was.
func eventually(t *testing.T, what string, count func() (now, was int)) {
	t.Helper()
	now, was := count()
	for end := time.Now().Add(5 * time.Second); now > was && time.Now().Before(end); now, was = count() {
		time.Sleep(10 * time.Millisecond)
	}
	if now > was {
		stacks := make([]byte, 1<<16)
		t.Errorf("%d %s, %d before\n%s", now, what, was, stacks[:runtime.Stack(stacks, true)])
	}
}

// openFiles counts this process's descriptors, where the system tells.
func openFiles() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}

// children lists the processes that this one has started and not yet waited
// for, where the system tells.
func children(t *testing.T) string {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return ""
	}
	var all strings.Builder
	for _, task := range tasks {
		data, err := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		if err != nil && !os.IsNotExist(err) {
			t.Logf("children are not known: %v", err)
		}
		all.Write(data)
	}
	return strings.TrimSpace(all.String())
}

// Prepared is a sandbox of an engine that prepares many at once, and has no test to fail: it tries
// again where the machine was too busy for one to be ready in time. One that is never ready
// ends the engine.
func Prepared(b isolate.Backend, spec isolate.Spec) isolate.Sandbox {
	const tries = 20
	for try := 1; ; try++ {
		s, err := b.Prepare(context.Background(), spec)
		if err == nil {
			return s
		}
		if try == tries {
			panic(err)
		}
		time.Sleep(time.Second)
	}
}
