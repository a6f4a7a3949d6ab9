package tsc

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"
)

func rep(n int, s string) string { return strings.Repeat(s, n) }

// chain repeats a pattern n times, replacing $0 by the number of the repetition, from 0, and $1 by the next number.
func chain(n int, pattern string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(pattern, "$0", strconv.Itoa(i)), "$1", strconv.Itoa(i+1)))
	}
	return b.String()
}

// bombs maps a kind of nesting to a function that returns a program with n levels of it.
var bombs = map[string]func(n int) string{
	"parentheses":                func(n int) string { return "x = " + rep(n, "(") + "1" + rep(n, ")") },
	"only open":                  func(n int) string { return rep(n, "(") },
	"only closed":                func(n int) string { return rep(n, ")") },
	"brackets":                   func(n int) string { return "let x = " + rep(n, "[") + "1" + rep(n, "]") },
	"blocks":                     func(n int) string { return rep(n, "{") + rep(n, "}") },
	"objects":                    func(n int) string { return "let x = " + rep(n, "{a:") + "1" + rep(n, "}") },
	"not":                        func(n int) string { return "let x = " + rep(n, "!") + "1" },
	"minus":                      func(n int) string { return "let x = " + rep(n, "- ") + "1" },
	"typeof":                     func(n int) string { return "let x = " + rep(n, "typeof ") + "1" },
	"await":                      func(n int) string { return "let x = " + rep(n, "await ") + "1" },
	"new":                        func(n int) string { return "let x = " + rep(n, "new ") + "Date" },
	"yield":                      func(n int) string { return "function* g() { " + rep(n, "yield ") + "1 }" },
	"conditional":                func(n int) string { return "let a = 1, x = " + rep(n, "a?b:") + "1" },
	"conditional, then":          func(n int) string { return "let a = 1, x = " + rep(n, "a?") + "1" + rep(n, ":1") },
	"sum":                        func(n int) string { return "let x = 1" + rep(n, "+1") },
	"power":                      func(n int) string { return "let x = 1" + rep(n, "**1") },
	"or":                         func(n int) string { return "let x = 1" + rep(n, "||1") },
	"comma":                      func(n int) string { return "let a = 1; a" + rep(n, ",a") },
	"comma in block":             func(n int) string { return "let a = 1; { a" + rep(n, ",a") + " }" },
	"assignment":                 func(n int) string { return "let a = 1; " + rep(n, "a=") + "1" },
	"members":                    func(n int) string { return "let a: any, x = a" + rep(n, ".a") },
	"optional members":           func(n int) string { return "let a: any, x = a" + rep(n, "?.a") },
	"elements":                   func(n int) string { return "let a: any, x = a" + rep(n, "[0]") },
	"calls":                      func(n int) string { return "let a: any, x = a" + rep(n, "()") },
	"methods":                    func(n int) string { return "let x = [1]" + rep(n, ".map(x => x)") },
	"non-null":                   func(n int) string { return "let a: any, x = a" + rep(n, "!") },
	"as":                         func(n int) string { return "let a: any, x = a" + rep(n, " as any") },
	"casts":                      func(n int) string { return "let x = " + rep(n, "<any>") + "1" },
	"tagged":                     func(n int) string { return "let a: any, x = a" + rep(n, "``") },
	"templates":                  func(n int) string { return "let x = " + rep(n, "`${") + "1" + rep(n, "}`") },
	"arrows":                     func(n int) string { return "let x = " + rep(n, "a=>") + "1" },
	"async arrows":               func(n int) string { return "let x = " + rep(n, "async () => ") + "1" },
	"functions":                  func(n int) string { return rep(n, "function f(){") + rep(n, "}") },
	"classes":                    func(n int) string { return "let x = " + rep(n, "class{x=") + "1" + rep(n, "}") },
	"class extends":              func(n int) string { return "let x = " + rep(n, "class extends ") + "Object" + rep(n, "{}") },
	"if":                         func(n int) string { return rep(n, "if(1)") + ";" },
	"else":                       func(n int) string { return rep(n, "if(1);else ") + ";" },
	"do":                         func(n int) string { return rep(n, "do ") + ";" + rep(n, " while(0)") },
	"for":                        func(n int) string { return rep(n, "for(;;)") + ";" },
	"labels":                     func(n int) string { return chain(n, "a$0:") + ";" },
	"try":                        func(n int) string { return rep(n, "try{") + rep(n, "}finally{}") },
	"switch":                     func(n int) string { return rep(n, "switch(1){case 1:") + rep(n, "}") },
	"generics":                   func(n int) string { return "let x: " + rep(n, "Array<") + "any" + rep(n, ">") },
	"open generics":              func(n int) string { return "let x: " + rep(n, "A<") + "A" },
	"array types":                func(n int) string { return "let x: any" + rep(n, "[]") },
	"object types":               func(n int) string { return "let x: " + rep(n, "{a:") + "any" + rep(n, "}") },
	"keyof":                      func(n int) string { return "let x: " + rep(n, "keyof ") + "any" },
	"function types":             func(n int) string { return "let x: " + rep(n, "()=>") + "any" },
	"conditional types":          func(n int) string { return "type T<A> = " + rep(n, "A extends 1?2:") + "any" },
	"patterns":                   func(n int) string { return "let " + rep(n, "{a:") + "b" + rep(n, "}") + " = 1 as any" },
	"namespaces":                 func(n int) string { return "namespace a" + rep(n, ".a") + "{}" },
	"JSX":                        func(n int) string { return "let x = " + rep(n, "<a>") + rep(n, "</a>") },
	"JSDoc":                      func(n int) string { return "/** @type {" + rep(n, "(") + "any" + rep(n, ")") + "} */ let x;" },
	"regular expression, groups": func(n int) string { return "let x = /" + rep(n, "(") + rep(n, ")") + "/" },
	"string doubling":            func(n int) string { return "const a0 = 'x'; " + chain(n, "const b$1 = `${b$0}${b$0}`;") },
	"hidden by a regular expression": func(n int) string {
		return "let a = {} / \"/ " + rep(n, "(") + rep(n, ")") + "//\""
	},
	"hidden by await":      func(n int) string { return "await /" + rep(n, "(") + "/" },
	"hidden by an error":   func(n int) string { return "({return /" + rep(n, "(") + "/})" },
	"hidden in a template": func(n int) string { return "`${ ( }` " + rep(n, "(") + "`" },
}

func isRefusal(err error) bool {
	for _, known := range []error{ErrTooLarge, ErrTooDeep, ErrUnclear, ErrTime} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// checkAll parses and checks a program, and reports whether it was refused. Any other error fails the test.
func checkAll(t testing.TB, c *Compiler, code string, kind Kind) (refused bool) {
	t.Helper()
	src, err := c.Parse(context.Background(), code, kind)
	if err == nil && len(src.Errors()) == 0 {
		_, err = c.Check(context.Background(), src, testInput())
	}
	if err != nil && !isRefusal(err) {
		t.Fatalf("%v", err)
	}
	return err != nil
}

// TestBombs checks that a million levels of each kind of nesting are refused, and that 20,000 and 100 levels do not
// crash the compiler. A stack overflow would end the test process.
func TestBombs(t *testing.T) {
	c := New(Limits{Time: 2 * time.Second})
	for name, bomb := range bombs {
		for _, kind := range []Kind{TypeScript, JavaScript} {
			if !checkAll(t, c, bomb(1_000_000), kind) {
				t.Errorf("%s, %d: a million of them passed", name, kind)
			}
			checkAll(t, c, bomb(20_000), kind)
			checkAll(t, c, bomb(100), kind)
		}
	}
}

// TestBoundsAreWide checks that large but realistic programs are accepted, such as those with much data or many ifs.
func TestBoundsAreWide(t *testing.T) {
	c := New(Limits{})
	for name, code := range map[string]string{
		"data":                   "const data = [" + rep(9000, `{"id": 1, "name": "a b c"},`) + "];\nreturn data.length",
		"a megabyte of text":     "const s = `" + rep(1_000_000, "(") + "`;\nreturn s.length",
		"no semicolons":          chain(1500, "const a$0 = [$0].map(x => x + 1).filter(x => x > 1)\n"),
		"many ifs":               "let x: any = 1\n" + rep(800, "if (x > 1 && x < 3) { x = x.a.b.c }\n"),
		"else if":                "let x: any = 1\n" + rep(60, "if (x === 1) { x = 2 } else ") + "{}",
		"cases":                  "let x: any = 1\nswitch (x) {" + chain(400, "case $0: ") + "x = 1 }",
		"long union":             "type T = 'x'" + rep(300, " | 'a'"),
		"concatenation":          "let s = 'a'" + rep(300, "\n + 'b'"),
		"chain of calls":         "let s = [1]" + rep(60, "\n.map(x => x)"),
		"templates with slashes": "const a = 1;\n" + rep(200, "console.log(`${a}/${a}/x`, a / 2 / 3, (a) / 2 / 3, [a][0] / 2 / 3);\n"),
		"regular expressions":    "const a = 'x';\n" + rep(200, `console.log(a.replace(/[/"'(]+/g, "'"), /x/.test(a) ? /"/ : /'/);`+"\n"),
		"smileys":                "// :( :( :(\nconst s = ':( :(';\n" + rep(300, "console.log(':(');\n"),
	} {
		src, err := c.Parse(context.Background(), code, TypeScript)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(src.Errors()) > 0 {
			t.Errorf("%s: %s", name, src.Errors()[0].Message)
		}
	}
}

func TestGrowth(t *testing.T) {
	c := New(Limits{})
	for name, test := range map[string]struct {
		code    string
		refused bool
	}{
		"template expressions": {"const a0 = 'xx';" + chain(40, "const a$1 = `${a$0}${a$0}`;"), true},
		"sums":                 {"const a0 = 'xx';" + chain(40, "const a$1 = a$0 + a$0;") + "const t = `${a40}`", true},
		"enum":                 {"enum E { a0 = 'xx'," + chain(40, "a$1 = a$0 + a$0,") + "}", true},
		"enum by name":         {"enum E { a0 = 'xx'," + chain(40, "a$1 = E.a$0 + E['a$0'],") + "}", true},
		"types":                {"type a0 = 'xx';" + chain(40, "type a$1 = `${a$0}${a$0}`;"), true},
		"as const":             {"const a0 = 'xx';" + chain(40, "const a$1 = `${a$0}${a$0}` as const;"), true},
		"recursive":            {"type D<S extends string> = D<`${S}${S}`>", true},
		"generic function":     {"function f<S extends string>(s: S) { return `${s}${s}` as const }", true},
		"ordinary":             {rep(300, "{ const a = 'x', b = `${a}/${a}`, c = `${b}?${a}=${b}`; }\n"), false},
		"ordinary const":       {"const base = 'https://x';\nconst urls = { a: `${base}/a`, b: `${base}/b` } as const;\nenum E { A = 'a', B = `${A}b` }\nreturn urls.a", false},
		"ordinary types":       {"type Id = `id-${number}`;\ntype Method = 'GET' | 'POST';\ntype Route = `${Method} /${string}`;\ntype Tail<S> = S extends `${infer H}-${infer T}` ? T : S;", false},
	} {
		_, err := c.Parse(context.Background(), test.code, TypeScript)
		if (err != nil) != test.refused || err != nil && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTime(t *testing.T) {
	slow := "let x: any;" + rep(4000, "if(x)x=1;while(x){x=x.y;}")
	c := New(Limits{Time: 20 * time.Millisecond})
	if _, err := c.Parse(context.Background(), slow, TypeScript); err != nil && !errors.Is(err, ErrTime) {
		t.Fatal(err)
	}
	src := mustParse(t, New(Limits{}), slow, TypeScript)
	if _, err := c.Check(context.Background(), src, testInput()); !errors.Is(err, ErrTime) {
		t.Errorf("got %v, want ErrTime", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Check(ctx, src, testInput()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
}

func TestBusy(t *testing.T) {
	c := New(Limits{Time: 50 * time.Millisecond})
	for range cap(c.slots) {
		c.slots <- struct{}{}
	}
	if _, err := c.Parse(context.Background(), "1", TypeScript); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v, want ErrBusy", err)
	}
}

func TestPanicIsAnError(t *testing.T) {
	_, err := guarded(context.Background(), New(Limits{}), func(context.Context) (int, error) { panic("boom") })
	if !errors.Is(err, ErrInternal) || !strings.Contains(err.Error(), "boom") {
		t.Errorf("got %v", err)
	}
}
