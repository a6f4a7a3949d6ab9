package isolatetest

import (
	"strings"
	"testing"
	"time"

	"retort/internal/run"
)

// limited is a program that must reach a limit.
type limited struct {
	name   string
	code   string
	limits run.Limits
	status run.Status
}

const (
	short = 500 * time.Millisecond
	small = 48 << 20
)

// before is printed first by each of these programs, and must have been kept.
const before = "before\n"

func (s *suite) limits(t *testing.T) {
	s.reach(t, []limited{
		{"calls", "for (let i = 0; i < 11; i++) await box.put(i)", run.Limits{ToolCalls: 10}, run.StatusCallLimit},
		{"calls by name", "for (let i = 0; i < 11; i++) await callMCPTool('box__put')", run.Limits{ToolCalls: 10}, run.StatusCallLimit},
		{"calls at once", "await Promise.all(Array.from({length: 11}, () => box.put(1)))", run.Limits{ToolCalls: 10}, run.StatusCallLimit},
		{"output", "for (;;) console.log('x'.repeat(100))", run.Limits{Output: 10_000}, run.StatusOutputLimit},
		{"output at once", "console.log('ü'.repeat(1 << 20))", run.Limits{Output: 10_000}, run.StatusOutputLimit},
		{"result", "return 'x'.repeat(2000)", run.Limits{Result: 1000}, run.StatusOutputLimit},
		{"time", "for (;;);", run.Limits{Timeout: short}, run.StatusTimeout},
		{"time asleep", "await sleep(1e6)", run.Limits{Timeout: short}, run.StatusTimeout},
	})
	b := s.backend(t)
	if r := execute(t, b, "for (let i = 0; i < 10; i++) await box.put(i); await searchTools('free'); return 1", run.Limits{ToolCalls: 10}, echo); r.Status != run.StatusOK {
		t.Errorf("ten of ten calls: %s %v", r.Status, r.Error)
	}
	if r := execute(t, b, "console.log('ü'.repeat(4999)); return 'x'.repeat(998)", run.Limits{Output: 9999, Result: 1000}, echo); r.Status != run.StatusOK || len(r.Output) != 9999 {
		t.Errorf("output and value of just the size allowed: %s %v", r.Status, r.Error)
	}
}

// hostile are programs that no limit within the runtime ends well.
func (s *suite) hostile(t *testing.T) {
	s.reach(t, []limited{
		{"microtasks", "const f = () => Promise.resolve().then(f); f(); await sleep(1e6)", run.Limits{Timeout: short}, run.StatusTimeout},
		{"await for ever", "for (;;) await null", run.Limits{Timeout: short}, run.StatusTimeout},
		{"uncatchable", "for (;;) try { for (;;); } catch {} finally { for (;;); }", run.Limits{Timeout: short}, run.StatusTimeout},
		{"regular expression", "/^(a+)+$/.test('a'.repeat(40) + 'b')", run.Limits{Timeout: short}, run.StatusTimeout},
		{"long search", "const s = 'ab'.repeat(1 << 23); for (let i = 0; i < 1000; i++) s.lastIndexOf('ba'.repeat(1000) + 'c')", run.Limits{Timeout: short}, run.StatusTimeout},
		{"sorting", "[...Array(1e6).keys()].sort(() => { for (;;); })", run.Limits{Timeout: short}, run.StatusTimeout},
		{"timers", "const f = () => { setTimeout(f); setTimeout(f) }; f(); await sleep(1e6)", run.Limits{Timeout: short, Memory: 1 << 30}, run.StatusTimeout},
		{"growing text", "let s = 'x'; for (;;) s += s", run.Limits{Memory: small}, run.StatusMemoryLimit},
		{"growing list", "const a = []; for (;;) a.push({a: 1})", run.Limits{Memory: small}, run.StatusMemoryLimit},
		{"growing list of a global", "globalThis.a = []; for (;;) a.push('x' + a.length)", run.Limits{Memory: small}, run.StatusMemoryLimit},
		{"growing map", "const m = new Map(); for (let i = 0; ; i++) m.set(i, [i])", run.Limits{Memory: small}, run.StatusMemoryLimit},
		{"growing in steps", "globalThis.a = []; for (;;) { a.push(new Uint8Array(1 << 20)); await null }", run.Limits{Memory: small}, run.StatusMemoryLimit},
		{"closures", "let f = () => 1; for (;;) { const g = f, x = []; f = () => [g, x] }", run.Limits{Memory: small}, run.StatusMemoryLimit},
		{"4 GB at once", "return new Uint8Array(4e9).length", run.Limits{Memory: small}, run.StatusMemoryLimit},
		{"1 GB at once", "return new Float64Array(1.3e8).fill(1).length", run.Limits{Memory: small}, run.StatusMemoryLimit},
		{"4 GB of text", "return 'x'.repeat(4e9).length", run.Limits{Memory: small}, run.StatusMemoryLimit},
		{"1 GB of text", "return 'x'.repeat(1e9).length", run.Limits{Memory: small}, run.StatusMemoryLimit},
		{"text doubled to 4 GB", "let s = 'x'; for (let i = 0; i < 32; i++) s += s; return s.length", run.Limits{Memory: 4 << 30}, run.StatusMemoryLimit},
		{"caught for ever", "const a = []; for (;;) try { a.push(new Array(1e5).fill(a)) } catch {}", run.Limits{Memory: small, Timeout: 3 * short}, run.StatusTimeout},
		{"values too large for the memory", "return Array.from({length: 40}, () => 'x'.repeat(1 << 20)).map((x) => [x, x, x])", run.Limits{Memory: small}, run.StatusMemoryLimit},
		{"recursion", "const f = (n) => n === 0 ? 0 : 1 + f(n - 1); return f(1e6)", run.Limits{}, run.StatusError},
		{"recursion through the runtime", "const f = () => [1].map(f); f()", run.Limits{}, run.StatusError},
		{"recursion in toString", "const o = {toString() { return `${o}` }}; `${o}`", run.Limits{}, run.StatusError},
		{"recursion through proxies", "let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.x", run.Limits{}, run.StatusError},
		{"deep JSON", "JSON.parse('['.repeat(1e7))", run.Limits{}, run.StatusError},
	})
}

// reach runs each program and checks how it ended, and that it did soon after
// its limit.
func (s *suite) reach(t *testing.T, programs []limited) {
	b := s.backend(t)
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			started := time.Now()
			r := execute(t, b, "console.log('before');\n"+p.code, p.limits, echo)
			took := time.Since(started)
			if r.Status != p.status || r.Error == nil || r.Error.Message == "" || r.Error.Hint == "" || r.Value != nil {
				t.Errorf("ended with %s, %+v", r.Status, r.Error)
			}
			if r.Error != nil && r.Error.Kind != run.KindLimit {
				t.Errorf("the kind of the error is %s: %s", r.Error.Kind, r.Error.Message)
			}
			if !strings.HasPrefix(string(r.Output), before) || p.limits.Output > 0 && int64(len(r.Output)) > p.limits.Output {
				t.Errorf("output: %d bytes, %.20q", len(r.Output), r.Output)
			}
			if took > hang {
				t.Errorf("took %v", took)
			}
			t.Logf("%s after %v, %d MB: %s", r.Status, took.Round(time.Millisecond), r.MemoryBytes>>20, r.Error.Message)
		})
	}
}
