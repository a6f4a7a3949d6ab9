package bindings

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retort/internal/core"
)

var update = flag.Bool("update", false, "rewrite testdata/golden")

// TestGolden checks the declarations, Python modules and signatures generated for the tools/list answers
// testdata/golden/*.json. The expected texts are in files with the same name and another suffix.
func TestGolden(t *testing.T) {
	files, _ := filepath.Glob("testdata/golden/*.json")
	if len(files) == 0 {
		t.Fatal("no golden files")
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".json")
		t.Run(name, func(t *testing.T) {
			ts := toolset(readListing(t, f))
			base := strings.TrimSuffix(f, ".json")
			golden(t, base+".d.ts", declarations(ts))
			golden(t, base+".py", serverPackage(ts.Servers[0]))
			golden(t, base+".signatures", signatures(ts))
		})
	}
}

func readListing(t *testing.T, file string) listing {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var l listing
	if err := json.Unmarshal(raw, &l); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return l
}

func declarations(ts *core.Toolset) string {
	var b strings.Builder
	for _, tool := range ts.Servers[0].Tools {
		b.WriteString("// ---- " + quoteString(tool.Name) + "\n\n" + ToolDeclaration(tool) + "\n")
	}
	return b.String()
}

func signatures(ts *core.Toolset) string {
	var b strings.Builder
	for _, tool := range ts.Servers[0].Tools {
		for _, lang := range []core.Language{core.TypeScript, core.Python} {
			b.WriteString(RenderStub(ts, tool, lang, Signature) + "\n")
		}
	}
	return b.String()
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	a, b := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Fatalf("%s:%d\nwant %s\ngot  %s", file, i+1, a[i], b[i])
		}
	}
	t.Fatalf("%s: %d lines wanted, %d made", file, len(a), len(b))
}

// TestFull checks the full definition of a real tool in both languages against golden files.
func TestFull(t *testing.T) {
	ts := catalogs(t)
	tool, ok := ts.FindTool("mcp-filesystem__edit_file")
	if !ok {
		t.Skip("another set of catalogues")
	}
	golden(t, "testdata/golden/full.ts.txt", RenderStub(ts, tool, core.TypeScript, Full))
	golden(t, "testdata/golden/full.py.txt", RenderStub(ts, tool, core.Python, Full))
}
