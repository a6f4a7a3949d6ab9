package tsc

import (
	"context"
	"strings"
	"sync"
	"testing"
)

func TestDiagnostics(t *testing.T) {
	for _, test := range []struct{ code, want string }{
		{"return github.getUser({ name: 'a' })", ""},
		{"await github.listIssues({ owner: 'a', repo: 3 })", "1:39 TS2322 Type 'number' is not assignable to type 'string'. [argument of listIssues]"},
		{"return github.listIssues({ owner: 'a' })", "1:26 TS2741 Property 'repo' is missing in type '{ owner: string; }' but required in type 'ListIssuesInput'. [argument of listIssues]"},
		{"import { getUser as g } from './servers/github'; g({ nme: 'a' })", "1:54 TS2769 Object literal may only specify known properties, but 'nme' does not exist in type 'GetUserInput'. Did you mean to write 'name'? [argument of getUser]"},
		{"const f = github.getUser; f()", "1:27 TS2554 Expected 1 arguments, but got 0. [argument of getUser]"},
		{"github.getUser({ name: [1].map(x => x.foo) as any })", "1:39 TS2339 Property 'foo' does not exist on type 'number'."},
		{"JSON.parse(5)", "1:12 TS2345 Argument of type 'number' is not assignable to parameter of type 'string'."},
		{"const q = { owner: 'a', repo: 'b', state: 'open' }; github.listIssues(q)",
			"1:71 TS2345 Type 'string' is not assignable to type '\"closed\" | \"open\"'. Types of property 'state' are incompatible. Argument of type '{ owner: string; repo: string; state: string; }' is not assignable to parameter of type 'ListIssuesInput'. [widened] [argument of listIssues]"},
		{"const q: any = {}; github.listIssues(q)", ""},
		{"let q = {}; Object.assign(q, { name: 'x' }); github.listIssues(q)", "1:64 TS2739 Type '{}' is missing the following properties from type 'ListIssuesInput': owner, repo [open] [argument of listIssues]"},
		{"const q: Record<string, any> = { name: 'a' }; github.getUser(q)",
			"1:62 TS2769 Property 'name' is missing in type 'Record<string, any>' but required in type 'GetUserInput'. [open] [argument of getUser]"},
		{"const q: unknown = 1; github.getUser({ name: q })", "1:40 TS2769 Type 'unknown' is not assignable to type 'string'. [open] [argument of getUser]"},
		{"function f<T>(x: T) { return github.getUser(x) }", "1:45 TS2769 Argument of type 'T' is not assignable to parameter of type 'GetUserInput'. [open] [argument of getUser]"},
		{"github.nothing()", "1:8 TS2339 Property 'nothing' does not exist on type 'typeof import(\"/servers/github/index\")'. [member nothing]"},
		{"const { nothing } = github", "1:9 TS2339 Property 'nothing' does not exist on type 'typeof import(\"/servers/github/index\")'. [member nothing]"},
		{"import { nothing } from './servers/github'; nothing", "1:10 TS2305 Module '\"./servers/github\"' has no exported member 'nothing'. [member nothing]"},
		{"typeof nothing", "1:8 TS2304 Cannot find name 'nothing'. [erased]"},
		{"let x: Nothing", "1:8 TS2304 Cannot find name 'Nothing'. [erased]"},
		{"interface A extends Nothing {}", "1:21 TS2304 Cannot find name 'Nothing'. [erased]"},
		{"nothing", "1:1 TS2304 Cannot find name 'nothing'."},
		{"// @ts-ignore\nnothing", "2:1 TS2304 Cannot find name 'nothing'."},
		{"// @ts-nocheck\nnothing", "2:1 TS2304 Cannot find name 'nothing'."},
	} {
		result := mustCheck(t, New(Limits{}), test.code, TypeScript)
		if got := strings.TrimSpace(describe(result.Diagnostics)); got != test.want {
			t.Errorf("%s\n got %s\nwant %s", test.code, got, test.want)
		}
	}
}

func TestSyntaxErrors(t *testing.T) {
	c := New(Limits{})
	for _, test := range []struct {
		kind       Kind
		code, want string
	}{
		{TypeScript, "const x = ;", "1:11 TS1109 Expression expected."},
		{TypeScript, "{ a: 1, b: }", "1:10 TS1005 ';' expected."},
		{JavaScript, "let x: number = 1", "1:8 TS8010 Type annotations can only be used in TypeScript files."},
		{TypeScript, "a ? (b) : c => d", ""},
	} {
		got, _, _ := strings.Cut(describe(mustParse(t, c, test.code, test.kind).Errors()), "\n")
		if got != test.want {
			t.Errorf("%s\n got %s\nwant %s", test.code, got, test.want)
		}
	}
}

// TestSpecifiers checks that module specifiers are replaced before type checking and in the emitted code, and that
// diagnostics still have the positions of the original text.
func TestSpecifiers(t *testing.T) {
	c := New(Limits{})
	src := mustParse(t, c, "import { getUser } from 'gh'; import x = require('gh'); let t: import('gh').Issue;\nimport('gh'); require('gh'); getUser(5)", TypeScript)
	in := testInput()
	in.Specifiers = map[string]string{"gh": "./servers/github"}
	result, err := c.Check(context.Background(), src, in)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(result.JavaScript, "\"gh\"") || strings.Contains(result.JavaScript, "'gh'") {
		t.Errorf("the specifier is left in\n%s", result.JavaScript)
	}
	want := "2:38 TS2769 Argument of type 'number' is not assignable to parameter of type 'GetUserInput'. [argument of getUser]\n"
	if got := describe(result.Diagnostics); !strings.HasSuffix(got, want) || strings.Contains(got, "TS2307") {
		t.Errorf("got %swant %s", got, want)
	}
}

func TestConcurrentChecks(t *testing.T) {
	c := New(Limits{})
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for range 5 {
				result := mustCheck(t, c, strings.Repeat("\n", i)+"github.getUser(5); return 1", TypeScript)
				if len(result.Diagnostics) != 1 || result.Diagnostics[0].Line != i+1 {
					t.Errorf("got %s", describe(result.Diagnostics))
				}
			}
		})
	}
	group.Wait()
}

func TestCacheIsBounded(t *testing.T) {
	c := New(Limits{Cache: 4096})
	for i := range 100 {
		in := testInput()
		in.Files["/servers/github/index.d.ts"] = testServer + strings.Repeat("/", 2) + strings.Repeat("x", i)
		if _, err := c.Check(context.Background(), mustParse(t, c, "return github", TypeScript), in); err != nil {
			t.Fatal(err)
		}
		if c.cache.bytes > 4096 || len(c.cache.files) != c.cache.order.Len() || len(c.cache.files) > 8 {
			t.Fatalf("%d bytes, %d files, %d in order", c.cache.bytes, len(c.cache.files), c.cache.order.Len())
		}
	}
}

// FuzzCheck checks that no program crashes the compiler or makes it report positions outside the text.
func FuzzCheck(f *testing.F) {
	for _, test := range valueTests {
		f.Add(test.code, test.kind == JavaScript)
	}
	for _, bomb := range bombs {
		f.Add(bomb(3), false)
	}
	c := New(Limits{})
	f.Fuzz(func(t *testing.T, code string, script bool) {
		kind := TypeScript
		if script {
			kind = JavaScript
		}
		src, err := c.Parse(context.Background(), code, kind)
		if err != nil || len(src.Errors()) > 0 {
			if err != nil && !isRefusal(err) {
				t.Fatal(err)
			}
			return
		}
		result, err := c.Check(context.Background(), src, testInput())
		if err != nil {
			if !isRefusal(err) {
				t.Fatal(err)
			}
			return
		}
		for _, d := range result.Diagnostics {
			if d.Start < 0 || d.End < d.Start || d.End > len(code) || d.Line < 1 {
				t.Fatalf("%+v", d)
			}
		}
		result.Locate(1, 1)
		result.Locate(strings.Count(result.JavaScript, "\n")+1, 3)
	})
}
