package sandboxtest

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox"
)

// cancel cancels programs at several moments.
func (s *suite) cancel(t *testing.T) {
	b := s.backend(t)
	for name, m := range map[string]struct {
		code   text
		moment moment
	}{
		"before":    {one, beforeRun},
		"busy":      {text{"console.log('before'); await box.put(0); for (;;);", "print('before')\nbox.put(0)\nwhile True: pass"}, afterCall},
		"asleep":    {text{"console.log('before'); await box.put(0); await sleep(1e6)", "print('before')\nbox.put(0)\nsleep(1e6)"}, afterCall},
		"in a call": {text{"console.log('before'); await box.put(1)", "print('before')\nbox.put(1)"}, duringCall},
		"after calls": {text{"console.log('before'); box.put(1).catch(() => {}); return 1",
			"import asyncio\nprint('before')\nasyncio.create_task(box.put(1))\nawait asyncio.sleep(0)\nreturn 1"}, duringCall},
	} {
		t.Run(name, func(t *testing.T) { s.cancelAt(t, b, m.code, m.moment) })
	}
	t.Run("at the end", func(t *testing.T) { s.cancelAtTheEnd(t, b) })
}

// moment is the time at which a test ends a program from outside.
type moment int

const (
	beforeRun  moment = iota
	duringCall        // while its call is under way
	afterCall         // while it runs on after its call was answered
)

// busyFor sets how long a program runs on after its call before a test ends it. The outcome does not depend on the
// value.
const busyFor = 30 * time.Millisecond

// ending returns a Host that calls do when the program has made a call: while the call is under way,
// or busyFor later if m is afterCall.
func ending(m moment, do func()) sandbox.HostFunc {
	return func(ctx context.Context, c core.Call) (core.Result, error) {
		if m == afterCall {
			time.AfterFunc(busyFor, do)
			return core.Result{Value: c.Arguments}, nil
		}
		do()
		<-ctx.Done()
		return core.Result{}, ctx.Err()
	}
}

func (s *suite) cancelAt(t *testing.T, b sandbox.Backend, code text, m moment) {
	box := s.prepare(t, b, core.Limits{})
	defer box.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if m == beforeRun {
		cancel()
	}
	var underWay atomic.Int32
	h := ending(m, cancel)
	r, err := box.Run(ctx, s.program(code, core.Limits{}), sandbox.HostFunc(func(ctx context.Context, c core.Call) (core.Result, error) {
		underWay.Add(1)
		defer underWay.Add(-1)
		return h(ctx, c)
	}))
	if err != nil || r.Status != core.StatusCancelled || r.Error == nil || r.Error.Kind != core.KindCancelled {
		t.Errorf("%v, %s %v", err, r.Status, r.Error)
	}
	if m != beforeRun && string(r.Output) != before {
		t.Errorf("output %q, want %q", r.Output, before)
	}
	if n := underWay.Load(); n > 0 {
		t.Errorf("Run returned while %d calls were under way", n)
	}
}

// cancelAtTheEnd cancels a program about when it ends by itself. It must end either by itself or as cancelled.
func (s *suite) cancelAtTheEnd(t *testing.T, b sandbox.Backend) {
	code := text{"await box.put(0); return 1", "box.put(0)\n1"}
	step := 1
	if slow(b) || s.runtime != "quickjs" && !testenv.Full() {
		step = 3
	}
	for i := 0; i < 10; i += step {
		box := s.prepare(t, b, core.Limits{})
		ctx, cancel := context.WithCancel(t.Context())
		r, err := box.Run(ctx, s.program(code, core.Limits{}), sandbox.HostFunc(func(_ context.Context, c core.Call) (core.Result, error) {
			go func() {
				for range 200 * i {
					runtime.Gosched()
				}
				cancel()
			}()
			return core.Result{Value: c.Arguments}, nil
		}))
		ok := r.Status == core.StatusOK && string(r.Value) == "1" || r.Status == core.StatusCancelled && r.Value == nil
		if err != nil || !ok {
			t.Errorf("%v, %s %s %v", err, r.Status, r.Value, r.Error)
		}
		cancel()
		_ = box.Close()
	}
}

func (s *suite) close(t *testing.T) {
	b := s.backend(t)
	busy := text{"await box.put(0); for (;;);", "box.put(0)\nwhile True: pass"}
	t.Run("sandbox during Run", func(t *testing.T) {
		sandbox := s.prepare(t, b, core.Limits{})
		r, err := sandbox.Run(t.Context(), s.program(busy, core.Limits{}), ending(afterCall, func() { _ = sandbox.Close() }))
		if err != nil || r.Status != core.StatusCancelled {
			t.Errorf("%v, %s %v", err, r.Status, r.Error)
		}
		closeTwice(t, sandbox.Close)
	})
	t.Run("sandbox before Run", func(t *testing.T) {
		sandbox := s.prepare(t, b, core.Limits{})
		closeTwice(t, sandbox.Close)
		r, err := sandbox.Run(t.Context(), s.program(one, core.Limits{}), echo)
		if err != nil || r.Status != core.StatusCancelled {
			t.Errorf("%v, %s %v", err, r.Status, r.Error)
		}
	})
	t.Run("backend during Run", func(t *testing.T) {
		own := s.newBackend(t)
		box := s.prepare(t, own, core.Limits{})
		r, err := box.Run(t.Context(), s.program(busy, core.Limits{}), ending(afterCall, func() { _ = own.Close() }))
		if err != nil || r.Status != core.StatusCancelled {
			t.Errorf("%v, %s %v", err, r.Status, r.Error)
		}
		closeTwice(t, own.Close)
		_, err = own.Prepare(t.Context(), sandbox.Spec{Runtime: s.runtime, Limits: s.complete(core.Limits{})})
		if err == nil || core.AsError(err).Kind != core.KindSandboxUnavailable {
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
	if _, err := b.Prepare(context.Background(), sandbox.Spec{Runtime: "cobol", Limits: s.complete(core.Limits{})}); err == nil || core.AsError(err).Kind != core.KindSandboxUnavailable {
		t.Errorf("an unknown runtime: %v", err)
	}
	sandbox := s.prepare(t, b, core.Limits{})
	defer sandbox.Close()
	if r, err := sandbox.Run(context.Background(), s.program(one, core.Limits{}), echo); err != nil || r.Status != core.StatusOK {
		t.Fatalf("%v, %s %v", err, r.Status, r.Error)
	}
	if r, err := sandbox.Run(context.Background(), s.program(one, core.Limits{}), echo); err == nil {
		t.Errorf("a second program ran: %s %s", r.Status, r.Value)
	}
}

// nothingIsLeft runs programs that end in different ways, closes the backend, and checks that nothing
// has leaked.
func (s *suite) nothingIsLeft(t *testing.T) {
	s.closeShared(t) // it may start sandboxes at any time
	ownTemporaryFolder(t)
	resources := testenv.TakeResources()
	b := s.newBackend(t)
	ends := s.everyEnd()
	programs := len(ends)
	if testenv.Full() {
		programs *= 4
		if s.runtime == "quickjs" && b.Capabilities().Strength <= sandbox.Process { // child processes start fast
			programs = 200
		}
	}
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := worker; i < programs; i += 8 {
				end := ends[i%len(ends)]
				if r := s.execute(t, b, end.code, end.limits, leftWithTwo); r.Status != end.status {
					t.Errorf("%s: %s %v, want %s", s.in(end.code), r.Status, r.Error, end.status)
				}
			}
		})
	}
	wg.Wait()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	resources.Check(t)
}

// slow reports whether programs take so long on b that tests run fewer of them. It is false if
// RETORT_FULL is set.
func slow(b sandbox.Backend) bool {
	return b.Capabilities().Strength > sandbox.Process && !testenv.Full()
}

// everyEnd returns programs that end in different ways.
func (s *suite) everyEnd() []limited {
	return []limited{
		{code: text{"return (await box.put(1)).value", "box.put(1)['value']"}, status: core.StatusOK},
		{code: text{"console.log('x'); return 1", "print('x')"}, status: core.StatusOK},
		{code: text{"null.x", "None.x"}, status: core.StatusError},
		{code: text{"for (;;) console.log('x'.repeat(1000))", "while True: print('x' * 1000)"}, limits: core.Limits{Output: 5000}, status: core.StatusOutputLimit},
		{code: text{"await Promise.all(Array.from({length: 50}, () => box.put(1)))", "import asyncio\nawait asyncio.gather(*[box.put(1) for i in range(50)])"}, limits: core.Limits{ToolCalls: 20}, status: core.StatusCallLimit},
		{code: text{"box.put(1); box.put(2); throw new Error('left')", "import asyncio\nasyncio.create_task(box.put(2))\nawait asyncio.sleep(0)\nraise ValueError('left')"}, status: core.StatusError},
		{code: forth, limits: core.Limits{Timeout: 50 * time.Millisecond}, status: core.StatusTimeout},
		{code: asleep, limits: core.Limits{Timeout: 20 * time.Millisecond}, status: core.StatusTimeout},
	}
}

// leftWithTwo is a Host. A call whose arguments contain a 2 does not return before its program ends.
var leftWithTwo = sandbox.HostFunc(func(ctx context.Context, c core.Call) (core.Result, error) {
	if bytes.Contains(c.Arguments, []byte("2")) {
		<-ctx.Done()
		return core.Result{}, ctx.Err()
	}
	return core.Result{Value: c.Arguments}, nil
})

// ownTemporaryFolder sets TMPDIR to a new directory for the test, since other processes use the
// default one. Its path is short enough for the Unix sockets that some backends create below it.
func ownTemporaryFolder(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "own")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("TMPDIR", dir)
}

// preparing is locked while Prepared prepares a sandbox.
var preparing sync.Mutex

// Prepared returns a sandbox for an engine process, which needs many of them and has no test to fail.
// It prepares one sandbox at a time: a backend has a timeout for each, and fifty that start at the
// same time on a few processors would exceed it. Prepared panics on an error.
func Prepared(b sandbox.Backend, spec sandbox.Spec) sandbox.Sandbox {
	preparing.Lock()
	defer preparing.Unlock()
	s, err := b.Prepare(context.Background(), spec)
	if err != nil {
		panic(err)
	}
	return s
}
