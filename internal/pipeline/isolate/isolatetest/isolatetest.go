// Package isolatetest is the contract of sandboxes, as tests that every backend
// passes. Programs are JavaScript in the form that package guest describes.
package isolatetest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"retort/internal/pipeline/isolate"
	"retort/internal/run"
)

// Run tests the backends that newBackend makes. The suite closes them.
func Run(t *testing.T, newBackend func(t *testing.T) isolate.Backend) {
	s := &suite{newBackend: newBackend}
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"capabilities", s.capabilities},
		{"values", s.values},
		{"errors", s.errors},
		{"calls", s.calls},
		{"concurrency", s.concurrency},
		{"limits", s.limits},
		{"hostile programs", s.hostile},
		{"paused clock", s.pausedClock},
		{"cancel", s.cancel},
		{"close", s.close},
		{"refusals", s.refusals},
		{"nothing is left", s.nothingIsLeft},
	} {
		t.Run(test.name, test.run)
	}
}

type suite struct {
	newBackend func(t *testing.T) isolate.Backend
}

// hang is how long anything may take that is not expected to take long.
const hang = 30 * time.Second

// backend makes a backend that is closed at the end of the test.
func (s *suite) backend(t *testing.T) isolate.Backend {
	b := s.newBackend(t)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return b
}

func limits() run.Limits {
	return run.Limits{Timeout: hang / 2}.Or(run.DefaultLimits())
}

func program(code string, l run.Limits) run.Program {
	return run.Program{ID: "test", Name: "program.ts", Language: run.JavaScript, Code: code, Limits: l.Or(limits()), Namespaces: []run.Namespace{
		{Server: "box", Global: "box", Modules: []string{"box"}, Functions: []run.Function{{Name: "put", Tool: "put", Params: []string{"value"}}}},
	}}
}

// echo gives back the arguments of every call.
var echo = isolate.HostFunc(func(_ context.Context, c run.Call) (run.Result, error) { return run.Result{Value: c.Arguments}, nil })

func prepare(t testing.TB, b isolate.Backend, l run.Limits) isolate.Sandbox {
	t.Helper()
	sandbox, err := b.Prepare(context.Background(), isolate.Spec{Runtime: "quickjs", Limits: l.Or(limits())})
	if err != nil {
		t.Fatalf("Prepare: %v", err)
	}
	return sandbox
}

// execute runs one program in a sandbox of its own.
func execute(t testing.TB, b isolate.Backend, code string, l run.Limits, h isolate.Host) isolate.Report {
	t.Helper()
	sandbox := prepare(t, b, l)
	defer sandbox.Close()
	report, err := sandbox.Run(context.Background(), program(code, l), h)
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	return report
}

func (s *suite) capabilities(t *testing.T) {
	b := s.backend(t)
	have := b.Capabilities()
	if have.Unavailable != nil || have.Name == "" || len(have.Runtimes) == 0 || len(have.Walls) == 0 {
		t.Errorf("capabilities: %+v", have)
	}
	r := execute(t, b, "return 1", run.Limits{}, echo)
	if r.Backend != have.Name || r.Runtime != "quickjs" {
		t.Errorf("report of backend %q, runtime %q", r.Backend, r.Runtime)
	}
}

func (s *suite) values(t *testing.T) {
	b := s.backend(t)
	for code, want := range map[string]string{
		"return 1":                    "1",
		"return {b: [1n << 70n]}":     `{"b":[1180591620717411303424]}`,
		"return 'grün \\u0000 👍'":     `"grün \u0000 👍"`,
		"return null":                 "null",
		"const nothing = 1":           "",
		"__exports.default = 'x'":     `"x"`,
		"return 'x'.repeat(1 << 20)":  `"` + strings.Repeat("x", 1<<20) + `"`,
		"return await box.put([1.5])": `{"value":[1.5]}`,
	} {
		r := execute(t, b, "console.log('out ü')\n"+code, run.Limits{}, echo)
		if r.Status != run.StatusOK || r.Error != nil || string(r.Value) != want || string(r.Output) != "out ü\n" {
			t.Errorf("%s: %s %v, %d bytes of value %.50s, output %q", code, r.Status, r.Error, len(r.Value), r.Value, r.Output)
		}
	}
}

func (s *suite) errors(t *testing.T) {
	b := s.backend(t)
	refuse := isolate.HostFunc(func(_ context.Context, c run.Call) (run.Result, error) {
		return run.Result{}, (&run.Error{Kind: run.KindToolError, Message: "refused", Hint: "ask nicely"}).At(c.Server, c.Tool)
	})
	for _, test := range []struct{ code, want string }{
		{"const a = 1\n  null.x", "error runtime 2:7 TypeError: cannot read property 'x' of null"},
		{"\nthrow new Error('mine')", "error runtime 2:16 Error: mine"},
		{"let let", "error syntax 1:5 SyntaxError: variable name expected"},
		{"await null\nawait box.put(1)", "error tool_error 2:14 refused (box.put: ask nicely)"},
		{"const f = () => f()\nf()", "error limit 1:18 the call stack overflowed: functions called each other too deeply"},
		{"await new Promise(() => {})", "error runtime 0:0 the program waits for something that never happens"},
		{"Promise.reject(new RangeError('lost'))", "error runtime 1:30 RangeError: lost"},
		{"try { await box.put(1) } catch (e) { throw new Error(e.kind + e.hint) }", "error runtime 1:53 Error: tool_errorask nicely"},
	} {
		r := execute(t, b, test.code, run.Limits{}, refuse)
		e := run.AsError(r.Error)
		if r.Error == nil {
			t.Errorf("%s: %s", test.code, r.Status)
			continue
		}
		got := fmt.Sprintf("%s %s %d:%d %s", r.Status, e.Kind, e.Line, e.Column, e.Message)
		if e.Server != "" {
			got += fmt.Sprintf(" (%s.%s: %s)", e.Server, e.Tool, e.Hint)
		}
		if got != test.want || r.Value != nil {
			t.Errorf("%s: got %s, want %s", test.code, got, test.want)
		}
	}
}

// calls shows that what travels between program and host is not changed.
func (s *suite) calls(t *testing.T) {
	b := s.backend(t)
	var got []run.Call
	var mu sync.Mutex
	host := isolate.HostFunc(func(_ context.Context, c run.Call) (run.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, c)
		return run.Result{Value: json.RawMessage(`{"z":1.10,"a":12345678901234567890,"__proto__":null}`)}, nil
	})
	r := execute(t, b, `
		const {z, a} = await box.put({id: 9007199254740993n, b: 1, a: 'ü'});
		await callMCPTool('box__put', {x: 1});
		await searchTools('things');
		return [z, a, typeof a]`, run.Limits{}, host)
	if r.Status != run.StatusOK || string(r.Value) != `[1.1,12345678901234567890,"bigint"]` {
		t.Errorf("%s %v %s", r.Status, r.Error, r.Value)
	}
	want := []run.Call{
		{Server: "box", Tool: "put", Arguments: json.RawMessage(`{"id":9007199254740993,"b":1,"a":"ü"}`)},
		{Tool: "call", Arguments: json.RawMessage(`{"name":"box__put","arguments":{"x":1}}`)},
		{Tool: "search_tools", Arguments: json.RawMessage(`{"query":"things"}`)},
	}
	if fmt.Sprintf("%s", got) != fmt.Sprintf("%s", want) {
		t.Errorf("calls:\n%s\nwant:\n%s", got, want)
	}
}

func (s *suite) concurrency(t *testing.T) {
	b := s.backend(t)
	var mu sync.Mutex
	var now, most, all int
	enter := func(n int) (first bool) {
		mu.Lock()
		defer mu.Unlock()
		now += n
		all += max(n, 0)
		most = max(most, now)
		return all <= 5
	}
	var arrived sync.WaitGroup // the first five are there at once, or this hangs
	arrived.Add(5)
	host := isolate.HostFunc(func(ctx context.Context, c run.Call) (run.Result, error) {
		first := enter(1)
		defer enter(-1)
		if first {
			arrived.Done()
			arrived.Wait()
		}
		return run.Result{Value: c.Arguments}, nil
	})
	r := execute(t, b, "const r = await Promise.all(Array.from({length: 200}, (_, i) => box.put(i))); return r.every((x, i) => x.value === i)", run.Limits{Concurrency: 5}, host)
	if string(r.Value) != "true" || most != 5 || all != 200 {
		t.Errorf("%s %v %s: %d calls, %d at once", r.Status, r.Error, r.Value, all, most)
	}
}

func (s *suite) pausedClock(t *testing.T) {
	b := s.backend(t)
	host := isolate.HostFunc(func(ctx context.Context, c run.Call) (run.Result, error) {
		resume := run.Pause(ctx)
		defer resume()
		select { // a person takes longer than the program may
		case <-time.After(900 * time.Millisecond):
		case <-ctx.Done():
		}
		return run.Result{Value: json.RawMessage("true")}, ctx.Err()
	})
	r := execute(t, b, "return await box.put(1)", run.Limits{Timeout: 600 * time.Millisecond}, host)
	if r.Status != run.StatusOK {
		t.Errorf("waiting for a person was counted: %s %v", r.Status, r.Error)
	}
	r = execute(t, b, "await box.put(1); for (;;);", run.Limits{Timeout: 600 * time.Millisecond}, host)
	if r.Status != run.StatusTimeout {
		t.Errorf("after a person was waited for: %s %v", r.Status, r.Error)
	}
}
