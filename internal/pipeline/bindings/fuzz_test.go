package bindings

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retort/internal/core"
)

// FuzzSchema checks that tools with arbitrary schemas and descriptions give well-formed code and text.
func FuzzSchema(f *testing.F) {
	files, _ := filepath.Glob("testdata/golden/*.json")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var l listing
		if err := json.Unmarshal(raw, &l); err != nil {
			f.Fatal(err)
		}
		for _, d := range l.Tools {
			f.Add([]byte(d.InputSchema), []byte(d.OutputSchema), d.Description)
		}
	}
	f.Add([]byte(`{`), []byte(`{"a":}`), "\x00\xff*/")
	f.Fuzz(func(t *testing.T, input, output []byte, description string) {
		ts := toolset(listing{Name: "server", Tools: []definition{
			{Name: "tool", Description: description, InputSchema: input, OutputSchema: output},
			{Name: description, Title: description, InputSchema: output},
		}})
		checkAll(t, ts)
	})
}

// checkAll generates all declarations, wrappers and stubs of tools and checks their syntax.
func checkAll(t *testing.T, ts *core.Toolset) {
	t.Helper()
	expect := func(what, text string, checks ...func(string) error) {
		t.Helper()
		for _, check := range append(checks, visible) {
			if err := check(text); err != nil {
				t.Fatalf("%s: %v\n%s", what, err, shortenText(text, 4000))
			}
		}
	}
	for name, text := range WrapperFiles(ts, core.TypeScript) {
		if name != "client.ts" {
			expect(name, text, balanced)
		}
	}
	for name, text := range WrapperFiles(ts, core.Python) {
		if name != "client.py" {
			expect(name, text, balancedPython)
		}
	}
	for _, s := range ts.Servers {
		for _, tool := range s.Tools {
			expect("declaration", ToolDeclaration(tool), balanced)
			for d := Name; d <= Full; d++ {
				expect("stub", RenderStub(ts, tool, core.TypeScript, d))
				expect("stub", RenderStub(ts, tool, core.Python, d))
			}
			for _, lang := range []core.Language{core.TypeScript, core.Python} {
				expect("signature", RenderStub(ts, tool, lang, Signature), oneLined)
				expect("description", RenderStub(ts, tool, lang, Description), oneLined)
			}
		}
	}
}

func oneLined(s string) error {
	if strings.Contains(s, "\n") {
		return errJSON
	}
	return nil
}

// TestCatalogs checks the syntax of everything that is generated for the tools of real servers.
func TestCatalogs(t *testing.T) { checkAll(t, catalogs(t)) }

// FuzzJSON checks that parseJSON accepts the same texts as encoding/json and returns the same values.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,-2.5e+3,true,false,null,"x\u00e9\ud83d\ude00\ud800\n"]}`, `{"a":1,"b":2,"a":3}`, ` [ ] `, `01`, `1.`, `-`, `"\x"`, "\"\x01\"",
		`{"a" 1}`, `[1,]`, `{,}`, `nul`, `1e`, "\"\xff\"", `"\ud800\u0041"`, `[[[[[[]]]]]]`, `{} {}`, ``,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, err := parseJSON(raw)
		if valid := json.Valid(raw); valid != (err == nil) {
			t.Fatalf("valid %v, but error %v", valid, err)
		}
		if err != nil {
			return
		}
		var want any
		d := json.NewDecoder(strings.NewReader(string(raw)))
		d.UseNumber()
		if d.Decode(&want) == nil {
			equal(t, v, want)
		}
	})
}

func equal(t *testing.T, got *jsonValue, want any) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		if got.kind == jsonDeep {
			return
		}
		if len(got.keys) != len(want) {
			t.Fatalf("keys %q, want %v", got.keys, want)
		}
		for i, key := range got.keys {
			equal(t, got.items[i], want[key])
			if got.get(key) != got.items[i] {
				t.Fatalf("get(%q) finds another value", key)
			}
		}
	case []any:
		if got.kind == jsonDeep {
			return
		}
		if len(got.items) != len(want) {
			t.Fatalf("%d items, want %d", len(got.items), len(want))
		}
		for i := range want {
			equal(t, got.items[i], want[i])
		}
	case string:
		if got.stringText() != want {
			t.Fatalf("%q, want %q", got.text, want)
		}
	case json.Number:
		if got.kind != jsonNumber || got.text != want.String() {
			t.Fatalf("%v %q, want %v", got.kind, got.text, want)
		}
	case bool:
		if got.isTrue() != want {
			t.Fatalf("%q, want %v", got.text, want)
		}
	}
}
