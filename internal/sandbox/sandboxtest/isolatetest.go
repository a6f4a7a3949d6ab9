// Package sandboxtest defines the contract of sandboxes as tests. Every backend must pass them with each of its
// runtimes. The packages guest and python describe the form of the test programs.
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

// Run tests one runtime of a backend. The tests create backends with newBackend and close them.
func Run(t *testing.T, runtime string, newBackend func(t *testing.T) sandbox.Backend) {
	RunSlow(t, runtime, 1, newBackend)
}

// RunSlow works like Run, for a backend with an emulated processor. The argument factor is how many times slower this
// processor is than the machine's, and RunSlow multiplies timeouts by it. On this kind of backend, a Python program
// that catches every out-of-memory error is expected to end by its timeout, not by its memory limit.
func RunSlow(t *testing.T, runtime string, factor int, newBackend func(t *testing.T) sandbox.Backend) {
	RunPart(t, runtime, factor, newBackend)
}

// RunPart works like RunSlow, but runs only the tests with the given names. It is for a backend that differs from a
// fully tested backend only in what these tests cover. If there are no names or RETORT_FULL is set, it runs all
// tests.
func RunPart(t *testing.T, runtime string, factor int, newBackend func(t *testing.T) sandbox.Backend, names ...string) {
	s := &backendSuite{runtime: runtime, newBackend: func(*testing.T) sandbox.Backend { return newBackend(t) }, slower: factor}
	tests := s.namedTests()
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

// OfInterpreters returns the names of the tests that a backend must pass with each interpreter, because their results
// depend on how a guest is started, limited and ended. The other tests cover the communication of guest and engine,
// which is the same in every sandbox.
func OfInterpreters() []string {
	return []string{"capabilities", "calls", "limits", "memory", "recursion", "close", "nothing is left"}
}

// OfRelays returns the names of the tests whose results depend on the relay, which is the process between the engine
// and a guest with network access.
func OfRelays() []string {
	return []string{"calls", "concurrency", "limits", "close", "nothing is left"}
}

type namedTest struct {
	name string
	run  func(*testing.T)
}

func (s *backendSuite) namedTests() []namedTest {
	return []namedTest{
		{"capabilities", s.testCapabilities},
		{"values", s.testValues},
		{"errors", s.testErrors},
		{"calls", s.testCalls},
		{"concurrency", s.testConcurrency},
		{"limits", s.testLimits},
		{"time", s.testTime},
		{"memory", s.testMemory},
		{"recursion", s.testRecursion},
		{"paused clock", s.pausedClock},
		{"cancel", s.testCancel},
		{"close", s.testClose},
		{"refusals", s.testRefusals},
		{"nothing is left", s.testNothingIsLeft},
	}
}

type backendSuite struct {
	runtime    string
	newBackend func(t *testing.T) sandbox.Backend
	slower     int // factor by which the backend is slower than the machine; timeouts are multiplied by it

	shared sandbox.Backend // backend for all tests that do not change it; nil if no test has created it
}

// programText holds the same test program in JavaScript and in Python. If the program does not apply to one of the
// languages, its text in that language is empty.
type programText struct{ js, py string }

// textFor returns the program in the language of the suite's runtime.
func (s *backendSuite) textFor(p programText) string {
	if s.runtime == "python" {
		return p.py
	}
	return p.js
}

// expectedEnds says how a program is expected to end on each runtime. A key may name several runtimes, separated by
// spaces.
type expectedEnds map[string]string

func (e expectedEnds) endOn(runtime string) (end string, known bool) {
	for runtimes, end := range e {
		if slices.Contains(strings.Fields(runtimes), runtime) {
			return end, true
		}
	}
	return "", false
}

// hangTimeout is the timeout of programs that are expected to end by themselves.
const hangTimeout = testenv.Patience

// sharedBackend returns the backend for all tests that do not change it. The first call creates the backend.
func (s *backendSuite) sharedBackend(t *testing.T) sandbox.Backend {
	if s.shared == nil {
		s.shared = s.newBackend(t)
	}
	return s.shared
}

// closeShared closes the backend that sharedBackend has created, if any.
func (s *backendSuite) closeShared(t *testing.T) {
	if s.shared == nil {
		return
	}
	if err := s.shared.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	s.shared = nil
}

// completeLimits sets the limits that are zero to their defaults, and scales the timeout for a slow processor.
func (s *backendSuite) completeLimits(l core.Limits) core.Limits {
	l = l.WithDefaults(core.Limits{Timeout: hangTimeout}).WithDefaults(core.DefaultLimits())
	l.Timeout = s.scaleDuration(l.Timeout)
	return l
}

// scaleDuration multiplies a duration by the factor by which the backend's processor is slower than the machine's.
func (s *backendSuite) scaleDuration(d time.Duration) time.Duration {
	return time.Duration(s.slower) * d
}

func (s *backendSuite) makeProgram(p programText, l core.Limits) core.CheckedProgram {
	language, name := core.JavaScript, "program.ts"
	if s.runtime == "python" {
		language, name = core.Python, "program.py"
	}
	return core.CheckedProgram{ID: "test", Name: name, Language: language, Code: s.textFor(
		p,
	), Limits: s.completeLimits(l), Namespaces: []core.ServerNamespace{
		{
			Server: "box", Global: "box", Modules: []string{"box"},
			Functions: []core.ToolFunction{{Name: "put", Tool: "put", Params: []string{"value"}}},
		},
	}}
}

// echo implements a ToolHost that answers every call with the call's arguments.
var echo = sandbox.HostFunc(func(_ context.Context, c core.ToolCall) (core.CallResult, error) {
	return core.CallResult{Value: c.Arguments}, nil
})

func (s *backendSuite) prepareSandbox(t testing.TB, b sandbox.Backend, l core.Limits) sandbox.Sandbox {
	t.Helper()
	sandbox, err := b.Prepare(context.Background(), sandbox.SandboxSpec{Runtime: s.runtime, Limits: s.completeLimits(l)})
	if err != nil {
		t.Fatalf("Prepare: %v", err)
	}
	return sandbox
}

// executeProgram runs a program in a new sandbox and returns its report.
func (s *backendSuite) executeProgram(t testing.TB, b sandbox.Backend, p programText, l core.Limits, h sandbox.ToolHost) sandbox.RunReport {
	t.Helper()
	sandbox := s.prepareSandbox(t, b, l)
	defer sandbox.Close()
	report, err := sandbox.Run(context.Background(), s.makeProgram(p, l), h)
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	return report
}

func (s *backendSuite) testCapabilities(t *testing.T) {
	b := s.sharedBackend(t)
	have := b.Capabilities()
	if have.Unavailable != nil || have.Name == "" || have.Name != b.Kind().Name || !slices.Contains(have.Runtimes, s.runtime) || len(have.Walls) == 0 {
		t.Errorf("capabilities: %+v", have)
	}
	r := s.executeProgram(t, b, one, core.Limits{}, echo)
	if r.Backend != have.Name || r.Runtime != s.runtime {
		t.Errorf("report of backend %q, runtime %q", r.Backend, r.Runtime)
	}
}

var (
	one         = programText{"return 1", "result = 1"}
	endlessLoop = programText{"for (;;);", "while True: pass"} // a program that runs for ever
	asleep      = programText{"await sleep(1e6)", "await sleep(1e6)"}
)

func (s *backendSuite) testValues(t *testing.T) {
	b := s.sharedBackend(t)
	for _, test := range []struct {
		code programText
		want string
	}{
		{one, "1"},
		{programText{"return {b: [1n << 70n]}", "result = {'b': [1 << 70]}"}, `{"b":[1180591620717411303424]}`},
		{programText{"return 'grün \\u0000 👍'", "result = 'grün \\u0000 👍'"}, `"grün \u0000 👍"`},
		{programText{"return null", "result = None"}, "null"},
		{programText{"const nothing = 1", "nothing = 1"}, ""},
		{programText{"__exports.default = 'x'", "'x'"}, `"x"`},
		{programText{"return 'x'.repeat(1 << 20)", "'x' * (1 << 20)"}, `"` + strings.Repeat("x", 1<<20) + `"`},
		{programText{"return await box.put([1.5])", "return await box.put([1.5])"}, `{"value":[1.5]}`},
	} {
		p := programText{"console.log('out ü')\n" + test.code.js, "print('out ü')\n" + test.code.py}
		r := s.executeProgram(t, b, p, core.Limits{}, echo)
		if r.Status != core.StatusOK || r.Error != nil || string(r.Value) != test.want || string(r.Output) != "out ü\n" {
			t.Errorf("%s: %s %v, %d bytes of value %.50s, output %q", s.textFor(p), r.Status, r.Error, len(r.Value), r.Value, r.Output)
		}
	}
}

// testErrors tests the messages and positions of the errors with which failing programs end. Python must be version
// 3.11 or later.
func (s *backendSuite) testErrors(t *testing.T) {
	b := s.sharedBackend(t)
	refuse := sandbox.HostFunc(func(_ context.Context, c core.ToolCall) (core.CallResult, error) {
		return core.CallResult{}, (&core.Error{Kind: core.KindToolError, Message: "refused", Hint: "ask nicely"}).AtTool(c.Server, c.Tool)
	})
	for _, test := range []struct {
		code programText
		want expectedEnds
	}{
		{programText{"const a = 1\n  null.x", "a = 1\nNone.x"}, expectedEnds{
			"quickjs":   "error runtime 2:7 TypeError: cannot read property 'x' of null",
			"node deno": "error runtime 2:8 TypeError: Cannot read properties of null (reading 'x')",
			"bun":       "error runtime 2:7 TypeError: null is not an object (evaluating 'null.x')",
			"python":    "error runtime 2:1 AttributeError: 'NoneType' object has no attribute 'x'"}},
		{programText{"\nthrow new Error('mine')", "\nraise ValueError('mine')"}, expectedEnds{
			"quickjs": "error runtime 2:16 Error: mine", "node bun deno": "error runtime 2:7 Error: mine",
			"python": "error runtime 2:1 ValueError: mine"}},
		{programText{"let let", "def def"}, expectedEnds{
			"quickjs": "error syntax 1:5 SyntaxError: variable name expected",
			"node":    "error syntax 1:5 SyntaxError: Unexpected strict mode reserved word",
			"deno":    "error syntax 0:0 SyntaxError: Unexpected strict mode reserved word",
			"bun":     "error syntax 1:5 SyntaxError: Cannot use 'let' as a lexical variable name in strict mode.",
			"python":  "error syntax 1:5 SyntaxError: invalid syntax"}},
		{programText{"await null\nawait box.put(1)", "a = 1\nbox.put(1)"}, expectedEnds{
			"quickjs bun": "error tool_error 2:14 refused (box.put: ask nicely)",
			"node deno":   "error tool_error 2:11 refused (box.put: ask nicely)",
			"python":      "error tool_error 2:1 refused (box.put: ask nicely)"}},
		{programText{"await new Promise(() => {})", "import asyncio\nawait asyncio.Future()"}, expectedEnds{
			"quickjs node bun deno python": "error runtime 0:0 the program waits for something that can never happen"}},
		{programText{
			"Promise.reject(new RangeError('lost'))",
			"import asyncio\nasync def lost(): raise IndexError('lost')\nasyncio.create_task(lost())",
		}, expectedEnds{
			"quickjs": "error runtime 1:30 RangeError: lost", "node bun deno": "error runtime 1:16 RangeError: lost",
			"python": "error runtime 2:19 IndexError: lost"}},
		{programText{
			"try { await box.put(1) } catch (e) { throw new Error(e.kind + e.hint) }",
			"try: box.put(1)\nexcept ToolError as e: raise ValueError(e.kind + e.hint) from None",
		}, expectedEnds{
			"quickjs": "error runtime 1:53 Error: tool_errorask nicely", "node bun deno": "error runtime 1:44 Error: tool_errorask nicely", "python": "error runtime 2:24 ValueError: tool_errorask nicely"}},
	} {
		r := s.executeProgram(t, b, test.code, core.Limits{}, refuse)
		e := core.AsError(r.Error)
		if r.Error == nil {
			t.Errorf("%s: %s", s.textFor(test.code), r.Status)
			continue
		}
		got := fmt.Sprintf("%s %s %d:%d %s", r.Status, e.Kind, e.Line, e.Column, e.Message)
		if e.Server != "" {
			got += fmt.Sprintf(" (%s.%s: %s)", e.Server, e.Tool, e.Hint)
		}
		want, _ := test.want.endOn(s.runtime)
		if s.runtime == "bun" {
			got, want = guesttest.WithoutColumns(got), guesttest.WithoutColumns(want)
		}
		if got != want || r.Value != nil {
			t.Errorf("%s:\ngot  %s\nwant %s", s.textFor(test.code), got, want)
		}
	}
}

// testCalls tests that call arguments and results are passed between program and host unchanged.
func (s *backendSuite) testCalls(t *testing.T) {
	b := s.sharedBackend(t)
	var got []core.ToolCall
	var mu sync.Mutex
	host := sandbox.HostFunc(func(_ context.Context, c core.ToolCall) (core.CallResult, error) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, c)
		return core.CallResult{Value: json.RawMessage(`{"z":1.10,"a":12345678901234567890,"__proto__":null}`)}, nil
	})
	r := s.executeProgram(t, b, programText{`
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
	want := []core.ToolCall{
		{Server: "box", Tool: "put", Arguments: json.RawMessage(`{"id":9007199254740993,"b":1,"a":"ü"}`)},
		{Tool: "call", Arguments: json.RawMessage(`{"name":"box__put","arguments":{"x":1}}`)},
		{Tool: "search_tools", Arguments: json.RawMessage(`{"query":"things"}`)},
	}
	if fmt.Sprintf("%v", got) != fmt.Sprintf("%v", want) {
		t.Errorf("calls:\n%v\nwant:\n%v", got, want)
	}
}

func (s *backendSuite) testConcurrency(t *testing.T) {
	b := s.sharedBackend(t)
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
	host := sandbox.HostFunc(func(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
		first := enter(1)
		defer enter(-1)
		if first {
			arrived.Done()
			arrived.Wait()
		}
		return core.CallResult{Value: c.Arguments}, nil
	})
	r := s.executeProgram(t, b, programText{
		"const r = await Promise.all(Array.from({length: 200}, (_, i) => box.put(i))); return r.every((x, i) => x.value === i)",
		"import asyncio\nr = await asyncio.gather(*[box.put(i) for i in range(200)])\nall(x['value'] == i for i, x in enumerate(r))",
	}, core.Limits{Concurrency: 5}, host)
	if string(r.Value) != "true" || most != 5 || all != 200 {
		t.Errorf("%s %v %s: %d calls, %d at once", r.Status, r.Error, r.Value, all, most)
	}
}

// pausedClock tests that a call can pause the clock that measures the program's time, for example while the call
// waits for a person. When the call pauses or resumes the program's clock, the clock of the caller of Run must be
// paused or resumed, too.
func (s *backendSuite) pausedClock(t *testing.T) {
	b := s.sharedBackend(t)
	var paused, resumed int
	ctx := core.WithPause(t.Context(), func() func() {
		paused++
		return func() { resumed++ }
	})
	box := s.prepareSandbox(t, b, core.Limits{})
	defer box.Close()
	host := sandbox.HostFunc(func(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
		resume := core.PauseClock(ctx)
		if paused != 1 || resumed != 0 {
			t.Errorf("during the call: paused %d times, resumed %d times", paused, resumed)
		}
		resume()
		return core.CallResult{Value: c.Arguments}, nil
	})
	r, err := box.Run(ctx, s.makeProgram(programText{"await box.put(1)", "box.put(1)"}, core.Limits{}), host)
	if err != nil || r.Status != core.StatusOK || paused != 1 || resumed != 1 {
		t.Errorf("%v, %s %v: paused %d times, resumed %d times", err, r.Status, r.Error, paused, resumed)
	}
}
