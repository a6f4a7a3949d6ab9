package tsc

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// tell returns facts as one line of text. The members that are used are in braces. The sign * means that the whole
// value is used, () that it is called, and ? that typeof is applied to it.
func tell(f Facts) string {
	var parts []string
	for _, i := range f.Imports {
		form := []string{"import", "import()", "require", "export", "type"}[i.Form]
		parts = append(parts, fmt.Sprintf("%s %s%s", form, i.Specifier, tellUses(i.Names)))
	}
	if globals := tellUses(f.Globals); globals != "{}" {
		parts = append(parts, "free"+globals)
	}
	if types := tellUses(f.Types); types != "{}" {
		parts = append(parts, "types"+types)
	}
	for _, c := range f.Calls {
		if c.IsLiteral {
			parts = append(parts, fmt.Sprintf("%s%s(%q)", c.Specifier, strings.TrimPrefix("."+c.Name, "."), c.Literal))
		}
	}
	if f.Unknown {
		parts = append(parts, "unknown")
	}
	return strings.Join(parts, "; ")
}

func tellUses(uses map[string]*Use) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(uses)) {
		parts = append(parts, name+tellUse(uses[name]))
	}
	return "{" + strings.Join(parts, " ") + "}"
}

func tellUse(u *Use) string {
	text := ""
	for _, mark := range []struct {
		sign string
		set  bool
	}{{"*", u.Whole}, {"()", u.Called}, {"?", u.Asked}} {
		if mark.set {
			text += mark.sign
		}
	}
	if len(u.Members) > 0 {
		text += tellUses(u.Members)
	}
	if len(u.TypeNames) > 0 {
		text += "<" + strings.Join(u.TypeNames, " ") + ">"
	}
	return text
}

func TestFacts(t *testing.T) {
	for _, test := range []struct{ code, want string }{
		{"github.listIssues({})", "free{github{listIssues()}}"},
		{"github['listIssues']({}); github.a.b()", "free{github{a{b()} listIssues()}}"},
		{"github[name]()", "free{github* name*}"},
		{"const { a, b: c, 'd': e, f: { g } } = github; c()", "free{github{a b() d f{g}}}"},
		{"const { a, ...rest } = github; rest", "free{github*{a}}"},
		{"const { ['a']: x } = github", "free{github*}"},
		{"const g = github; const h = g; h.a(); g.b", "free{github{a() b}}"},
		{"let g = github; g.a()", "free{github*}"},
		{"f(github)", "free{f() github*}"},
		{"(github as any).a(); github!.b(); (github satisfies any).c()", "free{github{a() b() c()}}"},
		{"github?.a?.()", "free{github{a()}}"},
		{"typeof github; typeof github.a", "free{github?{a?}}"},
		{"{ const github = { a: 1 }; github.a } github.b", "free{github{b}}"},
		{"function f(github) { return github.a }", ""},
		{"const x = { github, y: github.a }", "free{github*{a*}}"},
		{"try { x() } catch (x) { x.y } label: for (;;) break label", "free{x()}"},
		{"class A { github = 1; m() { return this.github } } new A().github", ""},
		{"import * as gh from './a'; gh.x(); type T = gh.U; let y: typeof gh.z", "import ./a{*{x() z}<U>}"},
		{"import d, { a, b as c, type T } from './a'; a(); c.d; d", "import ./a{T a() b{d} default}"},
		{"import type { T } from './a'; import './b'", "type ./a{T}; import ./b{}"},
		{"let x: import('./a').T.U; let y: typeof import('./b')", "type ./a{*<T>}; type ./b{**}"},
		{"const { a } = await import('./a'); a(); (await import('./b')).c(); import('./d').then(m => m.e)", "import() ./a{*{a()}}; import() ./b{*{c()}}; import() ./d{**}"},
		{"import(x)", "free{x*}; unknown"},
		{"const { a } = require('./a'); require('./b').c()", "require ./a{*{a}}; require ./b{*{c()}}; free{require()}; require(\"./a\"); require(\"./b\")"},
		{"function require(x) {} require('./a')", ""},
		{"import a = require('./a'); a.b()", "require ./a{*{b()}}"},
		{"export * from './a'; export { b } from './b'", "export ./a{}; export ./b{}"},
		{"callMCPTool('a__b', {}); callMCPTool(`c`); callMCPTool(d)", "free{callMCPTool() d*}; callMCPTool(\"a__b\"); callMCPTool(\"c\")"},
		{"const call = callMCPTool; call('a'); [1].map(callMCPTool)", "free{callMCPTool*()}; callMCPTool(\"a\")"},
		{"import { callMCPTool as c } from './client'; c('a')", "import ./client{callMCPTool()}; ./clientcallMCPTool(\"a\")"},
		{"eval('x')", "free{eval()}; eval(\"x\"); unknown"},
		{"new Function('x')", "free{Function*}; unknown"},
		{"globalThis.x", "free{globalThis{x}}; unknown"},
		{"let f: Function; let g: github.T", "types{Function github<T>}"},
		{"enum E { A } namespace N { export const x = E.A } N.x; interface I<T> { a: T }", ""},
		{"export { x }; const x = y; export default z", "free{y* z*}"},
	} {
		src := mustParse(t, New(Limits{}), test.code, TypeScript)
		for _, d := range src.Errors() {
			t.Errorf("%s: %s", test.code, d.Message)
		}
		if got := tell(src.Facts()); got != test.want {
			t.Errorf("%s\n got %s\nwant %s", test.code, got, test.want)
		}
	}
}
