package typescript

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"retort/internal/core"
)

// strange lists unusual names for servers and tools. With any of them, programs must be able to call the tool.
var strange = []string{"index", "default", "then", "constructor", "__proto__", "prototype", "toString", "class", "await", "console", "servers", "client", "state",
	"globals", "a b", "a/b", "../x", "..", ".", "a\"b", "a'b", "a`b", "a\\b", "a\nb", "*/", "ünïcödé", "日本", "👍", "0", "1st", "a-b", "a_b", "aB", "A_B", "", "$", "_", "undefined", "Promise", "Object", "ToolError", "callMCPTool"}

func TestStrangeNames(t *testing.T) {
	var servers []*core.ToolServer
	for _, name := range strange {
		var tools []*core.Tool
		for _, tool_ := range strange {
			tools = append(tools, tool(tool_, `{"type":"object","properties":{"`+jsonText(name)+`":{"type":"string"}},"required":[]}`, ``))
		}
		servers = append(servers, server(name, tools...))
	}
	set := toolset(servers...)
	c := newChecker(t)
	for _, s := range set.Servers {
		var b strings.Builder
		fmt.Fprintf(&b, "import * as it from %q;\nconst got: any[] = [];\n", "./servers/"+s.TypeScript)
		for _, tool := range s.Tools {
			fmt.Fprintf(&b, "got.push(await it.%s({}));\n", tool.TypeScript)
		}
		b.WriteString("return got;\n")
		checked, refusal := c.CheckProgram(context.Background(), ProgramSource{Code: b.String(), Language: core.TypeScript}, set)
		if refusal != nil {
			t.Errorf("server %q: %s\n%s", s.Name, refusal.Message, refusal.Frame)
			continue
		}
		if len(checked.Tools) != len(s.Tools) || len(checked.Namespaces) != 1 || checked.Namespaces[0].Server != s.Name {
			t.Errorf("server %q: %d of %d tools, %d namespaces", s.Name, len(checked.Tools), len(s.Tools), len(checked.Namespaces))
		}
		for _, tool := range s.Tools {
			code := fmt.Sprintf("return await callMCPTool(%q, {});", s.Name+"__"+tool.Name)
			if _, refusal := c.CheckProgram(context.Background(), ProgramSource{Code: code, Language: core.TypeScript}, set); refusal != nil {
				t.Fatalf("by its raw name: %q: %s", s.Name+"__"+tool.Name, refusal.Message)
			}
			break
		}
	}
}

func jsonText(s string) string {
	text, _ := json.Marshal(s)
	return strings.Trim(string(text), `"`)
}

// TestManyTools checks programs that use some or all tools of a server with 10,000 tools.
func TestManyTools(t *testing.T) {
	var tools []*core.Tool
	for i := range 10_000 {
		tools = append(tools, tool(fmt.Sprintf("tool_%d", i), `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, ``))
	}
	set, c := toolset(server("big", tools...)), newChecker(t)
	check := func(code string) (CheckedProgram, *core.Error) {
		return c.CheckProgram(context.Background(), ProgramSource{Code: code, Language: core.TypeScript}, set)
	}
	if checked, refusal := check("return await big.tool9999({a: 'x'})"); refusal != nil || len(checked.Tools) != 1 {
		t.Errorf("%v, %d tools", refusal, len(checked.Tools))
	}
	if _, refusal := check("return await big.tool9999({b: 'x'})"); refusal == nil || refusal.Tool != "tool_9999" {
		t.Errorf("a wrong argument: %+v", refusal)
	}
	if _, refusal := check("return await big.tool10000({a: 'x'})"); refusal == nil || refusal.Kind != core.KindToolNotFound || !strings.Contains(refusal.Message, "tool1000") {
		t.Errorf("a tool that is not there: %+v", refusal)
	}
	if checked, refusal := check("const all: any = big; return Object.keys(all).length"); refusal != nil || len(checked.Tools) != 10_000 {
		t.Errorf("all of them: %v, %d tools", refusal, len(checked.Tools))
	}
}

// TestHostilePrograms checks that programs made to overload the compiler soon pass or are refused.
func TestHostilePrograms(t *testing.T) {
	nest := func(open, middle, close string, n int) string {
		return strings.Repeat(open, n) + middle + strings.Repeat(close, n)
	}
	c, set := checkerWith(t, within(500*time.Millisecond)), sample()
	for name, code := range map[string]string{
		"brackets":            nest("(", "1", ")", 100_000),
		"arrays":              nest("[", "", "]", 100_000),
		"objects":             "return " + nest("{a:", "1", "}", 100_000),
		"arrows":              strings.Repeat("()=>", 100_000) + "1",
		"templates":           nest("`${", "1", "}`", 10_000),
		"types":               "type A = " + nest("Array<", "1", ">", 10_000),
		"generics":            "type T<A> = " + nest("T<", "A", ">", 200) + "; let x: T<1>",
		"conditional types":   "type F<N extends any[]> = N['length'] extends 9999 ? N : F<[...N, 1]>; const x: F<[]> = 1 as any",
		"unions":              "type D = 0|1|2|3|4|5|6|7|8|9; type A = `${D}${D}${D}${D}${D}${D}${D}`; const a: A = 'x'",
		"mapped types":        "type K<T> = {[P in keyof T]: K<K<T[P]>>}; const k: K<{a: {b: {c: 1}}}> = null as any; k.a.b.c.d.e",
		"circular":            "type A = B; type B = A; interface C extends C {}; const c: C = 1",
		"operators":           "return " + strings.Repeat("1+", 50_000) + "1",
		"members":             "return a" + strings.Repeat(".b", 50_000),
		"calls":               "return f" + strings.Repeat("()", 50_000),
		"decorators":          strings.Repeat("@a ", 5000) + "class A {}",
		"comments":            strings.Repeat("/* ", 100_000),
		"one line":            "return '" + strings.Repeat("x", 900_000) + "'",
		"too long":            strings.Repeat("a;", 600_000),
		"zero bytes":          strings.Repeat("\x00", 1000),
		"not UTF-8":           strings.Repeat("\xff\xfe", 1000),
		"surrogates":          `return "\ud800\udfff\udfff"`,
		"directives":          strings.Repeat("// @ts-ignore\n", 1000) + "let x: number = 'a'",
		"references":          `/// <reference path="/etc/passwd" />` + "\n" + `/// <reference types="node" />` + "\nreturn 1",
		"imports of files":    `import x from '/etc/passwd'; import y from '../../../etc/passwd.json' with {type: 'json'}; return [x, y]`,
		"declares everything": "declare global { const github: any; interface Array<T> { length: string } }\nreturn github.x.y",
		"own module":          `declare module "./servers/github" { export function nothing(): void }` + "\n" + `import {nothing} from './servers/github'; nothing()`,
		"fences in fences":    strings.Repeat("```ts\n", 1000),
		"overloads":           strings.Repeat("function f(a: number): void;\n", 5000) + "function f(a: any) {}\nf('x')",
		"many errors":         strings.Repeat("undefinedName1();\n", 20_000),
		"labels":              strings.Repeat("a: ", 10_000) + "1",
		"getters":             "class A { " + strings.Repeat("get a() { return this.a } ", 2000) + "}",
		"enum":                "enum E { " + strings.Repeat("A, ", 20_000) + "}",
		"switch":              "switch (1 as any) {" + strings.Repeat("case 1:", 20_000) + "}",
		"flow":                "let x: any; " + strings.Repeat("if (x) { x = 1 } else { x = 'a' } while (x) { x = null }\n", 1500) + "x",
		"await in types":      "type A = Awaited<" + nest("Promise<", "1", ">", 500) + ">; let a: A = 2",
		"optional chains":     "return a" + strings.Repeat("?.b", 20_000),
		"private names":       "class A { " + strings.Repeat("#a = 1; ", 1000) + "}",
		"html comments":       strings.Repeat("<!-- x\n", 1000),
		"bidi":                "const admin = false; /*\u202e } \u2066if (admin)\u2069 \u2066 begin */ return 1",
	} {
		t.Run(name, func(t *testing.T) {
			_, refusal := c.CheckProgram(context.Background(), ProgramSource{Code: code, Language: core.TypeScript}, set)
			if refusal == nil {
				return
			}
			if refusal.Kind == core.KindInternal {
				t.Errorf("a fault of ours: %s", refusal.Message)
			}
			if size := len(refusal.Message) + len(refusal.Hint) + len(refusal.Frame); size > 8000 {
				t.Errorf("a refusal of %d bytes", size)
			}
		})
	}
}

// FuzzCheck checks that no program causes an internal error, and that all positions lie within the program.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{"return 1", "```ts\nreturn github.getMe()\n```", "import * as g from './servers/github'; g.listIssues('o', 'r')", "{ a: 1 }", "const a0 = {x: 1}; const w: {q: number} = a0",
		"async function main() { return await github.get_issue({}) }", "type A<T> = T extends `${infer H}${infer R}` ? [H, ...A<R>] : []; let a: A<'abc'>", "export default () => 1", "<div/>", "let let", "\ufeffreturn\r\n1"} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	c, set := newChecker(f), sample()
	f.Fuzz(func(t *testing.T, code string, typed bool) {
		language := core.JavaScript
		if typed {
			language = core.TypeScript
		}
		checked, refusal := c.CheckProgram(context.Background(), ProgramSource{Code: code, Language: language}, set)
		switch {
		case refusal == nil:
			checked.Locate(1, 1)
			checked.Locate(strings.Count(checked.Code, "\n")+1, 7)
		case refusal.Kind == core.KindInternal:
			t.Errorf("%q: %s", code, refusal.Message)
		case refusal.Line < 0 || refusal.Line > strings.Count(code, "\n")+strings.Count(code, "\r")+2:
			t.Errorf("%q: refused at line %d", code, refusal.Line)
		}
	})
}
