package sandboxtest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox"
	"retort/internal/sandbox/wire"
)

// limitedProgram represents a test program that must end by exceeding a limit.
type limitedProgram struct {
	name   string
	code   programText
	limits core.Limits
	status core.OutcomeStatus
	// except lists the runtimes on which the program ends in another way than status says. It maps each of them to
	// the status or error kind that is expected there.
	except expectedEnds
	// stays is set for a program that stays at its memory limit without ending. A backend stronger than a process,
	// such as a container, watches memory from outside and may end this program.
	stays bool
	// skip lists the runtimes, separated by spaces, on which the program runs only if RETORT_FULL is set. The entry
	// "emulated" means all runtimes on an emulated processor, and is for programs that compute for a long time.
	skip string
}

const (
	small = 64 << 20
	usual = 512 << 20
)

// firstOutput is what each limitedProgram prints first. The report must contain it, although the program exceeds a
// limit.
const firstOutput = "before\n"

func (s *backendSuite) testLimits(t *testing.T) {
	s.checkLimits(t, []limitedProgram{
		{
			name:   "calls",
			code:   programText{"for (let i = 0; i < 11; i++) await box.put(i)", "for i in range(11): box.put(i)"},
			limits: core.Limits{ToolCalls: 10}, status: core.StatusCallLimit,
		},
		{
			name:   "calls by name",
			code:   programText{"for (let i = 0; i < 11; i++) await callMCPTool('box__put')", "for i in range(11): call_mcp_tool('box__put')"},
			limits: core.Limits{ToolCalls: 10}, status: core.StatusCallLimit,
		},
		{
			name: "calls at once",
			code: programText{
				"await Promise.all(Array.from({length: 11}, () => box.put(1)))",
				"import asyncio\nawait asyncio.gather(*[box.put(1) for i in range(11)])",
			},
			limits: core.Limits{ToolCalls: 10}, status: core.StatusCallLimit,
		},
		{
			name: "output", code: programText{"for (;;) console.log('x'.repeat(100))", "while True: print('x' * 100)"},
			limits: core.Limits{Output: 10_000}, status: core.StatusOutputLimit,
		},
		{
			name: "output at once", code: programText{"console.log('ü'.repeat(1 << 20))", "print('ü' * (1 << 20))"},
			limits: core.Limits{Output: 10_000}, status: core.StatusOutputLimit,
		},
		{
			name: "result", code: programText{"return 'x'.repeat(2000)", "'x' * 2000"}, limits: core.Limits{Result: 1000},
			status: core.StatusOutputLimit,
		},
	})
	b := s.sharedBackend(t)
	p := programText{
		"for (let i = 0; i < 10; i++) await box.put(i); await searchTools('free'); return 1",
		"for i in range(10): box.put(i)\nsearch_tools('free')",
	}
	if r := s.executeProgram(t, b, p, core.Limits{ToolCalls: 10}, echo); r.Status != core.StatusOK {
		t.Errorf("ten of ten calls: %s %v", r.Status, r.Error)
	}
	p = programText{"console.log('ü'.repeat(4999)); return 'x'.repeat(998)", "print('ü' * 4999)\n'x' * 998"}
	if r := s.executeProgram(t, b, p, core.Limits{Output: 9999, Result: 1000}, echo); r.Status != core.StatusOK || len(r.Output) != 9999 {
		t.Errorf("output and value of just the size allowed: %s %v", r.Status, r.Error)
	}
}

// testTime tests that a program that keeps busy can be stopped when its time is over. It tries different ways of
// being busy, most of which the runtime itself cannot interrupt. It does not wait for a real timeout, but stops each
// program as if its timeout had passed.
func (s *backendSuite) testTime(t *testing.T) {
	s.limitOfTime(t)
	programs := []limitedProgram{
		{name: "loop", code: programText{"await box.put(0); for (;;);", "box.put(0)\nwhile True: pass"}},
		{name: "asleep", code: programText{"await box.put(0); await sleep(1e6)", "box.put(0)\nawait sleep(1e6)"}},
		{
			name: "microtasks",
			code: programText{
				"await box.put(0); const f = () => Promise.resolve().then(f); f(); await sleep(1e6)",
				"import asyncio\nbox.put(0)\nloop = asyncio.get_running_loop()\nf = lambda: loop.call_soon(f)\nf()\nawait sleep(1e6)",
			},
		},
		{
			name: "await for ever",
			code: programText{"await box.put(0); for (;;) await null", "import asyncio\nbox.put(0)\nwhile True: await asyncio.sleep(0)"},
		},
		{
			name: "uncatchable",
			code: programText{
				"await box.put(0); for (;;) try { for (;;); } catch {} finally { for (;;); }",
				"box.put(0)\nwhile True:\n  try:\n    while True: pass\n  except BaseException: pass\n  finally:\n    while True: pass",
			},
		},
		{
			name: "regular expression",
			code: programText{
				"await box.put(0); for (;;) /^(a+)+$/.test('a'.repeat(40) + 'b')",
				"import re\nbox.put(0)\nre.match('(a+)+$', 'a' * 40 + 'b')",
			},
		},
		{
			name: "one long call", skip: emulatedRuntimes,
			code: programText{
				"const s = 'ab'.repeat(1 << 23); await box.put(0); for (let i = 0; i < 1e6; i++) s.lastIndexOf('ba'.repeat(1000) + 'c')",
				"box.put(0)\nsum(range(10 ** 15))",
			},
		},
		{
			name: "sorting", skip: emulatedRuntimes,
			code: programText{
				"const all = [...Array(1e6).keys()]; await box.put(0); all.sort(() => { for (;;); })",
				"def never(n):\n  while True: pass\nbox.put(0)\nsorted(range(10 ** 6), key=never)",
			},
		},
		{
			name: "timers",
			code: programText{
				"await box.put(0); const f = () => { setTimeout(f); setTimeout(f) }; f(); await sleep(1e6)",
				"import asyncio\nloop = asyncio.get_running_loop()\ndef f():\n  loop.call_later(0, f)\n  loop.call_later(0, f)\nbox.put(0)\nf()\nawait sleep(1e6)",
			},
		},
		{name: "threads", code: programText{"", "import threading\ndef f():\n  while True: pass\nbox.put(0)\nfor i in range(8): threading.Thread(target=f).start()\nf()"}},
	}
	for i := range programs {
		programs[i].status, programs[i].limits = core.StatusTimeout, core.Limits{Memory: 1 << 30}
	}
	s.checkLimits(t, programs)
}

// limitOfTime tests that real timeouts end programs. It expects no output of the programs, because on a slow machine
// the timeout can pass before a program has begun.
func (s *backendSuite) limitOfTime(t *testing.T) {
	b := s.sharedBackend(t)
	for _, code := range []programText{endlessLoop, asleep} {
		r := s.executeProgram(t, b, code, core.Limits{Timeout: 50 * time.Millisecond}, echo)
		if r.Status != core.StatusTimeout || r.Error == nil || r.Error.Kind != core.KindLimit || r.Error.Hint == "" || r.Value != nil {
			t.Errorf("%s: ended with %s, %+v", s.textFor(code), r.Status, r.Error)
		}
	}
}

// testMemory tests that programs which use up memory in different ways are ended by their memory limit. Meanwhile the
// memory of the test process must hardly grow.
func (s *backendSuite) testMemory(t *testing.T) {
	s.watchHost(t)
	programs := append(hungryPrograms(), limitedProgram{name: "caught for ever", stays: true, skip: "deno emulated", code: programText{
		"const a = []; let n = 0; for (;;) try { a.push(new Array(1e5).fill(a)) } catch { if (++n == 5) { a.length = 0; await box.put(0) } }",
		"a, n = [], 0\nwhile True:\n  try: a.append([a] * 100_000)\n  except MemoryError:\n    n += 1\n    if n == 5:\n      a.clear()\n      box.put(0)"}, except: s.catchesForEver()})
	for i := range programs {
		programs[i].status, programs[i].limits.Memory = core.StatusMemoryLimit, small
	}
	s.checkLimits(t, programs)
	s.checkLimits(t, append(hungryFor(usual), limitedProgram{
		// An engine that does not support strings of this length reports that, whatever its memory limit is.
		name: "text doubled to 4 GB", skip: "node",
		code:   programText{"let s = 'x'; for (let i = 0; i < 32; i++) s += s; return s.length", ""},
		limits: core.Limits{Memory: 4 << 30}, status: core.StatusMemoryLimit,
	}))
}

// catchesForEver returns the runtimes on which a program that catches every out-of-memory error goes on for ever, so
// that only its timeout ends it.
func (s *backendSuite) catchesForEver() expectedEnds {
	if s.slower > 1 { // its memory is bounded from outside with room for the machine itself
		return expectedEnds{"quickjs": "timeout", "python": "timeout"}
	}
	return expectedEnds{"quickjs": "timeout"}
}

// hungryPrograms returns programs that use memory until they exceed their memory limit. Some of them run either on
// Node or on Deno, not on both: these two share a JavaScript engine, which takes longer than others to run out of
// memory.
func hungryPrograms() []limitedProgram {
	return []limitedProgram{
		{name: "growing text", skip: "deno", code: programText{"let s = 'x'; for (;;) s += s", "s = 'x'\nwhile True: s += s"}},
		{
			name: "growing list", skip: "node emulated",
			code: programText{
				"globalThis.a = []; for (;;) a.push({a: 'x' + a.length})",
				"globals()['a'] = []\nwhile True: a.append({'a': 'x' + str(len(a))})",
			},
		},
		{
			name: "growing map", skip: "python node bun deno emulated",
			code: programText{"const m = new Map(); for (let i = 0; ; i++) m.set(i, [i])", "m, i = {}, 0\nwhile True:\n  m[i] = [i]\n  i += 1"},
		},
		{
			name: "growing in steps", skip: "deno",
			code: programText{
				"globalThis.a = []; for (;;) { a.push(new Uint8Array(1 << 20).fill(1)); await null }",
				"import asyncio\na = []\nwhile True:\n  a.append(b'x' * (1 << 20))\n  await asyncio.sleep(0)",
			},
		},
		{
			name: "closures", skip: "python node deno emulated",
			code: programText{
				"let f = () => 1; for (;;) { const g = f, x = []; f = () => [g, x] }",
				"f = lambda: 1\nwhile True: f = lambda g=f, x=[1]: [g, x]",
			},
		},
		{
			name: "buffers", skip: "node deno",
			code: programText{"const a = []; for (;;) a.push(new ArrayBuffer(16 << 20))", "a = []\nwhile True: a.append(bytearray(16 << 20))"},
		},
		{
			name: "mapped memory",
			code: programText{
				"",
				"import mmap\na = []\nwhile True:\n  a.append(mmap.mmap(-1, 16 << 20, mmap.MAP_PRIVATE))\n  a[-1].write(b'x' * (16 << 20))",
			},
		},
		{name: "4 GB at once", skip: "deno", code: programText{"return new Uint8Array(4e9).fill(1).length", "len(b'x' * 4_000_000_000)"}},
		{
			name: "1 GB at once", skip: "node emulated",
			code: programText{"return new Float64Array(1.3e8).fill(1).length", "import array\nlen(array.array('d', [1]) * 130_000_000)"},
		},
		{name: "4 GB of text", skip: "deno", code: programText{"return 'x'.repeat(4e9).length", "len('x' * 4_000_000_000)"}},
		{
			name: "threads",
			code: programText{
				"",
				"import threading\na, begin = [], threading.Event()\ndef f():\n  begin.wait()\n  while True: a.append(bytes(100_000))\nfor i in range(8): threading.Thread(target=f).start()\nbegin.set()\nf()",
			},
		},
		{
			name: "a value too large for the memory", skip: "deno emulated",
			code:   programText{"return Array.from({length: 400}, () => 'x'.repeat(1 << 20)).map((x) => [x, x, x])", "[[x, x, x] for x in ['x' * (1 << 20) for i in range(400)]]"},
			limits: core.Limits{Result: 1 << 20},
		},
	}
}

// hungryFor returns programs that exceed a large memory limit, which is given in bytes.
func hungryFor(memory int64) []limitedProgram {
	programs := slices.DeleteFunc(hungryPrograms(), func(p limitedProgram) bool {
		return !slices.Contains([]string{"growing text", "growing in steps", "4 GB at once"}, p.name)
	})
	// V8 takes half a minute to collect many small objects.
	programs = append(programs, limitedProgram{
		name: "growing list",
		code: programText{
			"const a = [], row = new Array(1e5).fill(0.5); for (;;) a.push(row.slice())",
			"a = []\nwhile True: a.append([len(a)] * 100_000)",
		},
	})
	for i, p := range programs {
		programs[i].skip = "python node bun deno " + emulatedRuntimes
		if p.name != "growing in steps" {
			programs[i].skip += " quickjs"
		}
		programs[i].name += fmt.Sprintf(" to %d MB", memory>>20)
		programs[i].status, programs[i].limits = core.StatusMemoryLimit, core.Limits{Memory: memory}
	}
	return programs
}

func (s *backendSuite) testRecursion(t *testing.T) {
	s.checkLimits(t, []limitedProgram{
		{
			name: "counting", skip: emulatedRuntimes,
			code: programText{
				"const f = (n) => n === 0 ? 0 : 1 + f(n - 1); return f(1e6)",
				"def f(n): return 0 if n == 0 else 1 + f(n - 1)\nf(10 ** 6)",
			},
			status: core.StatusError,
		},
		{
			name:   "through the runtime",
			code:   programText{"const f = () => [1].map(f); f()", "def f(n): return list(map(f, [1]))\nf(1)"},
			status: core.StatusError,
		},
		{
			name:   "in toString",
			code:   programText{"const o = {toString() { return `${o}` }}; `${o}`", "class C:\n  def __str__(self): return str(self)\nstr(C())"},
			status: core.StatusError,
		},
		{
			name: "through what is nested", skip: emulatedRuntimes,
			code: programText{
				"let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.x",
				"p = []\nfor i in range(100_000): p = [p]\nrepr(p)",
			},
			status: core.StatusError,
		},
		{
			name: "deep JSON", code: programText{"JSON.parse('['.repeat(1e6))", "import json\njson.loads('[' * 1_000_000)"},
			status: core.StatusError, except: expectedEnds{"node bun deno": "runtime"},
		},
	})
}

// checkLimits runs each program and checks that it ended in the expected way.
func (s *backendSuite) checkLimits(t *testing.T, programs []limitedProgram) {
	b := s.sharedBackend(t)
	for _, p := range programs {
		if s.textFor(p.code) == "" || !testenv.Full() && s.isSkipped(p) {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			s.reachOne(t, b, p)
		})
	}
}

// emulatedRuntimes can be written in limitedProgram.skip instead of the name of a runtime. It means all runtimes on
// an emulated processor.
const emulatedRuntimes = "emulated"

// isSkipped reports whether the suite skips p unless RETORT_FULL is set.
func (s *backendSuite) isSkipped(p limitedProgram) bool {
	skip := strings.Fields(p.skip)
	return slices.Contains(skip, s.runtime) || s.slower > 1 && slices.Contains(skip, emulatedRuntimes)
}

func (s *backendSuite) reachOne(t *testing.T, b sandbox.Backend, p limitedProgram) {
	status, kind := p.status, core.KindLimit
	if other, ok := p.except.endOn(s.runtime); ok && core.OutcomeStatus(other) == core.StatusTimeout {
		status = core.StatusTimeout
	} else if ok {
		kind = core.Kind(other)
	}
	code := programText{"console.log('before');\n" + p.code.js, "print('before')\n" + p.code.py}
	var r sandbox.RunReport
	if status == core.StatusTimeout {
		r = s.runOutOfTime(t, b, code, p.limits)
	} else {
		r = s.executeProgram(t, b, code, p.limits, echo)
	}
	if p.stays && r.Status == core.StatusMemoryLimit && b.Capabilities().Strength > sandbox.Process {
		status = r.Status
	}
	if r.Status != status || r.Error == nil || r.Error.Message == "" || r.Value != nil {
		t.Fatalf("ended with %s, %+v", r.Status, r.Error)
	}
	if r.Error.Kind != kind || kind == core.KindLimit && r.Error.Hint == "" {
		t.Errorf("the kind of the error is %s: %s (%s)", r.Error.Kind, r.Error.Message, r.Error.Hint)
	}
	if !strings.HasPrefix(string(r.Output), firstOutput) || p.limits.Output > 0 && int64(len(r.Output)) > p.limits.Output {
		t.Errorf("output: %d bytes, %.20q", len(r.Output), r.Output)
	}
	t.Logf("%s, %d MB: %s", r.Status, r.MemoryBytes>>20, r.Error.Message)
}

// runOutOfTime runs a program that makes a call and then stays busy, and stops it as if its timeout had passed.
func (s *backendSuite) runOutOfTime(t *testing.T, b sandbox.Backend, code programText, l core.Limits) sandbox.RunReport {
	t.Helper()
	sandbox := s.prepareSandbox(t, b, l)
	defer sandbox.Close()
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	h := endingHost(afterCall, func() { stop(wire.TimeoutStop(s.completeLimits(l).Timeout)) })
	r, err := sandbox.Run(ctx, s.makeProgram(code, l), h)
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	return r
}

// watchHost registers a check that runs at the end of the test. The check fails if the peak memory of the test
// process, which is the host of the sandboxes, has grown by more than 64 MiB.
func (s *backendSuite) watchHost(t *testing.T) {
	const most = 64 << 20
	was := peakResident()
	t.Cleanup(func() {
		if now := peakResident(); now > was+most {
			t.Errorf("the host has grown from %d to %d MB", was>>20, now>>20)
		}
	})
}

// peakResident returns the peak resident memory of this process in bytes, or 0 if the system does not report it.
func peakResident() int64 {
	status, _ := os.ReadFile("/proc/self/status")
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	fields := strings.Fields(after)
	if len(fields) == 0 {
		return 0
	}
	kb, _ := strconv.ParseInt(fields[0], 10, 64)
	return kb << 10
}
