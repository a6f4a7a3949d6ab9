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

// testCancel tests cancelling a program: before it runs, while it is busy or sleeps, during a call, and at about the
// time of its end.
func (s *backendSuite) testCancel(t *testing.T) {
	b := s.sharedBackend(t)
	for name, m := range map[string]struct {
		code   programText
		moment endMoment
	}{
		"before": {one, beforeRun},
		"busy": {
			programText{"console.log('before'); await box.put(0); for (;;);", "print('before')\nbox.put(0)\nwhile True: pass"},
			afterCall,
		},
		"asleep": {
			programText{"console.log('before'); await box.put(0); await sleep(1e6)", "print('before')\nbox.put(0)\nsleep(1e6)"},
			afterCall,
		},
		"in a call": {programText{"console.log('before'); await box.put(1)", "print('before')\nbox.put(1)"}, duringCall},
		"after calls": {programText{"console.log('before'); box.put(1).catch(() => {}); return 1",
			"import asyncio\nprint('before')\nasyncio.create_task(box.put(1))\nawait asyncio.sleep(0)\nreturn 1"}, duringCall},
	} {
		t.Run(name, func(t *testing.T) { s.cancelAt(t, b, m.code, m.moment) })
	}
	t.Run("at the end", func(t *testing.T) { s.cancelAtTheEnd(t, b) })
}

// endMoment says at which moment a test ends a program from outside, for example during a call.
type endMoment int

const (
	beforeRun  endMoment = iota
	duringCall           // while the call is in progress
	afterCall            // after the call was answered, while the program stays busy
)

// busyFor is how long a program stays busy after its call before the test ends it. The tests do not depend on the
// exact value.
const busyFor = 30 * time.Millisecond

// endingHost returns a ToolHost that calls the function do when the program makes a call. The argument m says when: if
// it is afterCall, the ToolHost answers the call immediately and calls do after the delay busyFor. Otherwise it calls
// do during the call and leaves the call unanswered until the program is ended.
func endingHost(m endMoment, do func()) sandbox.HostFunc {
	return func(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
		if m == afterCall {
			time.AfterFunc(busyFor, do)
			return core.CallResult{Value: c.Arguments}, nil
		}
		do()
		<-ctx.Done()
		return core.CallResult{}, ctx.Err()
	}
}

func (s *backendSuite) cancelAt(t *testing.T, b sandbox.Backend, code programText, m endMoment) {
	box := s.prepareSandbox(t, b, core.Limits{})
	defer box.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if m == beforeRun {
		cancel()
	}
	var underWay atomic.Int32
	h := endingHost(m, cancel)
	r, err := box.Run(ctx, s.makeProgram(
		code, core.Limits{},
	), sandbox.HostFunc(func(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
		underWay.Add(1)
		defer underWay.Add(-1)
		return h(ctx, c)
	}))
	if err != nil || r.Status != core.StatusCancelled || r.Error == nil || r.Error.Kind != core.KindCancelled {
		t.Errorf("%v, %s %v", err, r.Status, r.Error)
	}
	if m != beforeRun && string(r.Output) != firstOutput {
		t.Errorf("output %q, want %q", r.Output, firstOutput)
	}
	if n := underWay.Load(); n > 0 {
		t.Errorf("Run returned while %d calls were under way", n)
	}
}

// cancelAtTheEnd tests cancelling a program at about the time at which it ends by itself. The program must either end
// normally or be cancelled.
func (s *backendSuite) cancelAtTheEnd(t *testing.T, b sandbox.Backend) {
	code := programText{"await box.put(0); return 1", "box.put(0)\n1"}
	step := 1
	if isSlow(b) || s.runtime != "quickjs" && !testenv.Full() {
		step = 3
	}
	for i := 0; i < 10; i += step {
		box := s.prepareSandbox(t, b, core.Limits{})
		ctx, cancel := context.WithCancel(t.Context())
		r, err := box.Run(ctx, s.makeProgram(
			code, core.Limits{},
		), sandbox.HostFunc(func(_ context.Context, c core.ToolCall) (core.CallResult, error) {
			go func() {
				for range 200 * i {
					runtime.Gosched()
				}
				cancel()
			}()
			return core.CallResult{Value: c.Arguments}, nil
		}))
		ok := r.Status == core.StatusOK && string(r.Value) == "1" || r.Status == core.StatusCancelled && r.Value == nil
		if err != nil || !ok {
			t.Errorf("%v, %s %s %v", err, r.Status, r.Value, r.Error)
		}
		cancel()
		_ = box.Close()
	}
}

func (s *backendSuite) testClose(t *testing.T) {
	b := s.sharedBackend(t)
	busy := programText{"await box.put(0); for (;;);", "box.put(0)\nwhile True: pass"}
	t.Run("sandbox during Run", func(t *testing.T) {
		sandbox := s.prepareSandbox(t, b, core.Limits{})
		r, err := sandbox.Run(t.Context(), s.makeProgram(busy, core.Limits{}), endingHost(afterCall, func() { _ = sandbox.Close() }))
		if err != nil || r.Status != core.StatusCancelled {
			t.Errorf("%v, %s %v", err, r.Status, r.Error)
		}
		closeTwice(t, sandbox.Close)
	})
	t.Run("sandbox before Run", func(t *testing.T) {
		sandbox := s.prepareSandbox(t, b, core.Limits{})
		closeTwice(t, sandbox.Close)
		r, err := sandbox.Run(t.Context(), s.makeProgram(one, core.Limits{}), echo)
		if err != nil || r.Status != core.StatusCancelled {
			t.Errorf("%v, %s %v", err, r.Status, r.Error)
		}
	})
	t.Run("backend during Run", func(t *testing.T) {
		own := s.newBackend(t)
		box := s.prepareSandbox(t, own, core.Limits{})
		r, err := box.Run(t.Context(), s.makeProgram(busy, core.Limits{}), endingHost(afterCall, func() { _ = own.Close() }))
		if err != nil || r.Status != core.StatusCancelled {
			t.Errorf("%v, %s %v", err, r.Status, r.Error)
		}
		closeTwice(t, own.Close)
		_, err = own.Prepare(t.Context(), sandbox.SandboxSpec{Runtime: s.runtime, Limits: s.completeLimits(core.Limits{})})
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

func (s *backendSuite) testRefusals(t *testing.T) {
	b := s.sharedBackend(t)
	if _, err := b.Prepare(context.Background(), sandbox.SandboxSpec{
		Runtime: "cobol", Limits: s.completeLimits(core.Limits{}),
	}); err == nil || core.AsError(err).Kind != core.KindSandboxUnavailable {
		t.Errorf("an unknown runtime: %v", err)
	}
	sandbox := s.prepareSandbox(t, b, core.Limits{})
	defer sandbox.Close()
	if r, err := sandbox.Run(context.Background(), s.makeProgram(one, core.Limits{}), echo); err != nil || r.Status != core.StatusOK {
		t.Fatalf("%v, %s %v", err, r.Status, r.Error)
	}
	if r, err := sandbox.Run(context.Background(), s.makeProgram(one, core.Limits{}), echo); err == nil {
		t.Errorf("a second program ran: %s %s", r.Status, r.Value)
	}
}

// testNothingIsLeft runs programs that end in different ways, closes the backend, and checks that no process, file or
// goroutine remains.
func (s *backendSuite) testNothingIsLeft(t *testing.T) {
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
				if r := s.executeProgram(t, b, end.code, end.limits, hangOnTwo); r.Status != end.status {
					t.Errorf("%s: %s %v, want %s", s.textFor(end.code), r.Status, r.Error, end.status)
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

// isSlow reports whether programs on the backend b take so long that a test should run fewer of them. It returns
// false if RETORT_FULL is set, because then every test is run in full.
func isSlow(b sandbox.Backend) bool {
	return b.Capabilities().Strength > sandbox.Process && !testenv.Full()
}

// everyEnd returns programs that end in different ways.
func (s *backendSuite) everyEnd() []limitedProgram {
	return []limitedProgram{
		{code: programText{"return (await box.put(1)).value", "box.put(1)['value']"}, status: core.StatusOK},
		{code: programText{"console.log('x'); return 1", "print('x')"}, status: core.StatusOK},
		{code: programText{"null.x", "None.x"}, status: core.StatusError},
		{
			code:   programText{"for (;;) console.log('x'.repeat(1000))", "while True: print('x' * 1000)"},
			limits: core.Limits{Output: 5000}, status: core.StatusOutputLimit,
		},
		{
			code: programText{
				"await Promise.all(Array.from({length: 50}, () => box.put(1)))",
				"import asyncio\nawait asyncio.gather(*[box.put(1) for i in range(50)])",
			},
			limits: core.Limits{ToolCalls: 20}, status: core.StatusCallLimit,
		},
		{
			code: programText{
				"box.put(1); box.put(2); throw new Error('left')",
				"import asyncio\nasyncio.create_task(box.put(2))\nawait asyncio.sleep(0)\nraise ValueError('left')",
			},
			status: core.StatusError,
		},
		{code: endlessLoop, limits: core.Limits{Timeout: 50 * time.Millisecond}, status: core.StatusTimeout},
		{code: asleep, limits: core.Limits{Timeout: 20 * time.Millisecond}, status: core.StatusTimeout},
	}
}

// hangOnTwo implements a ToolHost that answers a call with the call's own arguments. A call whose arguments contain
// a 2 is left unanswered until the program ends.
var hangOnTwo = sandbox.HostFunc(func(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
	if bytes.Contains(c.Arguments, []byte("2")) {
		<-ctx.Done()
		return core.CallResult{}, ctx.Err()
	}
	return core.CallResult{Value: c.Arguments}, nil
})

// ownTemporaryFolder sets TMPDIR to a new directory, so that the test finds only files of its own there. The path is
// short enough for the Unix sockets that some backends create below it.
func ownTemporaryFolder(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "own")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("TMPDIR", dir)
}

// prepareLock ensures that PrepareSandbox prepares one sandbox at a time.
var prepareLock sync.Mutex

// PrepareSandbox returns a sandbox for a test process that has no *testing.T, and panics on an error. It prepares one
// sandbox at a time. If fifty started at the same time on a few processors, some would exceed their start timeout.
func PrepareSandbox(b sandbox.Backend, spec sandbox.SandboxSpec) sandbox.Sandbox {
	prepareLock.Lock()
	defer prepareLock.Unlock()
	s, err := b.Prepare(context.Background(), spec)
	if err != nil {
		panic(err)
	}
	return s
}
