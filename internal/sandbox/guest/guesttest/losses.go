package guesttest

import (
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox/wire"
)

// lossyProgram holds a program whose value JSON cannot represent exactly, the JSON that the value must become, and a
// part of the expected warning. The warning is empty if nothing is lost.
type lossyProgram struct{ code, json, warning string }

// lossyPrograms lists programs whose values JSON cannot represent, in each language. RUNTIMES.md contains the same
// table.
var lossyPrograms = []struct {
	name               string
	javaScript, python lossyProgram
}{
	{"not a number",
		lossyProgram{
			`return {a: NaN, b: [1, Infinity, -Infinity]}`, `{"a":null,"b":[1,null,null]}`,
			"$.a: NaN became null; $.b[1]: Infinity became null; $.b[2]: -Infinity became null",
		},
		lossyProgram{
			`{"a": float("nan"), "b": [1, float("inf"), -float("inf")]}`, `{"a":null,"b":[1,null,null]}`,
			"$.a: nan became null; $.b[1]: inf became null; $.b[2]: -inf became null",
		}},
	{"a number of a tool that is too large",
		lossyProgram{`return JSON.parse('{"n": 1e400}')`, `{"n":null}`, "$.n: Infinity became null"},
		lossyProgram{"import json\njson.loads('{\"n\": 1e400}')", `{"n":null}`, "$.n: inf became null"}},
	{"functions and classes",
		lossyProgram{
			`return {f() {}, c: class {}, list: [() => 1]}`, `{"list":[null]}`,
			"$.f: a function was left out; $.c: a function was left out; $.list[0]: a function became null",
		},
		lossyProgram{
			`{"f": print, "c": int, "list": [lambda: 1]}`, `{"list":[null]}`,
			"$.f: a function was left out; $.c: a class was left out; $.list[0]: a function became null",
		}},
	{"nothing but a function",
		lossyProgram{`return () => 1`, ``, "$: a function was left out"},
		lossyProgram{`result = print`, ``, "$: a function was left out"}},
	{"symbols, and what Python has of the kind",
		lossyProgram{
			`return {s: Symbol('x'), list: [Symbol('y')], [Symbol('key')]: 1}`, `{"list":[null]}`,
			"$: members whose keys are symbols were left out; $.s: a symbol was left out; $.list[0]: a symbol became null",
		},
		lossyProgram{
			`{"s": NotImplemented, "list": [...]}`, `{"s":null,"list":[null]}`,
			"$.s: NotImplemented became null; $.list[0]: Ellipsis became null",
		}},
	{"undefined",
		lossyProgram{`return {a: undefined, b: [undefined]}`, `{"b":[null]}`, ""},
		lossyProgram{`{"a": None, "b": [None]}`, `{"a":null,"b":[null]}`, ""}},
	{"long integers",
		lossyProgram{`return [2n ** 70n, {n: -1n}]`, `[1180591620717411303424,{"n":-1}]`, ""},
		lossyProgram{`[2**70, {"n": -1}]`, `[1180591620717411303424,{"n":-1}]`, ""}},
	{"decimals",
		lossyProgram{`return [0.1, 1e21]`, `[0.1,1e+21]`, ""},
		lossyProgram{"from decimal import Decimal as D\n[D('1.10'), D('12345678901234567890.123456789'), D('12345678901234567890'), D('1E+3'), D('1E+400'), D(1) / 3]",
			`[1.10,"12345678901234567890.123456789",12345678901234567890,1E+3,1E+400,"0.3333333333333333333333333333"]`, ""}},
	{"invalid decimals",
		lossyProgram{`return [NaN]`, `[null]`, "$[0]: NaN became null"},
		lossyProgram{
			"from decimal import Decimal as D\n[D('NaN'), D('-Infinity')]", `[null,null]`,
			"$[0]: NaN became null; $[1]: -Infinity became null",
		}},
	{"keys with the same text",
		lossyProgram{`return new Map([[1, 'a'], ['1', 'b']])`, `[[1,"a"],["1","b"]]`, ""},
		lossyProgram{
			`{"m": {1: "a", "1": "b"}}`, `{"m":[[1,"a"],["1","b"]]}`,
			"$.m: a dict with keys that have the same text became the list of its items",
		}},
	{"keys that are no text",
		lossyProgram{`return new Map([[1, 'a'], [null, 'b']])`, `[[1,"a"],[null,"b"]]`, ""},
		lossyProgram{`{1: "a", None: "b"}`, `{"1":"a","null":"b"}`, ""}},
	{"iterators",
		lossyProgram{
			`const m = new Map([['a', 1]]); return [m.keys(), m.entries(), [1, 2].values(), (function* () { yield 3 })(), new Set([4]).values()]`,
			`[["a"],[["a",1]],[1,2],[3],[4]]`, "",
		},
		lossyProgram{"m = {'a': 1}\n[m.keys(), m.items(), iter([1, 2]), (x for x in [3]), iter({4})]", `[["a"],[["a",1]],[1,2],[3],[4]]`, ""}},
	{"an iterator beside a promise",
		lossyProgram{`return {i: [1].values(), p: Promise.resolve([2].values())}`, `{"i":[1],"p":[2]}`, ""},
		lossyProgram{"import asyncio\nasync def p(): return iter([2])\n{'i': iter([1]), 'p': p()}", `{"i":[1],"p":[2]}`, ""}},
	{"asynchronous iterators",
		lossyProgram{`async function* f() { yield 1; yield 2 } return {f: f()}`, `{"f":[1,2]}`, ""},
		lossyProgram{"async def f():\n    yield 1\n    yield 2\nf()", `[1,2]`, ""}},
	{"regular expressions",
		lossyProgram{`return [/a+/g]`, `["/a+/g"]`, ""},
		lossyProgram{"import re\n[re.compile('a+')]", `["a+"]`, ""}},
	{"bytes",
		lossyProgram{`return [new Uint8Array([1, 255]), new DataView(new ArrayBuffer(2)), new ArrayBuffer(1)]`, `[[1,255],[0,0],[0]]`, ""},
		lossyProgram{`[b"hi", bytearray(b"\xff"), memoryview(b"m")]`, `["hi","/w==","m"]`, ""}},
	{"blobs",
		lossyProgram{`return [new Blob(['hi'], {type: 'text/plain'}), new File([new Uint8Array([255])], 'f', {lastModified: 0})]`,
			`[{"type":"text/plain","size":2,"text":"hi"},{"name":"f","lastModified":0,"type":"","size":1,"base64":"/w=="}]`, ""},
		lossyProgram{"import io\n[io.BytesIO(b'hi').getvalue()]", `["hi"]`, ""}},
	{"sets",
		lossyProgram{`return new Set([1, new Set([2])])`, `[1,[2]]`, ""},
		lossyProgram{`[{1}, frozenset([2])]`, `[[1],[2]]`, ""}},
	{"dates",
		lossyProgram{`return [new Date(0), new Date(NaN)]`, `["1970-01-01T00:00:00.000Z",null]`, "$[1]: an invalid date became null"},
		lossyProgram{"from datetime import date\n[date(1970, 1, 1)]", `["1970-01-01"]`, ""}},
	{"errors",
		lossyProgram{
			`return [new TypeError('bad', {cause: new Error('c')})]`,
			`[{"name":"TypeError","message":"bad","cause":{"name":"Error","message":"c"}}]`, "",
		},
		lossyProgram{
			"e = TypeError('bad')\ne.__cause__ = ValueError('c')\n[e]",
			`[{"name":"TypeError","message":"bad","cause":{"name":"ValueError","message":"c"}}]`, "",
		}},
	{"instances",
		lossyProgram{`class A { #h = 1; shown = 2 } return [new A()]`, `[{"shown":2}]`, ""},
		lossyProgram{"class A:\n    def __init__(self): self.shown, self._hidden = 2, 1\n[A()]", `[{"shown":2}]`, ""}},
	{"objects that show nothing",
		lossyProgram{`return {m: new WeakMap([[{}, 1]]), o: {}}`, `{"m":{},"o":{}}`, "$.m: WeakMap has nothing that JSON shows and became {}"},
		lossyProgram{"async def f():\n    yield 1\n{'m': f(), 'o': {}}", `{"o":{}}`, "$.m: a async_generator was left out"}},
	{"what is awaited too late",
		lossyProgram{
			`await demo.echo({text: 'x', p: Promise.resolve(1)}); return 1`, `1`,
			"JSON does not hold all of the arguments of demo-server.echo: $.p: a promise that nobody awaited became {}",
		},
		lossyProgram{
			"import asyncio\nasync def f(): return 1\np = f()\nresult = {'t': (p,)}\nawait p", `{"t":[null]}`,
			"$.t[0]: a coroutine became null",
		}},
	{"arguments of calls",
		lossyProgram{
			`await demo.echo({text: NaN}); return 1`, `1`,
			"JSON does not hold all of the arguments of demo-server.echo: $.text: NaN became null",
		},
		lossyProgram{
			"demo.echo(text=float('nan'))\nresult = 1", `1`,
			"JSON does not hold all of the arguments of demo.echo: $.text: nan became null",
		}},
	{"members of lists",
		lossyProgram{`return Object.assign([1], {x: 2})`, `[1]`, "$: the members of a list that are no elements were left out"},
		lossyProgram{"class L(list): pass\nl = L([1])\nl.x = 2\nresult = l", `[1]`, ""}},
	{"many, with keys that are no names",
		lossyProgram{
			`return {'a b': NaN, ['k'.repeat(100)]: NaN, l: Array(9).fill(NaN)}`,
			`{"a b":null,"` + strings.Repeat("k", 100) + `":null,"l":[null,null,null,null,null,null,null,null,null]}`,
			`$["a b"]: NaN became null; $["…"]: NaN became null; $.l[0]: NaN became null; $.l[1]: NaN became null; $.l[2]: NaN became null; and 6 more`,
		},
		lossyProgram{
			"n = float('nan')\n{'a b': n, 'k' * 100: n, 'l': [n] * 9}",
			`{"a b":null,"` + strings.Repeat("k", 100) + `":null,"l":[null,null,null,null,null,null,null,null,null]}`,
			`$["a b"]: nan became null; $["…"]: nan became null; $.l[0]: nan became null; $.l[1]: nan became null; $.l[2]: nan became null; and 6 more`,
		}},
	{"what JSON knows",
		lossyProgram{`return {a: [1, 'x', null, true, {}], b: {}, d: Object.create(null)}`, `{"a":[1,"x",null,true,{}],"b":{},"d":{}}`, ""},
		lossyProgram{`{"a": [1, "x", None, True, {}], "b": {}}`, `{"a":[1,"x",null,true,{}],"b":{}}`, ""}},
}

// TestLosses checks how values that JSON cannot represent are converted. The conversion must be as documented, with a
// warning about what was lost. Unless RETORT_FULL is set, only some of the values are tested: those whose index in
// the table is a multiple of the argument every.
func TestLosses(
	t *testing.T, runtime string, every int,
	runProgram func(t testing.TB, p core.CheckedProgram, h wire.CallHost) wire.ProgramEnd,
) {
	for i, c := range lossyPrograms {
		if i%every != 0 && !testenv.Full() {
			continue
		}
		want := c.javaScript
		if runtime == python {
			want = c.python
		}
		end := runProgram(t, core.CheckedProgram{Code: want.code, Namespaces: HostNamespaces(runtime)}, &TestHost{})
		warnings := strings.Join(end.Warnings, "\n")
		if end.Status != core.StatusOK || string(end.Value) != want.json {
			t.Errorf("%s: %s %v\n got %s\nwant %s", c.name, end.Status, end.Error, end.Value, want.json)
		}
		if !strings.Contains(warnings, want.warning) || want.warning == "" && warnings != "" || len(end.Warnings) > 1 {
			t.Errorf("%s: warnings %q, want %q", c.name, warnings, want.warning)
		}
	}
}
