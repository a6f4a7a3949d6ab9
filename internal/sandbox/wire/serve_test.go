package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox/wire/shm"
)

type hostFunc func(ctx context.Context, c core.ToolCall) (core.CallResult, error)

func (f hostFunc) Call(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
	return f(ctx, c)
}

var echo = hostFunc(func(_ context.Context, c core.ToolCall) (core.CallResult, error) {
	return core.CallResult{Value: c.Arguments}, nil
})

// serve runs ServeProgram against a fake guest. The argument guest is called, as the guest, after the program has been
// received.
func serve(t *testing.T, ctx context.Context, l core.Limits, h CallHost, guest func(c *FrameConn, start ProgramStart)) (ProgramEnd, error) {
	t.Helper()
	near, far := net.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer far.Close()
		c := NewConn(far)
		c.Accept(GuestSizes())
		_ = c.SendFrame(ReadyFrame("fake"))
		f, err := c.Read()
		if err != nil {
			return
		}
		var start ProgramStart
		if err := json.Unmarshal(f.Head, &start); err != nil {
			t.Error(err)
		}
		guest(c, start)
	}()
	conn := NewConn(near)
	if ready, err := ReadGreeting(conn); err != nil || ready.Runtime != "fake" {
		t.Fatal(ready, err)
	}
	p := core.CheckedProgram{Name: "p.ts", Code: "code", Limits: l.WithDefaults(core.Limits{Timeout: testenv.Patience}).WithDefaults(core.DefaultLimits()),
		Namespaces: []core.ServerNamespace{{Server: "s", Modules: []string{"m"}, Functions: []core.ToolFunction{{Name: "f", Tool: "t"}}}}}
	end, err := ServeProgram(ctx, conn, p, h)
	<-ended
	return end, err
}

func done(c *FrameConn, d ProgramDone, value string) { _ = c.SendFrame(DoneFrame(d, []byte(value))) }

func TestServe(t *testing.T) {
	end, err := serve(t, t.Context(), core.Limits{}, echo, func(c *FrameConn, start ProgramStart) {
		if start.Name != "p.ts" || start.Memory != 512<<20 || string(start.Namespaces[0].Functions) != `[{"name":"f","tool":"t","params":null}]` {
			t.Errorf("start: %+v", start)
		}
		_ = c.SendFrame(CallFrame(7, CallHead{Server: "s", Tool: "t"}, []byte(`{"n":12345678901234567890}`)))
		f, err := c.Read()
		if err != nil || f.ID != 7 || string(f.Body) != `{"n":12345678901234567890}` {
			t.Errorf("answer: %v, %v", f, err)
		}
		_ = c.SendFrame(OutputFrame([]byte("out")))
		done(c, ProgramDone{Status: core.StatusOK, HasValue: true, Warnings: []string{"w"}}, `{"b":1,"a":2}`)
	})
	if err != nil || end.Status != core.StatusOK || string(end.Value) != `{"b":1,"a":2}` || string(end.Output) != "out" || len(end.Warnings) != 1 {
		t.Errorf("%+v, %v", end, err)
	}
}

func TestServeWakes(t *testing.T) {
	end, err := serve(t, t.Context(), core.Limits{}, echo, func(c *FrameConn, _ ProgramStart) {
		c.Accept(FrameSizes{KindWake: 0, KindResult: 100})
		_ = c.SendFrame(Frame{Kind: KindWake, ID: 3_600_000})
		_ = c.SendFrame(Frame{Kind: KindWake, ID: 1}) // replaces it
		for range 3 {
			if f, err := c.Read(); err != nil || f.Kind != KindWake {
				t.Errorf("%v, %v", f, err)
			}
			_ = c.SendFrame(Frame{Kind: KindWake})
		}
		_ = c.SendFrame(CallFrame(1, CallHead{Server: "s", Tool: "t"}, []byte("{}")))
		for {
			if f, err := c.Read(); err != nil || f.Kind == KindResult {
				break
			}
		}
		done(c, ProgramDone{Status: core.StatusOK}, "")
	})
	if err != nil || end.Status != core.StatusOK {
		t.Errorf("%+v, %v", end, err)
	}
}

// TestServeWakesInBounds checks that a guest that requests many wake frames and reads none occupies only one
// goroutine.
func TestServeWakesInBounds(t *testing.T) {
	end, err := serve(t, t.Context(), core.Limits{}, echo, func(c *FrameConn, _ ProgramStart) {
		for i := range 200_000 {
			_ = c.QueueFrame(Frame{Kind: KindWake})
			if i%1000 == 0 {
				_ = c.Flush()
			}
		}
		if !testenv.Poll(func() bool { return wakers() == 1 }) { // goroutines of earlier tests may still be ending
			t.Errorf("%d goroutines wake the guest, want 1", wakers())
		}
		done(c, ProgramDone{Status: core.StatusOK}, "")
	})
	if err != nil || end.Status != core.StatusOK {
		t.Errorf("%+v, %v", end, err)
	}
}

// wakers returns the number of running goroutines that newWaker has started.
func wakers() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "wire.newWaker.func1(")
}

func TestServeCutsOutputAtACharacter(t *testing.T) {
	end, err := serve(t, t.Context(), core.Limits{Output: 4}, echo, func(c *FrameConn, _ ProgramStart) {
		_ = c.SendFrame(OutputFrame([]byte("ab")))
		_ = c.SendFrame(OutputFrame([]byte("€€")))
		_, _ = c.Read()
	})
	if err != nil || end.Status != core.StatusOutputLimit || string(end.Output) != "ab" {
		t.Errorf("%s %q %v", end.Status, end.Output, err)
	}
}

func TestServeRepairsText(t *testing.T) {
	end, _ := serve(t, t.Context(), core.Limits{}, echo, func(c *FrameConn, _ ProgramStart) {
		_ = c.SendFrame(OutputFrame([]byte("a\xe2\x82")))
		_ = c.SendFrame(OutputFrame([]byte("\xac\xff")))
		done(c, ProgramDone{Status: core.StatusError, Error: &core.Error{Kind: core.KindPolicy, Message: "m", Frame: "f", Op: "o"}}, "")
	})
	if string(end.Output) != "a€�" || end.Error.Kind != core.KindRuntime || end.Error.Frame != "" {
		t.Errorf("%q %+v", end.Output, end.Error)
	}
}

func TestServeWhenTheGuestIsGone(t *testing.T) {
	called := make(chan struct{})
	host := hostFunc(func(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
		close(called)
		<-ctx.Done()
		return core.CallResult{}, ctx.Err()
	})
	end, err := serve(t, t.Context(), core.Limits{}, host, func(c *FrameConn, _ ProgramStart) {
		_ = c.SendFrame(OutputFrame([]byte("so far")))
		_ = c.SendFrame(CallFrame(1, CallHead{Server: "s", Tool: "t"}, []byte("{}")))
		<-called
	})
	if !errors.Is(err, ErrGone) || string(end.Output) != "so far" {
		t.Errorf("%+v, %v", end, err)
	}
}

func TestServeStopsForACause(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	end, err := serve(t, ctx, core.Limits{}, echo, func(c *FrameConn, _ ProgramStart) {
		cancel(MemoryStop(1 << 20))
		_, _ = c.Read()
	})
	if err != nil || end.Status != core.StatusMemoryLimit || !strings.Contains(end.Error.Message, "1 MB") {
		t.Errorf("%+v, %v", end, err)
	}
}

// TestServeOutOfMemoryWithoutMessage checks that a guest can report that it ran out of memory even without an error
// message, because it may have no memory left for one.
func TestServeOutOfMemoryWithoutMessage(t *testing.T) {
	end, err := serve(t, t.Context(), core.Limits{Memory: 1 << 20}, echo, func(c *FrameConn, _ ProgramStart) {
		_ = c.SendFrame(OutputFrame([]byte("so far")))
		done(c, ProgramDone{Status: core.StatusMemoryLimit}, "")
		_, _ = c.Read()
	})
	if err != nil || end.Status != core.StatusMemoryLimit || !strings.Contains(end.Error.Message, "1 MB") || string(end.Output) != "so far" {
		t.Errorf("%+v, %v", end, err)
	}
}

// TestServeNamesViolation checks that the error for a guest that violates the protocol of shared memory says which rule
// the guest has violated.
func TestServeNamesViolation(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	go func() { _, _ = io.Copy(io.Discard, far) }()
	breaks := struct {
		io.Reader
		io.WriteCloser
	}{readerFunc(func([]byte) (int, error) { return 0, fmt.Errorf("%w: part 3 is missing", shm.ErrBroken) }), near}
	end, err := ServeProgram(t.Context(), NewConn(breaks), core.CheckedProgram{Code: "1", Limits: core.DefaultLimits()}, echo)
	const want = "the sandbox was killed: protocol violation: shared memory: part 3 is missing"
	if err != nil || end.Status != core.StatusError || end.Error.Kind != core.KindRuntime || end.Error.Message != want {
		t.Errorf("%s %v, %v", end.Status, end.Error, err)
	}
}

// TestServeEndsOnce checks the status of a program that reached its timeout. It must be the timeout status, even if
// the guest reports another error while its connection is being closed.
func TestServeEndsOnce(t *testing.T) {
	last := frameBytes(DoneFrame(ProgramDone{Status: core.StatusError, Error: &core.Error{Message: "nobody is there"}}, nil))
	closed := make(chan struct{})
	late := struct {
		io.Reader
		io.WriteCloser
	}{readerFunc(func(b []byte) (int, error) { <-closed; n := copy(b, last); last = last[n:]; return n, nil }), writeCloser{func() { close(closed) }}}
	limits := core.Limits{Timeout: 10 * time.Millisecond}.WithDefaults(core.DefaultLimits())
	end, err := ServeProgram(t.Context(), NewConn(late), core.CheckedProgram{Code: "1", Limits: limits}, echo)
	if err != nil || end.Status != core.StatusTimeout {
		t.Errorf("%s %v, %v", end.Status, end.Error, err)
	}
}

// writeCloser implements an io.WriteCloser that discards all data. Its method Close calls the function closed.
type writeCloser struct{ closed func() }

func (w writeCloser) Write(b []byte) (int, error) { return len(b), nil }
func (w writeCloser) Close() error                { w.closed(); return nil }

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// TestServeReportsErrorsOfCalls checks what a guest receives for a call that fails, has no result or has too large a
// result.
func TestServeReportsErrorsOfCalls(t *testing.T) {
	host := hostFunc(func(_ context.Context, c core.ToolCall) (core.CallResult, error) {
		switch c.Tool {
		case "large":
			return core.CallResult{Value: bytes.Repeat([]byte("1"), 2000)}, nil
		case "empty":
			return core.CallResult{}, nil
		}
		return core.CallResult{}, (&core.Error{Kind: core.KindToolError, Message: "broken", Hint: "mend"}).AtTool("s", "t")
	})
	_, err := serve(t, t.Context(), core.Limits{Memory: 1000}, host, func(c *FrameConn, _ ProgramStart) {
		for tool, want := range map[string]string{"large": `{"error":{"kind":"limit"`, "empty": "null", "t": `{"error":{"kind":"tool_error","message":"broken","hint":"mend","server":"s","tool":"t"}}`} {
			_ = c.SendFrame(CallFrame(1, CallHead{Server: "s", Tool: tool}, []byte("{}")))
			f, err := c.Read()
			if got := string(f.Head) + string(f.Body); err != nil || !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s, %v", tool, got, err)
			}
		}
		done(c, ProgramDone{Status: core.StatusOK}, "")
	})
	if err != nil {
		t.Error(err)
	}
}

// TestServePausesReading checks that the host stops reading from a guest while the guest's pending calls use too much
// memory. It tests both few large calls and many small calls.
func TestServePausesReading(t *testing.T) {
	for _, arguments := range [][]byte{append(append([]byte(`"`), bytes.Repeat([]byte("x"), maxArguments/2)...), '"'), []byte("1")} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			host := hostFunc(func(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
				<-ctx.Done()
				return core.CallResult{}, nil
			})
			// Besides maxPending, there is room for what the writer queues and for the frame that is being read.
			most := maxPending/(hostCall{}.callSize()+len(arguments)) + highWater/headerSize + 2
			sent, ended := 0, make(chan error)
			go func() {
				_, err := serve(t, ctx, core.Limits{Concurrency: 2}, host, func(c *FrameConn, _ ProgramStart) {
					for sent <= most && c.QueueFrame(CallFrame(1, CallHead{Tool: "x"}, arguments)) == nil {
						sent++
					}
				})
				ended <- err
			}()
			synctest.Wait() // until the guest can send no more
			if sent > most {
				t.Errorf("%d calls of %d bytes were taken, at most %d may be", sent, len(arguments), most)
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestServeManyCalls checks that each call gets its own result when calls come in waves, so that idle workers are
// reused.
func TestServeManyCalls(t *testing.T) { synctest.Test(t, serveManyCalls) }

func serveManyCalls(t *testing.T) {
	const wave, atOnce = 50, 20
	var mu sync.Mutex
	now, most := 0, 0
	enter := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		now += n
		most = max(most, now)
	}
	host := hostFunc(func(_ context.Context, c core.ToolCall) (core.CallResult, error) {
		enter(1)
		defer enter(-1)
		time.Sleep(time.Millisecond)
		return core.CallResult{Value: c.Arguments}, nil
	})
	_, err := serve(t, t.Context(), core.Limits{Concurrency: atOnce}, host, func(c *FrameConn, _ ProgramStart) {
		next := uint32(0)
		for _, n := range []int{wave, 1, 1, wave, 3} {
			waiting := map[uint32]string{}
			for range n {
				next++
				waiting[next] = fmt.Sprint(next)
				_ = c.SendFrame(CallFrame(next, CallHead{Server: "s", Tool: "t" + fmt.Sprint(next%2)}, []byte(waiting[next])))
			}
			for len(waiting) > 0 {
				f, err := c.Read()
				if want, ok := waiting[f.ID]; err != nil || !ok || string(f.Body) != want {
					t.Errorf("answer %d: %s, want %q; %v", f.ID, f.Body, want, err)
					return
				}
				delete(waiting, f.ID)
			}
		}
		done(c, ProgramDone{Status: core.StatusOK}, "")
	})
	if err != nil || most != atOnce {
		t.Errorf("%d at once, want %d; %v", most, atOnce, err)
	}
}

// TestServeWaitsForCalls checks that ServeProgram does not return before the last call has returned, even if the call
// reacts to cancellation late.
func TestServeWaitsForCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := false
		host := hostFunc(func(ctx context.Context, _ core.ToolCall) (core.CallResult, error) {
			cancel()
			<-ctx.Done()
			time.Sleep(time.Hour)
			gaveUp = true
			return core.CallResult{}, ctx.Err()
		})
		end, err := serve(t, ctx, core.Limits{}, host, func(c *FrameConn, _ ProgramStart) {
			_ = c.SendFrame(CallFrame(1, CallHead{Server: "s", Tool: "t"}, []byte("{}")))
			_, _ = c.Read()
		})
		if err != nil || end.Status != core.StatusCancelled || !gaveUp {
			t.Errorf("%+v, %v; the call has ended: %v", end, err, gaveUp)
		}
	})
}

// TestServePauses checks that the clocks of the program and of ServeProgram's caller stop while a call waits for a
// person, and continue afterwards.
func TestServePauses(t *testing.T) {
	for name, test := range map[string]struct {
		idle   time.Duration // how long the guest stays idle after its call
		status core.OutcomeStatus
	}{
		"in time":  {500 * time.Millisecond, core.StatusOK},
		"too late": {900 * time.Millisecond, core.StatusTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { servePauses(t, test.idle, test.status) })
		})
	}
}

func servePauses(t *testing.T, idle time.Duration, status core.OutcomeStatus) {
	var outer []string
	ctx := core.WithPause(t.Context(), func() func() {
		outer = append(outer, "paused")
		return func() { outer = append(outer, "resumed") }
	})
	host := hostFunc(func(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
		defer core.PauseClock(ctx)()
		time.Sleep(time.Hour)
		return core.CallResult{Value: c.Arguments}, nil
	})
	end, err := serve(t, ctx, core.Limits{Timeout: time.Second}, host, func(c *FrameConn, _ ProgramStart) {
		time.Sleep(200 * time.Millisecond)
		_ = c.SendFrame(CallFrame(1, CallHead{Server: "s", Tool: "t"}, []byte("{}")))
		_, _ = c.Read()
		time.Sleep(idle)
		done(c, ProgramDone{Status: core.StatusOK}, "")
	})
	if err != nil || end.Status != status || !slices.Equal(outer, []string{"paused", "resumed"}) {
		t.Errorf("%s, %v, want %s; the outer clock was %v", end.Status, err, status, outer)
	}
}

// TestServeKeepsResultLimit checks that ServeProgram enforces the size limit of the program's value even if a guest
// ignores it.
func TestServeKeepsResultLimit(t *testing.T) {
	for value, want := range map[string]core.OutcomeStatus{`"12345678"`: core.StatusOK, `"123456789"`: core.StatusOutputLimit} {
		end, err := serve(t, t.Context(), core.Limits{Result: 10}, echo, func(c *FrameConn, _ ProgramStart) {
			done(c, ProgramDone{Status: core.StatusOK, HasValue: true}, value)
		})
		if err != nil || end.Status != want || (want == core.StatusOK) != (string(end.Value) == value) {
			t.Errorf("%d bytes, where 10 are allowed: %s, value %q, %v; want %s", len(value), end.Status, end.Value, err, want)
		}
	}
}

// TestServeKeepsDenials checks that a guest may end with a policy error only if the host has sent the guest that
// error.
func TestServeKeepsDenials(t *testing.T) {
	denies := hostFunc(func(context.Context, core.ToolCall) (core.CallResult, error) {
		return core.CallResult{}, core.Errorf(core.KindPolicy, "test", "the policy does not allow it")
	})
	for message, want := range map[string]core.Kind{"the policy does not allow it": core.KindPolicy, "the policy does not allow more": core.KindRuntime} {
		end, err := serve(t, t.Context(), core.Limits{}, denies, func(c *FrameConn, _ ProgramStart) {
			_ = c.SendFrame(CallFrame(1, CallHead{Server: "s", Tool: "t"}, []byte("{}")))
			_, _ = c.Read()
			done(c, ProgramDone{Status: core.StatusError, Error: &core.Error{Kind: core.KindPolicy, Message: message}}, "")
		})
		if err != nil || end.Error.Kind != want {
			t.Errorf("%s: %+v %v", message, end.Error, err)
		}
	}
}

// TestRefusedArguments checks that a call with invalid arguments gets an error, and that the next call still works.
func TestRefusedArguments(t *testing.T) {
	deep := strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001)
	for name, test := range map[string]struct {
		arguments string
		kind      core.Kind
		want      string
	}{
		"not JSON":           {"{not json", core.KindInvalidArguments, "not JSON"},
		"nothing":            {"", core.KindInvalidArguments, "not JSON"},
		"not UTF-8":          {"{\"a\":\"\xff\xfe\"}", core.KindInvalidArguments, "not JSON in UTF-8"},
		"half a surrogate":   {"{\"a\":\"\xed\xa0\x80\"}", core.KindInvalidArguments, "not JSON in UTF-8"},
		"an overlong slash":  {"{\"a\":\"\xc0\xaf\"}", core.KindInvalidArguments, "not JSON in UTF-8"},
		"not UTF-8 in a key": {"{\"\xff\":1}", core.KindInvalidArguments, "not JSON in UTF-8"},
		"too deep":           {deep, core.KindInvalidArguments, "nested more than 10,000"},
		"too large":          {`"` + strings.Repeat("x", maxArguments) + `"`, core.KindLimit, "more than the 16 MB allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			end, err := serve(t, t.Context(), core.Limits{}, echo, func(c *FrameConn, _ ProgramStart) {
				_ = c.SendFrame(CallFrame(1, CallHead{Server: "s", Tool: "t"}, []byte(test.arguments)))
				var refused AnswerHead
				f, err := c.Read()
				if err != nil || f.ID != 1 || json.Unmarshal(f.Head, &refused) != nil || refused.Error == nil || refused.Error.Kind != test.kind || !strings.Contains(refused.Error.Message, test.want) {
					t.Errorf("%v %s", err, f.Head)
				}
				_ = c.SendFrame(CallFrame(2, CallHead{Server: "s", Tool: "t"}, []byte(`{}`)))
				if f, err := c.Read(); err != nil || f.ID != 2 || string(f.Body) != "{}" {
					t.Errorf("the next call: %v %s %s", err, f.Head, f.Body)
				}
				done(c, ProgramDone{Status: core.StatusOK}, "")
			})
			if err != nil || end.Status != core.StatusOK {
				t.Errorf("%+v, %v", end, err)
			}
		})
	}
}

// TestForgedKinds checks that an error kind that only the host may use becomes a runtime error, unless the host has
// sent the guest the same error.
func TestForgedKinds(t *testing.T) {
	failing := hostFunc(func(context.Context, core.ToolCall) (core.CallResult, error) {
		return core.CallResult{}, &core.Error{Kind: core.KindInternal, Message: "the host's fault"}
	})
	for name, test := range map[string]struct {
		kind    core.Kind
		message string
		want    core.Kind
	}{
		"internal":         {core.KindInternal, "made up", core.KindRuntime},
		"policy":           {core.KindPolicy, "made up", core.KindRuntime},
		"no kind of ours":  {"x", "made up", core.KindRuntime},
		"of a tool":        {core.KindToolError, "made up", core.KindToolError},
		"of the host":      {core.KindInternal, "the host's fault", core.KindInternal},
		"no kind at all":   {"", "made up", core.KindRuntime},
		"of no sandbox":    {core.KindSandboxUnavailable, "made up", core.KindRuntime},
		"a longer message": {core.KindInternal, "the host's fault, or not", core.KindRuntime},
	} {
		end, err := serve(t, t.Context(), core.Limits{}, failing, func(c *FrameConn, _ ProgramStart) {
			_ = c.SendFrame(CallFrame(1, CallHead{Server: "s", Tool: "t"}, []byte(`{}`)))
			_, _ = c.Read()
			done(c, ProgramDone{Status: core.StatusError, Error: &core.Error{Kind: test.kind, Message: test.message}}, "")
		})
		if err != nil || end.Error == nil || end.Error.Kind != test.want {
			t.Errorf("%s: %+v, %v", name, end.Error, err)
		}
	}
}

// TestWarningsAreBounded checks that the number and size of a guest's warnings are limited.
func TestWarningsAreBounded(t *testing.T) {
	end, err := serve(t, t.Context(), core.Limits{}, echo, func(c *FrameConn, _ ProgramStart) {
		warnings := []string{strings.Repeat("x", 5000)}
		for range 100 {
			warnings = append(warnings, "w")
		}
		done(c, ProgramDone{Status: core.StatusOK, Warnings: warnings}, "")
	})
	if err != nil || len(end.Warnings) != 16 || end.Warnings[0] != "a warning of 5000 bytes was omitted" || end.Warnings[15] != "w" {
		t.Errorf("%q, %v", end.Warnings, err)
	}
}
