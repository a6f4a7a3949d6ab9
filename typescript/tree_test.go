package tsc

import (
	"fmt"
	"strings"
	"testing"
)

// drawn returns a tree as one line of text, in which a node has the form kind:text#variable(children).
func drawn(nodes []Node) string {
	var b strings.Builder
	var draw func(i int)
	draw = func(i int) {
		n := nodes[i]
		b.WriteString(n.Kind)
		if n.Text != "" {
			b.WriteString(":" + n.Text)
		}
		if n.Bind > 0 {
			fmt.Fprintf(&b, "#%d", n.Bind)
		}
		if n.Size == 1 {
			return
		}
		b.WriteByte('(')
		for c := i + 1; c < i+n.Size; c += nodes[c].Size {
			if c > i+1 {
				b.WriteByte(' ')
			}
			draw(c)
		}
		b.WriteByte(')')
	}
	draw(0)
	return strings.TrimPrefix(b.String(), "other")
}

func TestTree(t *testing.T) {
	for _, test := range []struct{ code, want string }{
		{"a.b['c'](1, ...d)", "(other(call(index(member:b(name:a) string:c) number:1 spread(name:d))))"},
		{"const x: number = (y as any)!; x", "(other(other(assign:=(name:x#1 name:y))) other(name:x#1))"},
		{"const { a, b: { c }, ['d']: e, ...f } = g", "(other(other(assign:=(object(property:a(name:a#1) property:b(object(property:c(name:c#2))) property(string:d name:e#3) spread(name:f#4)) name:g))))"},
		{"function f(document, {eval: e} = {}) { return document.x(e) } f()",
			"(function:f#3(parameter:document#1 parameter(object(property:eval(name:e#2)) object) other(return(call(member:x(name:document#1) name:e#2)))) other(call(name:f#3)))"},
		{"class A extends B { eval() { this.x } static y = 1 } new A()", "(class:A#2(other(name:B) property:eval(function#1(other(other(member:x(constant:this))))) property:y(number:1)) other(new(name:A#2)))"},
		{"import d, { a as b } from 'm'; import * as n from 'o'; import type { T } from 'p'; const q = await import('r')",
			"(import:m(imported:default#1 imported:a#2) import:o(imported:*#3) import:p other(other(assign:=(name:q#4 await(call(name:import string:r))))))"},
		{"for (const [k, v] of m) if (k && v) x ||= `a${k}b`", "(loop:for(assign:of(array(name:k#1 name:v#2) name:m) branch:if(logical:&&(name:k#1 name:v#2) other(assign:||=(name:x template(string:a name:k#1 string:b))))))"},
		{"interface I { document: string } type U = typeof eval; enum E { A = 1 } label: for (;;) break label", "(class:E#1(property:A(number:1)) other(loop:for(other)))"},
		{"export { x as eval }; export const x = { document, 'b': 1, c() {}, [d]: 2 }", "(other(other(other(name:x#1))) other(other(assign:=(name:x#1 object(property:document(name:document) property:b(number:1) property:c(function#2(other)) property(name:d number:2))))))"},
		{"try { f`x` } catch (e) { e, delete e.a } switch (1) { case 2: !3 }", "(other(other(other(call(name:f string:x))) branch:catch(parameter:e#1 other(other(binary:,(name:e#1 delete(member:a(name:e#1))))))) other(number:1 other(branch:case(number:2 other(unary:!(number:3))))))"},
		{"{ a: eval }", "(other(object(property:a(name:eval))))"},
	} {
		src := mustParse(t, New(Limits{}), test.code, TypeScript)
		for _, d := range src.Errors() {
			t.Errorf("%s: %s", test.code, d.Message)
		}
		if got := drawn(src.Tree()); got != test.want {
			t.Errorf("%s\n got %s\nwant %s", test.code, got, test.want)
		}
	}
}

// FuzzTree checks that every program without syntax errors has a tree, in which each node lies inside its parent and
// inside the text.
func FuzzTree(f *testing.F) {
	for _, seed := range []string{"a.b['c'](1, ...d)", "{ a: 1 }", "const { a, b: { c = 1 }, ['d']: e, ...f } = g", "class A extends B { static #x = 1; get y() { return this.#x } constructor(private a: number) { super() } }",
		"for await (const x of y) label: while (1) break label", "import a, { b as c } from 'd'; import e = require('f'); export * from 'g'; export default a",
		"enum E { A = 'x' } namespace N { export const x = 1 } declare const y: typeof N", "`a${b}c${`d${e}`}`; f`g${h}`; new.target; import.meta", "try { a ||= b?.c?.[d]!; } catch { } finally { delete x.y }",
		"@d class C { @e m(@f x: string) {} }", "switch (a) { case 1: default: yield: 2 }", "async function* f() { yield* g(); await h }", "#!/x\nreturn 1"} {
		f.Add(seed)
	}
	c := New(Limits{})
	f.Fuzz(func(t *testing.T, code string) {
		src, err := c.Parse(t.Context(), code, TypeScript)
		if err != nil || len(src.Errors()) > 0 {
			return
		}
		nodes := src.Tree()
		ends := []int{len(nodes)}
		for i, n := range nodes {
			for len(ends) > 1 && ends[len(ends)-1] <= i {
				ends = ends[:len(ends)-1]
			}
			if n.Size < 1 || i+n.Size > ends[len(ends)-1] || n.Start < 0 || n.End < n.Start || n.End > len(code) {
				t.Fatalf("%q: node %d is %+v", code, i, n)
			}
			ends = append(ends, i+n.Size)
		}
		if nodes[0].Size != len(nodes) {
			t.Fatalf("%q: %d nodes of %d", code, nodes[0].Size, len(nodes))
		}
	})
}
