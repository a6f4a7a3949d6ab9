package python

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox/guest/guesttest"
	"retort/internal/sandbox/wire"
)

func code(lines ...string) core.CheckedProgram {
	return core.CheckedProgram{Code: strings.Join(lines, "\n"), Namespaces: demoNamespaces}
}

// TestBusy checks that the output of a busy program arrives, and that its process ends when the host closes the
// connection.
func TestBusy(t *testing.T) {
	for _, loop := range []string{"while True: pass", "import time\nwhile True: time.sleep(1)", "import asyncio\nasync def f():\n  while True: await asyncio.sleep(0)\nawait f()", "import threading\nthreading.Event().wait()"} {
		t.Run(loop, func(t *testing.T) {
			t.Parallel()
			p := code("print('before')", loop)
			p.Limits = core.Limits{Timeout: testenv.Patience}.WithDefaults(core.DefaultLimits())
			conn, g := newStarter(t).start(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			g.out.NotifyOn("before\n", cancel)
			end, err := wire.ServeProgram(ctx, conn, p, &fakeHost{})
			if err != nil || end.Status != core.StatusCancelled || string(end.Output) != "before\n" {
				t.Errorf("%v, %s %q", err, end.Status, end.Output)
			}
		})
	}
}

// TestDescriptors checks that a program that writes to descriptors 0 and 1 directly does not disturb the protocol.
func TestDescriptors(t *testing.T) {
	p := code("import os", "for fd in (0, 1):", "    for _ in range(100):", "        try: os.write(fd, b'\\0' * 1000)", "        except OSError: pass",
		"try: data = os.read(0, 10)", "except OSError: data = b''", "result = [demo.echo(text='x'), len(data)]")
	if end := newStarter(t).run(t, p, &fakeHost{}); end.Status != core.StatusOK || string(end.Value) != `[{"text":"x"},0]` {
		t.Errorf("%s %v %s", end.Status, end.Error, end.Value)
	}
}

// TestLargeFile checks that a program can read and copy a file that is larger than its memory limit.
func TestLargeFile(t *testing.T) {
	const rows = 300_000 // 30 MB
	h := &fakeHost{Files: map[string]string{"workspace/large.csv": strings.Repeat(strings.Repeat("x", 99)+"\n", rows)}}
	p := code("n = size = 0", "for line in open('workspace/large.csv'):", "    n += 1", "    size += len(line)",
		"with open('workspace/copy.csv', 'wb') as out, open('workspace/large.csv', 'rb') as f:", "    while True:", "        part = f.read(1 << 20)", "        if not part: break", "        out.write(part)",
		"result = [n, size]")
	p.Limits = core.Limits{Memory: 24 << 20}
	end := newStarter(t).run(t, p, h)
	if end.Status != core.StatusOK || string(end.Value) != fmt.Sprintf("[%d,%d]", rows, 100*rows) || h.Files["workspace/copy.csv"] != h.Files["workspace/large.csv"] {
		t.Errorf("%s %v %s", end.Status, end.Error, end.Value)
	}
	if h.LargestRead() > 4<<20 {
		t.Errorf("a read of %d bytes", h.LargestRead())
	}
}

func TestMemory(t *testing.T) {
	s := newStarter(t)
	for _, program := range []string{
		"x = []\nwhile True: x.append('a' * 1000000)", "x = {}\nwhile True: x[len(x)] = [len(x)]", "bytearray(1 << 40)", "'a' * 10**12",
		"import asyncio\nasync def f():\n  x = []\n  while True: x.append(bytearray(1 << 20))\nasyncio.run(f())",
	} {
		p := code("print('so far')", program)
		p.Limits = core.Limits{Memory: 64 << 20}
		end := s.run(t, p, &fakeHost{})
		if end.Status != core.StatusMemoryLimit || end.Error.Message != "the program needed more than its 64 MB of memory" || string(end.Output) != "so far\n" {
			t.Errorf("%s: %s %v %q", program, end.Status, end.Error, end.Output)
		}
	}
	p := code("try:", "    x = bytearray(1 << 40)", "except MemoryError:", "    result = 'caught'")
	if end := s.run(t, p, &fakeHost{}); string(end.Value) != `"caught"` {
		t.Errorf("%s %v", end.Status, end.Error)
	}
}

// TestOutOfMemoryWithoutMessage checks that a program that runs out of memory ends with the status for that, even if
// no memory is left for building an error message.
func TestOutOfMemoryWithoutMessage(t *testing.T) {
	p := code("class Starved(MemoryError):", "  @property", "  def __traceback__(self): raise MemoryError", "raise Starved")
	p.Limits = core.Limits{Memory: 64 << 20}
	end := newStarter(t).run(t, p, &fakeHost{})
	if end.Status != core.StatusMemoryLimit || end.Error.Kind != core.KindLimit || end.Error.Message != "the program needed more than its 64 MB of memory" {
		t.Errorf("%s %+v", end.Status, end.Error)
	}
}

// TestLargeValues checks that arguments, results and values of several megabytes arrive unchanged, and that the
// limits on values and output are enforced.
func TestLargeValues(t *testing.T) {
	s := newStarter(t)
	end := s.run(t, code("text = 'grün👍' * 300000", "back = demo.echo(text=text)", "import asyncio", "again = await asyncio.gather(demo.echo(text=text), demo.echo(text=1))",
		"result = [back['text'] == text, again[0]['text'] == text, text]"), &fakeHost{})
	if end.Status != core.StatusOK || len(end.Value) < 2_700_000 || !strings.HasPrefix(string(end.Value), "[true,true,") {
		t.Errorf("%s %v, %d bytes", end.Status, end.Error, len(end.Value))
	}
	p := code("'x' * 2000")
	p.Limits = core.Limits{Result: 1000}
	if end := s.run(t, p, &fakeHost{}); end.Status != core.StatusOutputLimit || !strings.Contains(end.Error.Message, "2.0 kB, more than the 1000 bytes") {
		t.Errorf("%s %v", end.Status, end.Error)
	}
	p = code("for i in range(100000): print('x' * 100)")
	p.Limits = core.Limits{Output: 10_000}
	if end := s.run(t, p, &fakeHost{}); end.Status != core.StatusOutputLimit || len(end.Output) != 10_000 {
		t.Errorf("%s %v, %d bytes", end.Status, end.Error, len(end.Output))
	}
}

// TestLargeErrors checks that a program that raises a very large error ends with an error message of bounded size.
func TestLargeErrors(t *testing.T) {
	s := newStarter(t)
	for _, program := range []string{
		"raise ValueError('x' * 10**6)", "raise ToolError('x' * 10**6, kind='k' * 10**5, server='s' * 10**5, tool='t' * 10**5, hint='h' * 10**6)",
		"class E(Exception):\n  def __str__(self): return 5\nraise E()", "e = ValueError('a')\ne.__cause__ = e\nraise e", "raise type('N' * 10**6, (Exception,), {})('m')",
	} {
		end := s.run(t, code(program), &fakeHost{})
		if end.Status != core.StatusError || end.Error.Kind == core.KindInternal || len(end.Error.Message) > 40_000 || end.Error.Message == "" {
			t.Errorf("%.100s: %s %s %.200s", program, end.Status, end.Error.Kind, end.Error.Message)
		}
	}
}

func TestLeftUnderWay(t *testing.T) {
	s := newStarter(t)
	for _, program := range []string{
		"import asyncio\nasyncio.ensure_future(demo.slow(ms=60000))\n1", "import asyncio\nasyncio.ensure_future(demo.slow(ms=60000))\n1 / 0",
		"import threading\nthreading.Thread(target=demo.slow, args=(60000,)).start()\nimport time\ntime.sleep(0.05)\n1",
	} {
		end := s.run(t, code(program), &fakeHost{})
		if len(end.Warnings) != 1 || !strings.Contains(end.Warnings[0], "running when the program ended: 1") {
			t.Errorf("%s: %s %v %q", program, end.Status, end.Error, end.Warnings)
		}
	}
	end := s.run(t, code("import threading", "def forever():", "    while True: pass", "threading.Thread(target=forever).start()", "'done'"), &fakeHost{})
	if string(end.Value) != `"done"` {
		t.Errorf("%s %v", end.Status, end.Error)
	}
}

// TestManyTools checks that a program with ten thousand tool functions works.
func TestManyTools(t *testing.T) {
	var namespaces []core.ServerNamespace
	for i := range 100 {
		n := core.ServerNamespace{Server: fmt.Sprintf("s-%d", i), Global: fmt.Sprintf("s_%d", i), Modules: []string{fmt.Sprintf("s_%d", i)}}
		for j := range 100 {
			n.Functions = append(n.Functions, core.ToolFunction{Name: fmt.Sprintf("f%d", j), Tool: "t", Params: []string{"a", "b"}})
		}
		namespaces = append(namespaces, n)
	}
	p := core.CheckedProgram{Code: "[len(dir(s_0)), len(dir(servers)), s_99.f1(1, 2)['b']]", Namespaces: namespaces}
	if end := newStarter(t).run(t, p, &fakeHost{}); string(end.Value) != "[100,100,2]" {
		t.Errorf("%s %v %s", end.Status, end.Error, end.Value)
	}
}

// TestNames checks that a program name that is empty or has special characters does not appear in stack traces.
func TestNames(t *testing.T) {
	s := newStarter(t)
	for name, want := range map[string]string{"": "program.py", "a/b-1.py": "a/b-1.py", "x (y:1:2)\n": "program.py", "ü.py": "program.py"} {
		end := s.run(t, core.CheckedProgram{Name: name, Code: "1 / 0"}, &fakeHost{})
		if end.Error == nil || end.Error.Line != 1 || end.Error.Stack != "at "+want+":1:1" {
			t.Errorf("%q: %+v", name, end.Error)
		}
	}
}

// TestParse checks that a guest can parse many programs, valid or not, and then run one.
func TestParse(t *testing.T) {
	conn, _ := newStarter(t).start(t)
	for _, program := range []string{
		"github.list_issues(owner='o')", "x = = 1", strings.Repeat("(", 10_000), strings.Repeat("[", 90) + strings.Repeat("]", 90),
		"x = '\\d'\nprint(1) is 5", strings.Repeat("-", 50_000) + "1", "a" + strings.Repeat(".a", 20_000), "x = " + strings.Repeat("1+", 20_000) + "1",
		"\x00", "\xff", "# coding: utf-7\nx = 1", "def f(a, a): pass", "from __future__ import nothing", strings.Repeat("if 1:\n ", 3), "é = 1\nlambda: (yield)",
		strings.Repeat("x = 1\n", 20_000),
	} {
		raw, tree, err := wire.ParseCode(context.Background(), conn, program)
		if err != nil {
			t.Fatalf("%.40q: %v", program, err)
		}
		compiled, err := wire.AwaitCompiled(context.Background(), conn)
		if err != nil {
			t.Fatalf("%.40q: %v", program, err)
		}
		var known, told struct {
			Error   *struct{ Name, Message string }
			Version string
		}
		if json.Unmarshal(raw, &known) != nil || (known.Error == nil) == (known.Version == "") || (known.Error == nil) == (len(tree) == 0) {
			t.Errorf("%.40q: %.200s, %d bytes", program, raw, len(tree))
		}
		if json.Unmarshal(compiled, &told) != nil || known.Error != nil && told.Error == nil {
			t.Errorf("%.40q: %.200s", program, compiled)
		}
	}
	end, err := wire.ServeProgram(context.Background(), conn, core.CheckedProgram{Code: "print('ran')\n1", Limits: core.DefaultLimits()}, &fakeHost{})
	if err != nil || string(end.Value) != "1" || string(end.Output) != "ran\n" {
		t.Errorf("%v %+v", err, end)
	}
}

func TestLosses(t *testing.T) { guesttest.TestLosses(t, "python", 1, newStarter(t).compiled(t).run) }

// TestManyTasks checks that programs with a hundred thousand tasks or awaits run to their end.
func TestManyTasks(t *testing.T) {
	s := newStarter(t)
	for _, program := range []core.CheckedProgram{
		code("import asyncio", "async def step(i):", "    await asyncio.sleep(0)", "    return 1", "result = sum(await asyncio.gather(*(step(i) for i in range(100_000))))"),
		code("import asyncio", "async def rows():", "    for i in range(100_000): yield i", "n = 0", "async for row in rows(): n += 1", "result = n"),
		code("import asyncio", "n = 0", "while n < 100_000:", "    await asyncio.sleep(0)", "    n += 1", "result = n"),
	} {
		if end := s.run(t, program, &fakeHost{}); string(end.Value) != "100000" {
			t.Errorf("%s: %s %v", program.Code, end.Status, end.Error)
		}
	}
}
