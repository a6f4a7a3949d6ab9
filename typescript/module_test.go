package tsc

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
)

func TestModule(t *testing.T) {
	c := New(Limits{})
	for _, test := range []struct{ code, want string }{
		{"export function f() { return 1 }", "__exports.names = { \"f\": () => f };  function f() { return 1 }\n"},
		{"export async function f(a: string): Promise<string> { return a }\nconst x = 1; export { x as y }", "__exports.names = { \"f\": () => f, \"y\": () => x };  async function f(a) { return a; }\nconst x = 1;\n\n"},
		{"export const a = 1, { b, c: [d, , ...e] } = {} as any;", "__exports.names = { \"a\": () => a, \"b\": () => b, \"d\": () => d, \"e\": () => e };  const a = 1, { b, c: [d, , ...e] } = {};\n"},
		{"export default function f() {}\nf()", "__exports.default = f; __exports.names = {  };  function f() {}\nf()\n"},
		{"export enum E { A }", "__exports.names = { \"E\": () => E };  var E;\n(function (E) {\n    E[E[\"A\"] = 0] = \"A\";\n})(E || (E = {}));\n"},
		{"export interface I {}\nexport type T = I\nexport class C {}", ";__exports.names = { \"C\": () => C }; \n;\n class C {}\n"},
		{"import { f } from './skills/a'; export const g = () => f()", "const { f } = await __import(\"/skills/a\"); __exports.names = { \"g\": () => g };   const g = () => f();\n"},
	} {
		src := mustParse(t, c, test.code, TypeScript)
		in := testInput()
		in.Module, in.Specifiers = true, map[string]string{"./skills/a": "/skills/a"}
		in.Files["/skills/a.ts"] = "export function f() { return 1 }"
		result, err := c.Check(context.Background(), src, in)
		if err != nil {
			t.Fatal(err)
		}
		if result.JavaScript != test.want {
			t.Errorf("%s\n got %q\nwant %q", test.code, result.JavaScript, test.want)
		}
		if d := describe(result.Diagnostics); d != "" {
			t.Error(d)
		}
	}
}

// TestImportOfModule checks that a program which imports a module is type-checked against the module's exports.
func TestImportOfModule(t *testing.T) {
	c := New(Limits{})
	in := testInput()
	in.Files["/skills/a.ts"] = "import { getUser } from '/servers/github/index';\nexport async function f(n: number, name?: string) { return { user: await getUser({ name: 'x' }), n } }\n"
	for _, test := range []struct{ code, want string }{
		{"import { f } from './skills/a'; return (await f(1)).n", ""},
		{"import { f } from './skills/a'; return (await f('x')).n", "1:49 TS2345 Argument of type 'string' is not assignable to parameter of type 'number'. [argument of f]\n"},
		{"import { g } from './skills/a'; g", "1:10 TS2305 Module '\"./skills/a\"' has no exported member 'g'. [member g]\n"},
		{"import { f } from './skills/a'; return (await f(1)).m", "1:53 TS2339 Property 'm' does not exist on type '{ user: any; n: number; }'.\n"},
	} {
		result, err := c.Check(context.Background(), mustParse(t, c, test.code, TypeScript), in)
		if err != nil {
			t.Fatal(err)
		}
		if got := describe(result.Diagnostics); got != test.want {
			t.Errorf("%s\n got %s\nwant %s", test.code, got, test.want)
		}
	}
}

func TestExports(t *testing.T) {
	code := `import { getUser } from './servers/github';
interface Options { limit?: number; tags: string[]; mode: 'a' | 'b' }
/** Not this. */
type Id = string;
/**
 * Finds them.
 *
 * @param owner who has them
 */
export async function find(owner: Id, { limit }: Options, n = 3, flag?: boolean, ...rest: any[]): Promise<number> { return 1 }
export const g = (a: number | string, b: null | 'x') => a;
function h() {}
export { h as i };
export const notFunction = 1;
export default () => 2;
`
	src := mustParse(t, New(Limits{}), code, TypeScript)
	got, err := json.MarshalIndent(src.Facts().Exports, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", got)
	type line struct{ name, param, schema string }
	want := []line{
		{"find", "owner", `{"type":"string"}`},
		{"find", "{ limit }", `{"properties":{"limit":{"type":"number"},"mode":{"enum":["a","b"]},"tags":{"items":{"type":"string"},"type":"array"}},"required":["tags","mode"],"type":"object"}`},
		{"find", "n", `{"type":"number"}`}, {"find", "flag", `{"type":"boolean"}`}, {"find", "rest", `{"items":{},"type":"array"}`},
		{"g", "a", `{"anyOf":[{"type":"number"},{"type":"string"}]}`}, {"g", "b", `{"enum":[null,"x"]}`},
	}
	var found []line
	var names []string
	for _, e := range src.Facts().Exports {
		names = append(names, e.Name)
		for _, p := range e.Params {
			found = append(found, line{e.Name, p.Name, p.Schema})
		}
	}
	if !slices.Equal(names, []string{"find", "g", "i", "default"}) {
		t.Errorf("names %q", names)
	}
	if !slices.Equal(found, want) {
		t.Errorf("got %q", found)
	}
	if doc := src.Facts().Exports[0].Doc; doc != "Finds them.\n\n@param owner who has them" {
		t.Errorf("doc %q", doc)
	}
}
