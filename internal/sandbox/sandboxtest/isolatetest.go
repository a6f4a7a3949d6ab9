// Package sandboxtest defines the contract of sandboxes as tests that every backend must pass with each of its
// runtimes. The packages guest and python describe the form of the programs.
package sandboxtest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox"
	"retort/internal/sandbox/guest/guesttest"
)

// Run tests one runtime of the backends that newBackend makes. The suite closes
// them.
func Run(t *testing.T, runtime string, newBackend func(t *testing.T) sandbox.Backend) {
	RunSlow(t, runtime, 1, newBackend)
}

// RunSlow works like Run for a backend whose processor is emulated and therefore slower by a factor than the
// machine's. Time limits are multiplied by the factor. On such a backend, a program that catches every out-of-memory
// error of its runtime ends by its timeout. Everything else must be as on other backends.
func RunSlow(t *testing.T, runtime string, factor int, newBackend func(t *testing.T) sandbox.Backend) {
	RunPart(t, runtime, factor, newBackend)
}

// RunPart works like RunSlow, but runs only the tests with the given names. It is for a backend that differs only in
// what these tests cover from one that passes all tests. It runs all tests if there are no names or RETORT_FULL is
// set.
func RunPart(t *testing.T, runtime string, factor int, newBackend func(t *testing.T) sandbox.Backend, names ...string) {
	s := &suite{runtime: runtime, newBackend: func(*testing.T) sandbox.Backend { return newBackend(t) }, slower: factor}
	tests := s.tests()
	for _, name := range names {
		if !slices.ContainsFunc(tests, func(test namedTest) bool { return test.name == name }) {
			t.Fatalf("there is no test %q", name)
		}
	}
	defer s.closeShared(t)
	for _, test := range tests {
		if len(names) == 0 || testenv.Full() || slices.Contains(names, test.name) {
			t.Run(test.name, test.run)
		}
	}
}

// OfInterpreters returns the names of the tests that depend on which guest a backend runs: how the
// guest is started, limited and ended, and what it leaves behind. The other tests cover what happens
// between guest and engine, which is the same in every sandbox.
func OfInterpreters() []string {
	return []string{"capabilities", "calls", "limits", "memory", "recursion", "close", "nothing is left"}
}

// OfRelays returns the names of the tests that depend on the relay between a guest with a network and
// the engine.
func OfRelays() []string {
	return []string{"calls", "concurrency", "limits", "close", "nothing is left"}
}

type namedTest struct {
	name string
	run  func(*testing.T)
}

func (s *suite) tests() []namedTest {
	return []namedTest{
		{"capabilities", s.capabilities},
		{"values", s.values},
		{"errors", s.errors},
		{"calls", s.calls},
		{"concurrency", s.concurrency},
		{"limits", s.limits},
		{"time", s.time},
		{"memory", s.memory},
		{"recursion", s.recursion},
		{"paused clock", s.pausedClock},
		{"cancel", s.cancel},
		{"close", s.close},
		{"refusals", s.refusals},
		{"nothing is left", s.nothingIsLeft},
	}
}

type suite struct {
	runtime    string
	newBackend func(t *testing.T) sandbox.Backend
	slower     int // factor of everything that a program may take

	shared sandbox.Backend // for all tests that do not change it; nil if none is open
}

// text represents one program in JavaScript and in Python. It is empty for a language in which the test does not
// apply.
type text struct{ js, py string }

// in returns the program in the language of the suite's runtime.
func (s *suite) in(p text) string {
	if s.runtime == "python" {
		return p.py
	}
	return p.js
}

// ends maps runtimes to the expected end of a program. A key can name several runtimes.
type ends map[string]string

func (e ends) on(runtime string) (end string, known bool) {
	for runtimes, end := range e {
		if slices.Contains(strings.Fields(runtimes), runtime) {
			return end, true
		}
	}
	return "", false
}

// hang bounds the time of a program that is expected to end by itself.
const hang = testenv.Patience

// backend returns the backend that is shared by all tests that do not change it. The first call creates it.
func (s *suite) backend(t *testing.T) sandbox.Backend {
	if s.shared == nil {
		s.shared = s.newBackend(t)
	}
	return s.shared
}

// closeShared closes the backend that the tests share.
func (s *suite) closeShared(t *testing.T) {
	if s.shared == nil {
		return
	}
	if err := s.shared.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	s.shared = nil
}

// complete fills in the limits of a test.
func (s *suite) complete(l core.Limits) core.Limits {
	l = l.Or(core.Limits{Timeout: hang}).Or(core.DefaultLimits())
	l.Timeout = s.longer(l.Timeout)
	return l
}

// longer converts a duration on the machine's own processor to one on the suite's backend.
func (s *suite) longer(d time.Duration) time.Duration { return time.Duration(s.slower) * d }

func (s *suite) program(p text, l core.Limits) core.Program {
	language, name := core.JavaScript, "program.ts"
	if s.runtime == "python" {
		language, name = core.Python, "program.py"
	}
	return core.Program{ID: "test", Name: name, Language: language, Code: s.in(p), Limits: s.complete(l), Namespaces: []core.Namespace{
		{Server: "box", Global: "box", Modules: []string{"box"}, Functions: []core.Function{{Name: "put", Tool: "put", Params: []string{"value"}}}},
	}}
}

// echo returns the arguments of every call.
var echo = sandbox.HostFunc(func(_ context.Context, c core.Call) (core.Result, error) { return core.Result{Value: c.Arguments}, nil })

func (s *suite) prepare(t testing.TB, b sandbox.Backend, l core.Limits) sandbox.Sandbox {
	t.Helper()
	sandbox, err := b.Prepare(context.Background(), sandbox.Spec{Runtime: s.runtime, Limits: s.complete(l)})
	if err != nil {
		t.Fatalf("Prepare: %v", err)
	}
	return sandbox
}

// execute runs one program in a sandbox of its own.
func (s *suite) execute(t testing.TB, b sandbox.Backend, p text, l core.Limits, h sandbox.Host) sandbox.Report {
	t.Helper()
	sandbox := s.prepare(t, b, l)
	defer sandbox.Close()
	report, err := sandbox.Run(context.Background(), s.program(p, l), h)
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	return report
}

func (s *suite) capabilities(t *testing.T) {
	b := s.backend(t)
	have := b.Capabilities()
	if have.Unavailable != nil || have.Name == "" || !slices.Contains(have.Runtimes, s.runtime) || len(have.Walls) == 0 {
		t.Errorf("capabilities: %+v", have)
	}
	r := s.execute(t, b, one, core.Limits{}, echo)
	if r.Backend != have.Name || r.Runtime != s.runtime {
		t.Errorf("report of backend %q, runtime %q", r.Backend, r.Runtime)
	}
}

var (
	one    = text{"return 1", "result = 1"}
	forth  = text{"for (;;);", "while True: pass"} // and never back
	asleep = text{"await sleep(1e6)", "await sleep(1e6)"}
)

func (s *suite) values(t *testing.T) {
	b := s.backend(t)
	for _, test := range []struct {
		code text
		want string
	}{
		{one, "1"},
		{text{"return {b: [1n << 70n]}", "result = {'b': [1 << 70]}"}, `{"b":[1180591620717411303424]}`},
		{text{"return 'grün \\u0000 👍'", "result = 'grün \\u0000 👍'"}, `"grün \u0000 👍"`},
		{text{"return null", "result = None"}, "null"},
		{text{"const nothing = 1", "nothing = 1"}, ""},
		{text{"__exports.default = 'x'", "'x'"}, `"x"`},
		{text{"return 'x'.repeat(1 << 20)", "'x' * (1 << 20)"}, `"` + strings.Repeat("x", 1<<20) + `"`},
		{text{"return await box.put([1.5])", "return await box.put([1.5])"}, `{"value":[1.5]}`},
	} {
		p := text{"console.log('out ü')\n" + test.code.js, "print('out ü')\n" + test.code.py}
		r := s.execute(t, b, p, core.Limits{}, echo)
		if r.Status != core.StatusOK || r.Error != nil || string(r.Value) != test.want || string(r.Output) != "out ü\n" {
			t.Errorf("%s: %s %v, %d bytes of value %.50s, output %q", s.in(p), r.Status, r.Error, len(r.Value), r.Value, r.Output)
		}
	}
}

// errors compares error messages. Those of Python are from 3.11 and later.
func (s *suite) errors(t *testing.T) {
	b := s.backend(t)
	refuse := sandbox.HostFunc(func(_ context.Context, c core.Call) (core.Result, error) {
		return core.Result{}, (&core.Error{Kind: core.KindToolError, Message: "refused", Hint: "ask nicely"}).At(c.Server, c.Tool)
	})
	for _, test := range []struct {
		code text
		want ends
	}{
		{text{"const a = 1\n  null.x", "a = 1\nNone.x"}, ends{
			"quickjs":   "error runtime 2:7 TypeError: cannot read property 'x' of null",
			"node deno": "error runtime 2:8 TypeError: Cannot read properties of null (reading 'x')",
			"bun":       "error runtime 2:7 TypeError: null is not an object (evaluating 'null.x')",
			"python":    "error runtime 2:1 AttributeError: 'NoneType' object has no attribute 'x'"}},
		{text{"\nthrow new Error('mine')", "\nraise ValueError('mine')"}, ends{
			"quickjs": "error runtime 2:16 Error: mine", "node bun deno": "error runtime 2:7 Error: mine", "python": "error runtime 2:1 ValueError: mine"}},
		{text{"let let", "def def"}, ends{
			"quickjs": "error syntax 1:5 SyntaxError: variable name expected",
			"node":    "error syntax 1:5 SyntaxError: Unexpected strict mode reserved word",
			"deno":    "error syntax 0:0 SyntaxError: Unexpected strict mode reserved word",
			"bun":     "error syntax 1:5 SyntaxError: Cannot use 'let' as a lexical variable name in strict mode.",
			"python":  "error syntax 1:5 SyntaxError: invalid syntax"}},
		{text{"await null\nawait box.put(1)", "a = 1\nbox.put(1)"}, ends{
			"quickjs bun": "error tool_error 2:14 refused (box.put: ask nicely)", "node deno": "error tool_error 2:11 refused (box.put: ask nicely)", "python": "error tool_error 2:1 refused (box.put: ask nicely)"}},
		{text{"await new Promise(() => {})", "import asyncio\nawait asyncio.Future()"}, ends{
			"quickjs node bun deno python": "error runtime 0:0 the program waits for something that never happens"}},
		{text{"Promise.reject(new RangeError('lost'))", "import asyncio\nasync def lost(): raise IndexError('lost')\nasyncio.create_task(lost())"}, ends{
			"quickjs": "error runtime 1:30 RangeError: lost", "node bun deno": "error runtime 1:16 RangeError: lost", "python": "error runtime 2:19 IndexError: lost"}},
		{text{"try { await box.put(1) } catch (e) { throw new Error(e.kind + e.hint) }", "try: box.put(1)\nexcept ToolError as e: raise ValueError(e.kind + e.hint) from None"}, ends{
			"quickjs": "error runtime 1:53 Error: tool_errorask nicely", "node bun deno": "error runtime 1:44 Error: tool_errorask nicely", "python": "error runtime 2:24 ValueError: tool_errorask nicely"}},
	} {
		r := s.execute(t, b, test.code, core.Limits{}, refuse)
		e := core.AsError(r.Error)
		if r.Error == nil {
			t.Errorf("%s: %s", s.in(test.code), r.Status)
			continue
		}
		got := fmt.Sprintf("%s %s %d:%d %s", r.Status, e.Kind, e.Line, e.Column, e.Message)
		if e.Server != "" {
			got += fmt.Sprintf(" (%s.%s: %s)", e.Server, e.Tool, e.Hint)
		}
		want, _ := test.want.on(s.runtime)
		if s.runtime == "bun" {
			got, want = guesttest.WithoutColumns(got), guesttest.WithoutColumns(want)
		}
		if got != want || r.Value != nil {
			t.Errorf("%s:\ngot  %s\nwant %s", s.in(test.code), got, want)
		}
	}
}

// calls checks that data between program and host is not changed.
func (s *suite) calls(t *testing.T) {
	b := s.backend(t)
	var got []core.Call
	var mu sync.Mutex
	host := sandbox.HostFunc(func(_ context.Context, c core.Call) (core.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, c)
		return core.Result{Value: json.RawMessage(`{"z":1.10,"a":12345678901234567890,"__proto__":null}`)}, nil
	})
	r := s.execute(t, b, text{`
		const {z, a} = await box.put({id: 9007199254740993n, b: 1, a: 'ü'});
		await callMCPTool('box__put', {x: 1});
		await searchTools('things');
		return [z, a, typeof a === 'bigint']`, `
r = box.put({'id': 9007199254740993, 'b': 1, 'a': 'ü'})
call_mcp_tool('box__put', {'x': 1})
search_tools('things')
[r['z'], r['a'], type(r['a']) is int]`}, core.Limits{}, host)
	if r.Status != core.StatusOK || string(r.Value) != `[1.1,12345678901234567890,true]` {
		t.Errorf("%s %v %s", r.Status, r.Error, r.Value)
	}
	want := []core.Call{
		{Server: "box", Tool: "put", Arguments: json.RawMessage(`{"id":9007199254740993,"b":1,"a":"ü"}`)},
		{Tool: "call", Arguments: json.RawMessage(`{"name":"box__put","arguments":{"x":1}}`)},
		{Tool: "search_tools", Arguments: json.RawMessage(`{"query":"things"}`)},
	}
	if fmt.Sprintf("%v", got) != fmt.Sprintf("%v", want) {
		t.Errorf("calls:\n%v\nwant:\n%v", got, want)
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
	host := sandbox.HostFunc(func(ctx context.Context, c core.Call) (core.Result, error) {
		first := enter(1)
		defer enter(-1)
		if first {
			arrived.Done()
			arrived.Wait()
		}
		return core.Result{Value: c.Arguments}, nil
	})
	r := s.execute(t, b, text{
		"const r = await Promise.all(Array.from({length: 200}, (_, i) => box.put(i))); return r.every((x, i) => x.value === i)",
		"import asyncio\nr = await asyncio.gather(*[box.put(i) for i in range(200)])\nall(x['value'] == i for i, x in enumerate(r))",
	}, core.Limits{Concurrency: 5}, host)
	if string(r.Value) != "true" || most != 5 || all != 200 {
		t.Errorf("%s %v %s: %d calls, %d at once", r.Status, r.Error, r.Value, all, most)
	}
}

// pausedClock checks that a call that pauses the clock, such as to wait for a person, also pauses and
// resumes the clock that the caller of Run keeps.
func (s *suite) pausedClock(t *testing.T) {
	b := s.backend(t)
	var paused, resumed int
	ctx := core.WithPause(t.Context(), func() func() {
		paused++
		return func() { resumed++ }
	})
	box := s.prepare(t, b, core.Limits{})
	defer box.Close()
	host := sandbox.HostFunc(func(ctx context.Context, c core.Call) (core.Result, error) {
		resume := core.Pause(ctx)
		if paused != 1 || resumed != 0 {
			t.Errorf("during the call: paused %d times, resumed %d times", paused, resumed)
		}
		resume()
		return core.Result{Value: c.Arguments}, nil
	})
	r, err := box.Run(ctx, s.program(text{"await box.put(1)", "box.put(1)"}, core.Limits{}), host)
	if err != nil || r.Status != core.StatusOK || paused != 1 || resumed != 1 {
		t.Errorf("%v, %s %v: paused %d times, resumed %d times", err, r.Status, r.Error, paused, resumed)
	}
}
