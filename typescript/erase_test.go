package tsc

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/microsoft/typescript-go/internal/ast"
	"github.com/microsoft/typescript-go/internal/compiler"
	"github.com/microsoft/typescript-go/internal/core"
)

// outline returns a text that describes the syntax tree of a program. It ignores blanks, comments, parentheses and
// empty statements, so that equivalent programs have equal outlines.
func outline(code string) string {
	var b strings.Builder
	var add func(n *ast.Node) bool
	add = func(n *ast.Node) bool {
		switch {
		case n.Flags&ast.NodeFlagsReparsed != 0, n.Kind == ast.KindEmptyStatement, n.Kind == ast.KindSemicolonClassElement, n.Kind == ast.KindEndOfFile:
			return false
		case n.Kind == ast.KindParenthesizedExpression, ast.IsAssertionExpression(n), ast.IsSatisfiesExpression(n): // of JSDoc
			return add(n.Expression())
		}
		b.WriteString(" (" + strconv.Itoa(int(n.Kind)))
		switch {
		case ast.IsIdentifier(n), ast.IsLiteralExpression(n), ast.IsPrivateIdentifier(n), ast.IsTemplateHead(n), ast.IsTemplateMiddle(n), ast.IsTemplateTail(n):
			b.WriteString(strconv.Quote(n.Text()))
		case n.Kind == ast.KindPrefixUnaryExpression:
			b.WriteString(strconv.Itoa(int(n.AsPrefixUnaryExpression().Operator)))
		case n.Kind == ast.KindPostfixUnaryExpression:
			b.WriteString(strconv.Itoa(int(n.AsPostfixUnaryExpression().Operator)))
		case n.Kind == ast.KindVariableDeclarationList:
			b.WriteString(strconv.Itoa(int(n.Flags & ast.NodeFlagsBlockScoped)))
		}
		n.ForEachChild(add)
		b.WriteByte(')')
		return false
	}
	file := parseModule(JavaScript, code)
	for _, d := range file.Diagnostics() {
		b.WriteString("error: " + d.String())
	}
	file.AsNode().ForEachChild(add)
	return b.String()
}

// bothWays returns the body of a program twice: made by cutting out its types, and made by the compiler's printer.
// direct is false if only the printer can make the body.
func bothWays(c *Compiler, code string, kind Kind) (cut, printed string, direct, ok bool) {
	ctx := context.Background()
	src, err := c.Parse(ctx, code, kind)
	if err != nil || len(src.Errors()) > 0 {
		return "", "", false, false
	}
	defer func() {
		if recover() != nil { // the compiler gives up on some that are no programs
			ok = false
		}
	}()
	in := testInput()
	make := func() (*unit, *compiler.Program) {
		u := newUnit(src, in)
		return u, compiler.NewProgram(compiler.ProgramOptions{
			Host: newHost(u.file, in.Files, c.cache), Config: commandLine(append([]string{u.file.FileName()}, in.Ambient...), in.Strict), SingleThreaded: core.TSTrue,
		})
	}
	u, program := make()
	types, done := program.GetTypeChecker(ctx)
	cut, _, direct = u.direct(types, append(types.GetDiagnostics(ctx, u.file), u.file.BindDiagnostics()...))
	done()
	u, program = make()
	js, mappings := emit(ctx, program, u.file)
	printed, _, err = u.body(js, mappings)
	return cut, printed, direct, err == nil
}

// erasures lists programs in which cutting out a type could change the meaning of the rest.
var erasures = []string{
	"let a: any = 1 as any\n(2)", "const b = (1 + 2 as number) * 3", "let q = 1\nlet b = q as any\n[0]", "let x: number\n(5)", "let s!: string; s = 'x' as const\n`t`",
	"async function f<T>(this: any, a?: T, ...r: T[]): Promise<T> { return a! }", "const g = async <T,>(x: T): Promise<T> => x", "const g = (x: number)\n: number => x",
	"const g = async <\nT\n>(x: T) => x", "class A<T> extends Map<string, T> implements Iterable<any> { private readonly x: number = 1\n public ['y']: string\n static z?: T\n *gen(): any {} }",
	"abstract class A { abstract f(): void; protected abstract x: number; constructor(); constructor(a?: number) {} get v(): number { return 1 } [k: string]: any }",
	"export default abstract class B { declare x: number; override y = 1 }", "interface I { a: number }\ntype T = I\ndeclare const d: I\ndeclare function f(): void\nreturn 1",
	"function f(a: string): void\nfunction f(a: number): void\nfunction f(a: any) {}\nreturn f(1)", "const m = new Map<string, Array<number>>\nreturn m", "return(<any>1)", "return<any>1",
	"const r = typeof<any>1", "let a = 1, b = 2; const c = a < (b as number)", "let o: any; o!.x!.y!()", "let o: any; o?.x!.y\nreturn o", "for (const x of [1] as number[]) {}", "for (let i: number = 0; i < 1; i++) {}",
	"if (1 as any) 2 as any\nelse 3 as any", "const t = String.raw<string>`x`", "import { getUser as g, type GetUserInput } from './servers/github'; return g", "import type { GetUserInput } from './servers/github'; let x: GetUserInput; return 1",
	"import { GetUserInput } from './servers/github'; let x: GetUserInput; return 1", "import './servers/github'; return 1", "import * as gh from './servers/github'; let x: gh.GetUserInput", "import * as gh from './servers/github'; return gh",
	"import d, { getUser } from './servers/github'; return getUser", "const f = function <T>(this: T) {}", "const f = (a: number, ) => a as any as string", "let v = <T,>(x: T) => x", "const x = { m<T>(a: T): a is T { return true }, get p(): number { return 1 } }",
	"class P { constructor(private x: number) {} }", "enum E { A } return E.A", "namespace N { export const a = 1 } return N.a", "const a = 'x' satisfies string\nconst b = 1", "let a, b; [a, b] = [1, 2] as [number, number]\nreturn a",
	"try { throw new Error('x') as any } catch (e: any) { return e.message as string }", "export const a = 1; export default a", "export default (async () => 1) as any", "const main = (async () => 1) as any", "async function main(): Promise<void> {}\n(main as any)()",
	"let f!: <T>(x: T) => T; f<number>(1)", "const k = a<b>(c)", "let n: number | undefined; return n as number ?? 1", "let n = 1; return -n as number", "label: for (;;) { break label }", "a: { type X = 1 }", "const s = '<!--' as string", "let i = 1; while (i --> 0) {}",
	"let x = 1 // as any\n  as number\nreturn x", "let y = /* a */ 1 /* b */ as /* c */ number /* d */; return y", "@dec class D {}", "class C { accessor x = 1 }", "{ using r = null as any }", "switch (1 as number) { case 1 as number: type Q = 1; return 2 }",
	"const { a = 1 as number, ...rest }: any = {}; return rest", "let é: string = 'ü' as string; return é", "return await import('./servers/github') as any", "const z = require('./servers/github') as any; return z", "let a = (b: any): b is string => true", "function assert(x: any): asserts x {}",
	"const f = ({ a }: { a: number }, [b]: number[] = [1]): number => a", "type A = { x: 1 }\n;[1, 2].forEach((x: number) => x)", "let x = y as any\n++x", "let x, y; x = y!\n++x", "class A { x\n static y: number\n ['z'] = 1 }", "return 0!.toFixed()", "class A { get\n x(): number { return 1 } }",
}

func TestErasures(t *testing.T) {
	c := New(Limits{})
	for _, code := range erasures {
		cut, printed, _, ok := bothWays(c, code, TypeScript)
		if ok && cut != "" && outline(cut) != outline(printed) {
			t.Errorf("%s\n cut to\n%s\n and printed as\n%s", code, cut, printed)
		}
	}
}

// TestErasedIsWhatIsPrinted checks that cutting out types gives code equivalent to the printer's, for all programs in
// the test data. RETORT_TYPESCRIPT may name a folder with further programs.
func TestErasedIsWhatIsPrinted(t *testing.T) {
	c := New(Limits{})
	programs := map[string]string{}
	for _, v := range valueTests {
		programs[v.name] = v.code
	}
	folders := []string{"../testdata/programs"}
	if more := os.Getenv("RETORT_TYPESCRIPT"); more != "" {
		folders = append(folders, more)
	}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "s") || strings.HasSuffix(path, ".d.ts") || filepath.Ext(path) != ".ts" && filepath.Ext(path) != ".js" {
				return err
			}
			text, err := os.ReadFile(path)
			programs[path] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	all, direct := 0, 0
	for name, code := range programs {
		kind := TypeScript
		if filepath.Ext(name) == ".js" {
			kind = JavaScript
		}
		cut, printed, wasCut, ok := bothWays(c, code, kind)
		if !ok {
			continue
		}
		all++
		if !wasCut {
			continue
		}
		direct++
		if outline(cut) != outline(printed) {
			t.Errorf("%s cut to\n%s\n and printed as\n%s", name, cut, printed)
		}
	}
	t.Logf("%d of %d programs are cut", direct, all)
	if direct*2 < all {
		t.Errorf("%d of %d programs are cut", direct, all)
	}
}

// FuzzErase checks that a program from which types were cut is equivalent to the printer's output.
func FuzzErase(f *testing.F) {
	for _, code := range erasures {
		f.Add(code)
	}
	for _, v := range valueTests {
		f.Add(v.code)
	}
	c := New(Limits{Tokens: 300})
	f.Fuzz(func(t *testing.T, code string) {
		cut, printed, direct, ok := bothWays(c, code, TypeScript)
		if ok && direct && outline(cut) != outline(printed) {
			t.Errorf("%q\n cut to\n%q\n and printed as\n%q", code, cut, printed)
		}
	})
}
