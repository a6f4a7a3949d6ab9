package tsc

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

// valueTests lists programs, each with the JSON of the value that it must return.
var valueTests = []struct {
	name string
	kind Kind
	code string
	want string
}{
	{"return", TypeScript, `const a: number = 1; return a + 1;`, `2`},
	{"return without semicolon", TypeScript, "const a = [1, 2]\nreturn a.length", `2`},
	{"return nothing", TypeScript, `return;`, `undefined`},
	{"return of an object", TypeScript, `return { a: 1, b: [2] };`, `{"a":1,"b":[2]}`},
	{"return of a sequence", TypeScript, `return (1, 2), 3;`, `3`},
	{"return of a parenthesis", TypeScript, `return(4)`, `4`},
	{"conditional returns", TypeScript, `for (const i of [1, 2, 3]) { if (i === 2) return "two"; } return "none"`, `"two"`},
	{"return in try", TypeScript, `try { return await Promise.reject(new Error("x")) } catch (e) { return e.message } finally { console.log(1) }`, `"x"`},
	{"return in switch", TypeScript, `switch (3 as number) { case 3: return "three"; default: return "other" }`, `"three"`},
	{"throw stays throw", TypeScript, `try { throw new Error("thrown") } catch (e) { return "caught " + e.message }`, `"caught thrown"`},
	{"functions keep their returns", TypeScript, `function f() { return 1 } const g = () => { throw 2 }; try { g() } catch (e) { return [f(), e] }`, `[1,2]`},
	{"trailing expression", TypeScript, "const a = 20;\na + 1", `21`},
	{"trailing expression with comment", TypeScript, "const a = 20;\na + 1; // the answer\n/* done */\n", `21`},
	{"trailing await", TypeScript, "await Promise.resolve(5)", `5`},
	{"trailing promise", TypeScript, "Promise.resolve(5)", `5`},
	{"trailing call of main", TypeScript, "async function main() { return 'm'; }\nmain();", `"m"`},
	{"call before the function", TypeScript, "main();\nasync function main() { return 'm'; }", `"m"`},
	{"void main()", TypeScript, "async function main() { return 'm'; }\nvoid main();", `"m"`},
	{"main().catch", TypeScript, "const main = async () => 7;\nmain().catch(console.error);", `7`},
	{"async IIFE", TypeScript, "(async () => { return 8; })();", `8`},
	{"function IIFE", TypeScript, "(function () { return 8; })();", `8`},
	{"trailing arrow", TypeScript, "const base = 1;\nasync () => base + 1", `2`},
	{"trailing string", TypeScript, `"hello"`, `"hello"`},
	{"trailing template", TypeScript, "const n = 'x';\n`a${n}b`", `"axb"`},
	{"trailing object in parentheses", TypeScript, "const a = 1;\n({ a })", `{"a":1}`},
	{"object literal", TypeScript, `{ a: 1, "b": [2, 3] }`, `{"a":1,"b":[2,3]}`},
	{"object literal with comments", TypeScript, "// first\n{ a: 1 }; // last", `{"a":1}`},
	{"object literal of one label", TypeScript, `{a: 1}`, `{"a":1}`},
	{"object literal with await", TypeScript, `{ a: await Promise.resolve(1), }`, `{"a":1}`},
	{"empty object", TypeScript, `{}`, `{}`},
	{"block", TypeScript, "{ const a = 1; return a }", `1`},
	{"function declaration", TypeScript, `async function run(): Promise<number> { return 9; }`, `9`},
	{"arrow function", TypeScript, `async () => { return 10; }`, `10`},
	{"arrow in parentheses", TypeScript, `(async () => { return 10; })`, `10`},
	{"arrow in a constant", TypeScript, `const run = async () => 11;`, `11`},
	{"function expression", TypeScript, `(async function () { return 12; });`, `12`},
	{"function with types around", TypeScript, "interface A { a: number }\ntype B = A;\nexport async function run(): Promise<B> { return { a: 1 }; }\nexport type C = B;", `{"a":1}`},
	{"main that nobody calls", TypeScript, "const n = 13;\nasync function main() { return n; }", `13`},
	{"main that is called", TypeScript, "let n = 0;\nasync function main() { n++; return n; }\nconst v = await main();\nconsole.log(v);\nreturn n", `1`},
	{"default expression", TypeScript, `const a = 1; export default a + 1;`, `2`},
	{"default object", TypeScript, `export default { a: 1 };`, `{"a":1}`},
	{"default before trailing", TypeScript, "export default 1;\nconsole.log('x');", `1`},
	{"return before default", TypeScript, "export default 1;\nreturn 2;", `2`},
	{"default function", TypeScript, `export default async function main() { return 3; }`, `3`},
	{"default function is hoisted", TypeScript, "export default function main() { return helper(); }\nfunction helper() { return 3; }", `3`},
	{"default anonymous function", TypeScript, `export default async function () { return 3; }`, `3`},
	{"default anonymous function, then more", TypeScript, "export default function () { return 3; }\n(() => 1)()", `3`},
	{"default arrow", TypeScript, `export default async () => ({ a: 4 });`, `{"a":4}`},
	{"default by name", TypeScript, "const x = 5;\nexport { x as default };", `5`},
	{"default by name before the value", TypeScript, "export { x as default };\nconst x = 5;", `5`},
	{"default function by name", TypeScript, "async function main() { return 6; }\nexport default main;", `6`},
	{"default class", TypeScript, "export default class A { static x = 1 }", `class A`},
	{"default anonymous class", TypeScript, "export default class { static x = 1 }", `class`},
	{"default function that is called runs once", TypeScript, "let runs = 0;\nexport default async function main() { runs++; return runs; }\nawait main();", `1`},
	{"default constant that is called runs once", TypeScript, "let runs = 0;\nconst main = async () => ++runs;\nmain();\nexport default main;", `1`},
	{"other exports", TypeScript, "export const a = 1;\nexport function f() { return a; }\nexport class C {}\nexport { a as b };\nf()", `1`},
	{"module.exports", JavaScript, "module.exports = async function () { return 2; };", `2`},
	{"import of a namespace", TypeScript, "import * as gh from './servers/github';\nreturn (await gh.getUser('x')).name", `"x"`},
	{"import of names", TypeScript, "import { getUser, listIssues as list } from './servers/github';\nreturn [(await getUser('x')).name, (await list('a', 'b')).length]", `["x",0]`},
	{"default import", TypeScript, "import gh from './servers/github';\nreturn (await gh.getUser('x')).name", `"x"`},
	{"default and names", TypeScript, "import gh, { getUser } from './servers/github';\nreturn gh.getUser === getUser", `true`},
	{"default and namespace", TypeScript, "import gh, * as all from './servers/github';\nreturn gh === all", `true`},
	{"import at the end", TypeScript, "const user = await getUser('x');\nuser.name;\nimport { getUser } from './servers/github';", `"x"`},
	{"import for types only", TypeScript, "import type { Issue } from './servers/github';\nimport { type ListIssuesInput } from './servers/github';\nconst i: Issue = { number: 1, title: 't' };\nreturn i.number", `1`},
	{"import for effect", TypeScript, "import './servers/github';\nreturn 1", `1`},
	{"dynamic import", TypeScript, "const gh = await import('./servers/github');\nreturn (await gh.getUser('y')).name", `"y"`},
	{"dynamic import, first", TypeScript, "import('./servers/github').then(m => m.getUser('y')).then(u => u.name)", `"y"`},
	{"require", TypeScript, "const gh = require('./servers/github');\nconst { getUser } = require('./servers/github')\nreturn [(await gh.getUser('y')).name, getUser === gh.getUser]", `["y",true]`},
	{"require of a member", TypeScript, "const u = require('./servers/github').getUser('z')\nreturn (await u).name", `"z"`},
	{"require at the start of a line", TypeScript, "const a = 1\nrequire('./servers/github').getUser('z')", `{"name":"z"}`},
	{"require in an async function", JavaScript, "async function f() { const gh = require('./servers/github'); return (await gh.getUser('z')).name }\nreturn f()", `"z"`},
	{"import equals", TypeScript, "import gh = require('./servers/github');\nreturn (await gh.getUser('z')).name", `"z"`},
	{"import.meta", TypeScript, "return typeof import.meta", `"object"`},
	{"enum", TypeScript, "enum E { A = 1, B }\nconst enum F { C = 5 }\nreturn [E.B, E[1], F.C]", `[2,"A",5]`},
	{"namespace", TypeScript, "namespace N { export const x = 1; export namespace M { export const y = 2 } }\nreturn N.x + N.M.y", `3`},
	{"parameter properties", TypeScript, "class A { constructor(private readonly x: number, public y = 2) {} sum() { return this.x + this.y } }\nreturn new A(1).sum()", `3`},
	{"decorators", TypeScript, "function twice(f: any, _: any) { return function (...a: any[]) { return f.apply(this, a) * 2 } }\nclass A { @twice get() { return 21 } }\nreturn new A().get()", `42`},
	{"generics, casts, satisfies, non-null", TypeScript, "function id<T>(x: T): T { return x }\nconst a = <any>id<number>(1) as unknown as number;\nconst b = { x: 1 } satisfies object;\nreturn a! + b.x", `2`},
	{"abstract, overloads, declare, this types", TypeScript, "abstract class A { abstract f(): number; declare z: string; g(this: A) { return this.f() } }\nclass B extends A { f(): number; f(x?: number): number { return 1 } }\ndeclare const nothing: unique symbol;\nreturn new B().g()", `1`},
	{"using", TypeScript, "let log = '';\n{ using x = { [Symbol.dispose ?? Symbol.for('d')]() { log += 'd' } } as any; log += 'b'; }\nreturn log", `"bd"`},
	{"labels and generators", TypeScript, "function* g() { yield 1; yield 2 }\nouter: for (const a of g()) { for (;;) { if (a === 1) continue outer; break outer } }\nreturn [...g()]", `[1,2]`},
	{"strict mode directive", TypeScript, "'use strict';\nreturn this === undefined", `true`},
	{"hashbang", TypeScript, "#!/usr/bin/env node\nreturn 1", `1`},
	{"names of helpers", TypeScript, "const exports = 1, module = 2, require = 3, __meta1 = 4, name = 5;\nreturn exports + module + require + __meta1 + name", `15`},
	{"regular expressions and templates", TypeScript, "const re = /[/\\]\"'`]+/g, s = `a${`b${1}`}c`;\nreturn 'x\"y'.replace(re, s)", `"xab1cy"`},
	{"astral characters", TypeScript, "const s: string = '😀é';\nreturn [...s].length", `2`},
	{"CRLF", TypeScript, "const a: number = 1;\r\nconst t = `x\r\ny`;\r\nreturn t.length + a\r\n", `4`},
	{"line separators in strings", TypeScript, "const a = '\u2028', b: number = 1;\nreturn a.length + b", `2`},
	{"big integers", TypeScript, "return String(9007199254740993n)", `"9007199254740993"`},
	{"empty", TypeScript, "", `undefined`},
	{"only comments", TypeScript, "// nothing\n/* here */", `undefined`},
	{"only types", TypeScript, "interface A {}", `undefined`},
	{"javascript", JavaScript, "const o = {}; o.a = 1;\nreturn o", `{"a":1}`},
	{"javascript comparison that looks generic", JavaScript, "const f = 1, a = 2, c = 0;\nreturn [f<a, a>(c)]", `[true,true]`},
}

func TestValues(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	c := New(Limits{})
	bodies := make([]string, len(valueTests))
	for i, test := range valueTests {
		bodies[i] = mustCheck(t, c, test.code, test.kind).JavaScript
	}
	encoded, err := json.Marshal(bodies)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, "--input-type=module", "-e", runner)
	cmd.Stdin = strings.NewReader(string(encoded))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("node: %v\n%s", err, out)
	}
	var values []string
	if err := json.Unmarshal(out, &values); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	for i, test := range valueTests {
		if values[i] != test.want {
			t.Errorf("%s: got %s, want %s\n--- program\n%s\n--- body\n%s", test.name, values[i], test.want, test.code, bodies[i])
		}
	}
}

// runner is a Node.js script that evaluates emitted bodies in an environment like that of a sandbox.
const runner = `
const { readFileSync, writeSync } = await import('node:fs');
const bodies = JSON.parse(readFileSync(0, 'utf8'));
const github = { listIssues: async () => [], getUser: async x => ({ name: x.name ?? x }) };
github.default = github;
const callMCPTool = async (name, args) => ({ name, args });
const console = { log() {}, error() {} };
const values = [];
for (const body of bodies) {
  const exports = {};
  try {
    const run = new Function('__import', '__exports', '__meta', 'github', 'callMCPTool', 'console',
      '"use strict"; return async function () { "use strict"; ' + body + '\n}')(
      async spec => { if (spec.includes('servers/github')) return github; throw new Error('no module ' + spec); },
      exports, {}, github, callMCPTool, console);
    let value = await run();
    if (value === undefined && 'default' in exports) {
      value = await exports.default;
      if (typeof value === 'function' && !/^class\b/.test(String(value))) value = await value();
    }
    values.push(typeof value === 'function' ? String(value).split('{')[0].trim() : JSON.stringify(value) ?? 'undefined');
  } catch (e) { values.push(String(e)); }
}
writeSync(1, JSON.stringify(values));
`
