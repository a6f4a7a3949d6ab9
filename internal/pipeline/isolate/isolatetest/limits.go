package isolatetest

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"retort/internal/pipeline/isolate"
	"retort/internal/run"
)

// limited is a program that must reach a limit.
type limited struct {
	name   string
	code   text
	limits run.Limits
	status run.Status
	// except are the endings of runtimes that end it otherwise: a status, or the
	// kind of an error that is no limit.
	except ends
}

const (
	short = 500 * time.Millisecond
	small = 64 << 20
	usual = 512 << 20
)

// before is printed first by each of these programs, and must have been kept.
const before = "before\n"

func (s *suite) limits(t *testing.T) {
	s.reach(t, []limited{
		{name: "calls", code: text{"for (let i = 0; i < 11; i++) await box.put(i)", "for i in range(11): box.put(i)"}, limits: run.Limits{ToolCalls: 10}, status: run.StatusCallLimit},
		{name: "calls by name", code: text{"for (let i = 0; i < 11; i++) await callMCPTool('box__put')", "for i in range(11): call_mcp_tool('box__put')"}, limits: run.Limits{ToolCalls: 10}, status: run.StatusCallLimit},
		{name: "calls at once", code: text{"await Promise.all(Array.from({length: 11}, () => box.put(1)))", "import asyncio\nawait asyncio.gather(*[box.put(1) for i in range(11)])"}, limits: run.Limits{ToolCalls: 10}, status: run.StatusCallLimit},
		{name: "output", code: text{"for (;;) console.log('x'.repeat(100))", "while True: print('x' * 100)"}, limits: run.Limits{Output: 10_000}, status: run.StatusOutputLimit},
		{name: "output at once", code: text{"console.log('ü'.repeat(1 << 20))", "print('ü' * (1 << 20))"}, limits: run.Limits{Output: 10_000}, status: run.StatusOutputLimit},
		{name: "result", code: text{"return 'x'.repeat(2000)", "'x' * 2000"}, limits: run.Limits{Result: 1000}, status: run.StatusOutputLimit},
	})
	b := s.backend(t)
	p := text{"for (let i = 0; i < 10; i++) await box.put(i); await searchTools('free'); return 1", "for i in range(10): box.put(i)\nsearch_tools('free')"}
	if r := s.execute(t, b, p, run.Limits{ToolCalls: 10}, echo); r.Status != run.StatusOK {
		t.Errorf("ten of ten calls: %s %v", r.Status, r.Error)
	}
	p = text{"console.log('ü'.repeat(4999)); return 'x'.repeat(998)", "print('ü' * 4999)\n'x' * 998"}
	if r := s.execute(t, b, p, run.Limits{Output: 9999, Result: 1000}, echo); r.Status != run.StatusOK || len(r.Output) != 9999 {
		t.Errorf("output and value of just the size allowed: %s %v", r.Status, r.Error)
	}
}

// time are programs that are busy in all ways there are, most of which nothing
// within the runtime ends.
func (s *suite) time(t *testing.T) {
	programs := []limited{
		{name: "loop", code: forth},
		{name: "asleep", code: asleep},
		{name: "microtasks", code: text{"const f = () => Promise.resolve().then(f); f(); await sleep(1e6)", "import asyncio\nloop = asyncio.get_running_loop()\nf = lambda: loop.call_soon(f)\nf()\nawait sleep(1e6)"}},
		{name: "await for ever", code: text{"for (;;) await null", "import asyncio\nwhile True: await asyncio.sleep(0)"}},
		{name: "uncatchable", code: text{"for (;;) try { for (;;); } catch {} finally { for (;;); }", "while True:\n  try:\n    while True: pass\n  except BaseException: pass\n  finally:\n    while True: pass"}},
		{name: "regular expression", code: text{"for (;;) /^(a+)+$/.test('a'.repeat(40) + 'b')", "import re\nre.match('(a+)+$', 'a' * 40 + 'b')"}},
		{name: "one long call", code: text{"const s = 'ab'.repeat(1 << 23); for (let i = 0; i < 1e6; i++) s.lastIndexOf('ba'.repeat(1000) + 'c')", "sum(range(10 ** 15))"}},
		{name: "sorting", code: text{"[...Array(1e6).keys()].sort(() => { for (;;); })", "def never(n):\n  while True: pass\nsorted(range(10 ** 6), key=never)"}},
		{name: "timers", code: text{"const f = () => { setTimeout(f); setTimeout(f) }; f(); await sleep(1e6)", "import asyncio\nloop = asyncio.get_running_loop()\ndef f():\n  loop.call_later(0, f)\n  loop.call_later(0, f)\nf()\nawait sleep(1e6)"}},
		{name: "threads", code: text{"", "import threading\ndef f():\n  while True: pass\nfor i in range(8): threading.Thread(target=f).start()\nf()"}},
	}
	for i := range programs {
		programs[i].status, programs[i].limits = run.StatusTimeout, run.Limits{Timeout: short, Memory: 1 << 30}
		if s.runtime == "python" { // which may be importing asyncio first
			programs[i].limits.Timeout = 5 * short
		}
	}
	s.reach(t, programs)
}

// memory are programs that use memory of all kinds. Meanwhile the host, which
// must not suffer, grows by less than a program may use.
func (s *suite) memory(t *testing.T) {
	s.watchHost(t)
	programs := []limited{
		{name: "growing text", code: text{"let s = 'x'; for (;;) s += s", "s = 'x'\nwhile True: s += s"}},
		{name: "growing list", code: text{"globalThis.a = []; for (;;) a.push({a: 'x' + a.length})", "globals()['a'] = []\nwhile True: a.append({'a': 'x' + str(len(a))})"}},
		{name: "growing map", code: text{"const m = new Map(); for (let i = 0; ; i++) m.set(i, [i])", "m, i = {}, 0\nwhile True:\n  m[i] = [i]\n  i += 1"}},
		{name: "growing in steps", code: text{"globalThis.a = []; for (;;) { a.push(new Uint8Array(1 << 20).fill(1)); await null }", "import asyncio\na = []\nwhile True:\n  a.append(b'x' * (1 << 20))\n  await asyncio.sleep(0)"}},
		{name: "closures", code: text{"let f = () => 1; for (;;) { const g = f, x = []; f = () => [g, x] }", "f = lambda: 1\nwhile True: f = lambda g=f, x=[1]: [g, x]"}},
		{name: "buffers", code: text{"const a = []; for (;;) a.push(new ArrayBuffer(16 << 20))", "a = []\nwhile True: a.append(bytearray(16 << 20))"}},
		{name: "mapped memory", code: text{"", "import mmap\na = []\nwhile True:\n  a.append(mmap.mmap(-1, 16 << 20, mmap.MAP_PRIVATE))\n  a[-1].write(b'x' * (16 << 20))"}},
		{name: "4 GB at once", code: text{"return new Uint8Array(4e9).fill(1).length", "len(b'x' * 4_000_000_000)"}},
		{name: "1 GB at once", code: text{"return new Float64Array(1.3e8).fill(1).length", "import array\nlen(array.array('d', [1]) * 130_000_000)"}},
		{name: "4 GB of text", code: text{"return 'x'.repeat(4e9).length", "len('x' * 4_000_000_000)"}},
		{name: "threads", code: text{"", "import threading\na, begin = [], threading.Event()\ndef f():\n  begin.wait()\n  while True: a.append(bytes(100_000))\nfor i in range(8): threading.Thread(target=f).start()\nbegin.set()\nf()"}},
		{name: "a value too large for the memory", code: text{"return Array.from({length: 400}, () => 'x'.repeat(1 << 20)).map((x) => [x, x, x])", "[[x, x, x] for x in ['x' * (1 << 20) for i in range(400)]]"}, limits: run.Limits{Result: 1 << 20}},
		{name: "caught for ever", code: text{"const a = []; for (;;) try { a.push(new Array(1e5).fill(a)) } catch {}", "a = []\nwhile True:\n  try: a.append([a] * 100_000)\n  except MemoryError: pass"}, except: ends{"quickjs": "timeout"}},
	}
	if s.slower > 1 { // its memory is bounded from outside with room for the machine itself
		programs[len(programs)-1].except = ends{"quickjs": "timeout", "python": "timeout"}
	}
	for i := range programs {
		programs[i].status, programs[i].limits.Memory, programs[i].limits.Timeout = run.StatusMemoryLimit, small, hang
		if _, other := programs[i].except.on(s.runtime); other {
			programs[i].limits.Timeout = short
		}
	}
	s.reach(t, programs)
	larger := slices.DeleteFunc(slices.Clone(programs), func(p limited) bool {
		return !slices.Contains([]string{"growing text", "growing in steps", "4 GB at once"}, p.name)
	})
	// Small objects, of which there would be many, take V8 half a minute to collect.
	larger = append(larger, limited{name: "growing list", code: text{"const a = [], row = new Array(1e5).fill(0.5); for (;;) a.push(row.slice())", "a = []\nwhile True: a.append([len(a)] * 100_000)"}})
	for i := range larger {
		larger[i].name += " to 512 MB"
		larger[i].status, larger[i].limits = run.StatusMemoryLimit, run.Limits{Memory: usual, Timeout: hang}
	}
	s.reach(t, larger)
	s.reach(t, []limited{
		// An engine that can hold no longer text says so, whatever it may use.
		{name: "text doubled to 4 GB", code: text{"let s = 'x'; for (let i = 0; i < 32; i++) s += s; return s.length", ""}, limits: run.Limits{Memory: 4 << 30}, status: run.StatusMemoryLimit},
	})
}

func (s *suite) recursion(t *testing.T) {
	s.reach(t, []limited{
		{name: "counting", code: text{"const f = (n) => n === 0 ? 0 : 1 + f(n - 1); return f(1e6)", "def f(n): return 0 if n == 0 else 1 + f(n - 1)\nf(10 ** 6)"}, status: run.StatusError},
		{name: "through the runtime", code: text{"const f = () => [1].map(f); f()", "def f(n): return list(map(f, [1]))\nf(1)"}, status: run.StatusError},
		{name: "in toString", code: text{"const o = {toString() { return `${o}` }}; `${o}`", "class C:\n  def __str__(self): return str(self)\nstr(C())"}, status: run.StatusError},
		{name: "through what is nested", code: text{"let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.x", "p = []\nfor i in range(100_000): p = [p]\nrepr(p)"}, status: run.StatusError},
		{name: "deep JSON", code: text{"JSON.parse('['.repeat(1e6))", "import json\njson.loads('[' * 1_000_000)"}, status: run.StatusError, except: ends{"node bun deno": "runtime"}},
	})
}

// reach runs each program and checks how it ended, and that it did soon after
// its limit.
func (s *suite) reach(t *testing.T, programs []limited) {
	b := s.backend(t)
	for _, p := range programs {
		if s.in(p.code) == "" {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			s.reachOne(t, b, p)
		})
	}
}

func (s *suite) reachOne(t *testing.T, b isolate.Backend, p limited) {
	started := time.Now()
	r := s.execute(t, b, text{"console.log('before');\n" + p.code.js, "print('before')\n" + p.code.py}, p.limits, echo)
	took := time.Since(started)
	status, kind := p.status, run.KindLimit
	if other, ok := p.except.on(s.runtime); ok && run.Status(other) == run.StatusTimeout {
		status = run.StatusTimeout
	} else if ok {
		kind = run.Kind(other)
	}
	if r.Status != status || r.Error == nil || r.Error.Message == "" || r.Value != nil {
		t.Fatalf("ended with %s, %+v", r.Status, r.Error)
	}
	if r.Error.Kind != kind || kind == run.KindLimit && r.Error.Hint == "" {
		t.Errorf("the kind of the error is %s: %s (%s)", r.Error.Kind, r.Error.Message, r.Error.Hint)
	}
	if !strings.HasPrefix(string(r.Output), before) || p.limits.Output > 0 && int64(len(r.Output)) > p.limits.Output {
		t.Errorf("output: %d bytes, %.20q", len(r.Output), r.Output)
	}
	if took > s.longer(hang+short) {
		t.Errorf("took %v", took)
	}
	t.Logf("%s after %v, %d MB: %s", r.Status, took.Round(time.Millisecond), r.MemoryBytes>>20, r.Error.Message)
}

// watchHost checks at the end of the test that this process has not grown much.
func (s *suite) watchHost(t *testing.T) {
	const most = 64 << 20
	was := resident()
	t.Cleanup(func() {
		if now := resident(); now > was+most {
			t.Errorf("the host has grown from %d to %d MB", was>>20, now>>20)
		}
	})
}

// resident is the most memory that this process has had, in bytes, where the
// system tells.
func resident() int64 {
	status, _ := os.ReadFile("/proc/self/status")
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	fields := strings.Fields(after)
	if len(fields) == 0 {
		return 0
	}
	kb, _ := strconv.ParseInt(fields[0], 10, 64)
	return kb << 10
}
