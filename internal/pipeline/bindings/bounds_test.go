package bindings

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
)

// TestBounds checks that schemas which could grow without bound, or take too long to convert, give declarations and
// signatures of bounded size.
func TestBounds(t *testing.T) {
	repeat := func(n int, format string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = strings.ReplaceAll(strings.ReplaceAll(format, "NEXT", fmt.Sprint(i+1)), "N", fmt.Sprint(i))
		}
		return strings.Join(parts, ",")
	}
	many := 20_000
	if testenv.Full() {
		many = 100_000
	}
	tests := map[string]string{
		"references that double":   `{"$ref":"#/$defs/d0","$defs":{` + repeat(60, `"dN":{"type":"object","properties":{"a":{"$ref":"#/$defs/dNEXT"},"b":{"$ref":"#/$defs/dNEXT"}}}`) + `}}`,
		"unions that double":       `{"properties":{"x":{"$ref":"#/$defs/d0"}},"$defs":{` + repeat(60, `"dN":{"anyOf":[{"$ref":"#/$defs/dNEXT"},{"type":"array","items":{"$ref":"#/$defs/dNEXT"}}]}`) + `}}`,
		"intersections that cycle": `{"properties":{"x":{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}]}},"$defs":{` + repeat(8, `"cN":{"type":"object","properties":{"n":{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/cNEXT"}]}}}`) + `,"a":{"type":"object","properties":{"n":{"$ref":"#/$defs/c0"}}},"b":{"type":"object","properties":{"n":{"$ref":"#/$defs/a"}}}}}`,
		"array of itself":          `{"properties":{"x":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"array","items":{"$ref":"#/$defs/a"}}}}`,
		"chain of references":      `{"properties":{"x":{"$ref":"#/$defs/d0"}},"$defs":{` + repeat(5000, `"dN":{"$ref":"#/$defs/dNEXT"}`) + `}}`,
		"deep objects":             strings.Repeat(`{"type":"object","properties":{"x":`, 5000) + `{}` + strings.Repeat(`}}`, 5000),
		"deep arrays":              strings.Repeat(`{"items":[`, 90) + `{}` + strings.Repeat(`]}`, 90),
		"deep JSON":                strings.Repeat(`[`, 1_000_000) + strings.Repeat(`]`, 1_000_000),
		"many properties":          `{"type":"object","properties":{` + repeat(many/2, `"pN":{"type":"string"}`) + `}}`,
		"many literals":            `{"properties":{"x":{"enum":[` + repeat(many/2, `"vN"`) + `]}}}`,
		"many branches":            `{"properties":{"x":{"anyOf":[` + repeat(10_000, `{"properties":{"pN":{}}}`) + `]}}}`,
		"many conditions":          `{"properties":{"x":{"allOf":[` + repeat(10_000, `{"properties":{"pN":{}}}`) + `]}}}`,
		"conditions that multiply": `{"properties":{"x":{"allOf":[` + repeat(30, `{"anyOf":[{"properties":{"aN":{}}},{"properties":{"bN":{}}},{"properties":{"cN":{}}}]}`) + `]}}}`,
		"names that collide":       `{"properties":{` + repeat(many/20, `"!N":{"$ref":"#/$defs/N"}`) + `},"$defs":{` + repeat(many/20, `"N":{"type":"object","properties":{"x":{}}}`) + `}}`,
		"values beside names":      `{"type":"object","additionalProperties":{"type":"string"},"properties":{` + repeat(10_000, `"pN":{"const":N}`) + `}}`,
		"a long text":              `{"description":"` + strings.Repeat(`*/ @ts-ignore \n`, many) + `"}`,
	}
	for name, schema := range tests {
		t.Run(name, func(t *testing.T) {
			if !json.Valid([]byte(schema)) && name != "deep JSON" && name != "deep objects" {
				t.Fatal("not JSON")
			}
			raw := json.RawMessage(schema)
			ts := toolset(listing{"server", []definition{{Name: "tool", InputSchema: raw, OutputSchema: raw}}})
			checkAll(t, ts)
			size := len(ToolDeclaration(ts.Servers[0].Tools[0]))
			if most := 4*len(schema) + 1<<20; size > most {
				t.Errorf("%d bytes of schema became %d", len(schema), size)
			}
			for _, lang := range []core.Language{core.TypeScript, core.Python} {
				if s := RenderStub(ts, ts.Servers[0].Tools[0], lang, Signature); len(s) > 4000 {
					t.Errorf("a signature of %d bytes", len(s))
				}
			}
			t.Logf("%d bytes of schema, %d of declaration", len(schema), size)
		})
	}
}

// TestDeterministic checks that equal toolsets give equal wrapper files.
func TestDeterministic(t *testing.T) {
	one, two := toolset(randomListing(7, 40)), toolset(randomListing(7, 40))
	for _, lang := range []core.Language{core.TypeScript, core.Python} {
		for name, text := range WrapperFiles(one, lang) {
			if again, _ := WrapperFile(two, lang, name); again != text {
				t.Errorf("%s differs from one time to the next", name)
			}
		}
	}
}

// TestUniqueNames checks that no two types of a server have the same name, so that one file can contain the
// declarations of several tools.
func TestUniqueNames(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/$defs/Input"},"b":{"$ref":"#/$defs/output"},"c":{"$ref":"#/$defs/Input2"}},
		"$defs":{"Input":{"properties":{"x":{}}},"output":{"properties":{"y":{}}},"Input2":{"properties":{"z":{}}}}}`)
	var tools []definition
	for _, name := range []string{"get", "getInput", "get_input", "getInputInput", "get_output", "GetInput", "delete", "Delete", "", "_", "3", "_3"} {
		tools = append(tools, definition{Name: name, InputSchema: schema, OutputSchema: schema})
	}
	seen := map[string]string{}
	for _, tool := range toolset(listing{"server", tools}).Servers[0].Tools {
		types := buildTypes(tool)
		for _, n := range append([]*namedType{types.input, types.output}, types.names...) {
			if other, taken := seen[n.name]; taken {
				t.Errorf("%q and %q both have a type %s", tool.Name, other, n.name)
			}
			seen[n.name] = tool.Name
		}
	}
}
