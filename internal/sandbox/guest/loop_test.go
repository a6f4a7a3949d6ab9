package guest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox/wire"
)

func TestHasLongInteger(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "1": false, "123456789012345": false, "1234567890123456": true, "[1234567890123456]": true,
		`{"a":123456789012345,"b":123456789012345}`: false, `x1234567890123456`: true, `"a1234567890123456b"`: true,
		"012345678901234x1234567890123456": true, "123456789012345 123456789012345 1": false, "-12345678901234567890": true,
	} {
		if got := hasLongInteger([]byte(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func FuzzHasLongInteger(f *testing.F) {
	f.Add([]byte("ab1234567890123456cd123"))
	f.Add([]byte("123456789012345,123456789012345,12345678901234567"))
	long := regexp.MustCompile(`[0-9]{16}`)
	f.Fuzz(func(t *testing.T, data []byte) {
		if got := hasLongInteger(data); got != long.Match(data) {
			t.Errorf("%q: %v", data, got)
		}
	})
}

func TestTimers(t *testing.T) {
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	timers := newTimers()
	for id, ms := range map[int]int{1: 30, 2: 10, 3: 20} {
		timers.addTimer(id, at(ms))
	}
	timers.addTimer(4, at(10))
	timers.addTimer(5, at(40))
	timers.addTimer(5, at(5)) // starts again
	timers.removeTimer(3)
	timers.removeTimer(99)
	if id, due := timers.takeDue(at(4)); due {
		t.Errorf("timer %d is early", id)
	}
	var fired []int
	for id, due := timers.takeDue(at(100)); due; id, due = timers.takeDue(at(100)) {
		fired = append(fired, id)
	}
	if !slices.Equal(fired, []int{5, 2, 4, 1}) {
		t.Errorf("fired %v", fired)
	}
	if _, pending := timers.nextDue(); pending || len(timers.byID) != 0 {
		t.Error("timers are left")
	}
}

// TestNames checks that stack traces do not show a program's name if it is empty or contains special characters.
func TestNames(t *testing.T) {
	onAll(t, func(t *testing.T, runProgram runner) {
		for name, want := range map[string]string{"": "program.ts", "a/b-1.ts": "a/b-1.ts", "x (y:1:2)\n": "program.ts", "ü.ts": "program.ts"} {
			end := runProgram(t, core.CheckedProgram{Name: name, Code: "\nnull.x"}, &fakeHost{})
			if end.Error == nil || end.Error.Line != 2 || !strings.HasPrefix(end.Error.Stack, "at "+want+":2:") {
				t.Errorf("%q: %+v", name, end.Error)
			}
		}
	})
}

// TestManyTools checks that a program with ten thousand tool functions works. The functions of a server are decoded
// only when the program uses the server.
func TestManyTools(t *testing.T) {
	var namespaces []core.ServerNamespace
	for s := range 100 {
		n := core.ServerNamespace{Server: "s" + string(rune('a'+s%26)) + string(rune('a'+s/26)), Modules: []string{"m"}}
		n.Global = n.Server
		for range 100 {
			n.Functions = append(n.Functions, core.ToolFunction{Name: "fn" + string(rune('a'+len(n.Functions)%26)) + string(rune('a'+len(n.Functions)/26)), Tool: "t", Params: []string{"a", "b"}})
		}
		namespaces = append(namespaces, n)
	}
	onAll(t, func(t *testing.T, runProgram runner) {
		end := runProgram(t, core.CheckedProgram{Code: "return [Object.keys(saa).length, Object.keys(servers).length, (await sbc.fnaa(1, 2)).b]", Namespaces: namespaces}, &fakeHost{})
		if end.Status != core.StatusOK || string(end.Value) != "[100,100,2]" {
			t.Errorf("%s %v %s", end.Status, end.Error, end.Value)
		}
	})
}

// TestLargeValues checks that arguments, results and values of several megabytes arrive unchanged.
func TestLargeValues(t *testing.T) {
	onAll(t, func(t *testing.T, runProgram runner) {
		end := runProgram(t, core.CheckedProgram{Namespaces: demoNamespaces, Code: `
		const text = 'grün👍'.repeat(300_000);
		const back = await demo.echo({text});
		return [back.text === text, back.text]`}, &fakeHost{})
		if end.Status != core.StatusOK || len(end.Value) < 2_700_000 {
			t.Errorf("%s %v, %d bytes", end.Status, end.Error, len(end.Value))
		}
	})
}

func TestAnswer(t *testing.T) {
	for _, test := range []struct {
		frame wire.Frame
		want  string
	}{
		{wire.Frame{Body: []byte(`{"a":1}`)}, `v{"a":1}`},
		{wire.Frame{Body: []byte(`12345678901234567890`)}, `b12345678901234567890`},
		{wire.Frame{Head: []byte(`{"error":{"kind":"tool_error","message":"m"}}`)}, `e{"kind":"tool_error","message":"m"}`},
	} {
		if got := encodeAnswer(test.frame); got != test.want {
			t.Errorf("%s, want %s", got, test.want)
		}
	}
}

// TestLargeErrors checks that a program that throws a very large error ends with an error message of bounded size.
func TestLargeErrors(t *testing.T) {
	onAll(t, func(t *testing.T, runProgram runner) {
		for _, code := range []string{
			"throw new Error('x'.repeat(1e6))", "throw 'x'.repeat(1e6)", "throw {large: 'x'.repeat(1e6)}",
			"throw new ToolError('x'.repeat(1e6), {kind: 'k'.repeat(1e5), server: 's'.repeat(1e5), tool: 't'.repeat(1e5), hint: 'h'.repeat(1e6)})",
			"const e = new Error('m'); e.name = 'N'.repeat(1e6); e.stack = 'at '.repeat(1e6); throw e",
			"({['f'.repeat(1e5)]() { null.x }})['f'.repeat(1e5)]()",
			"throw new AggregateError(Array.from({length: 1e3}, () => new Error('y'.repeat(1e4))), 'many')",
		} {
			end := runProgram(t, core.CheckedProgram{Code: code}, &fakeHost{})
			if end.Status != core.StatusError || end.Error.Kind == core.KindInternal || len(end.Error.Message) > 20_000 || end.Error.Message == "" {
				t.Errorf("%s: %s %s %.200s", code, end.Status, end.Error.Kind, end.Error.Message)
			}
		}
	})
}

func TestCallsLeftUnderWay(t *testing.T) {
	onAll(t, func(t *testing.T, runProgram runner) {
		for _, code := range []string{"demo.slow({ms: 60000}); return 1", "demo.slow({ms: 60000}); null.x"} {
			end := runProgram(t, core.CheckedProgram{Code: code, Namespaces: demoNamespaces}, &fakeHost{})
			if len(end.Warnings) != 1 || !strings.Contains(end.Warnings[0], "running when the program ended: 1") {
				t.Errorf("%s: %s %q", code, end.Status, end.Warnings)
			}
		}
	})
}

// TestManyJobs checks that a program may run more than a million jobs (pending promise reactions). The QuickJS library
// returns an error after every million jobs.
func TestManyJobs(t *testing.T) {
	const jobs = 1<<20 + 100_000
	onAll(t, func(t *testing.T, runProgram runner) {
		for name, code := range map[string]string{
			"generator":      "async function* rows() { for (let i = 0; i < jobs / 2; i++) yield i } let n = 0; for await (const row of rows()) n++; return 2 * n",
			"tasks":          "let n = 0; const task = async () => { await 0; n++; await 0; n++; await 0; n++; await 0; n++ }; await Promise.all(Array.from({length: jobs / 4}, task)); return n",
			"a call between": "let n = 0; for (; n < jobs; n++) await n; const {text} = await demo.echo({text: 'x'}); return text === 'x' ? n : text",
		} {
			if name != "a call between" && !testenv.Full() {
				continue // the others end in the same loop
			}
			end := runProgram(t, core.CheckedProgram{Code: fmt.Sprintf("const jobs = %d; ", jobs) + code, Namespaces: demoNamespaces}, &fakeHost{})
			if end.Status != core.StatusOK || string(end.Value) != strconv.Itoa(jobs) {
				t.Errorf("%s: %s %v %s", name, end.Status, end.Error, end.Value)
			}
		}
	})
}
