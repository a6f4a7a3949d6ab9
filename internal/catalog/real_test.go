package catalog

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"retort/internal/catalog/sanitize"
	"retort/internal/core"
)

// realDefinitions returns tool definitions of real servers, from the test data and from the folder in
// RETORT_CATALOGS, by file name.
func realDefinitions(t testing.TB) map[string][]json.RawMessage {
	files, _ := filepath.Glob("../pipeline/bindings/testdata/catalog/*.json")
	if folder := os.Getenv("RETORT_CATALOGS"); folder != "" {
		more, _ := filepath.Glob(filepath.Join(folder, "*.json"))
		files = append(files, more...)
	}
	if len(files) == 0 {
		t.Fatal("there are no catalogues")
	}
	all := map[string][]json.RawMessage{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var c struct{ Tools []json.RawMessage }
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(file)] = c.Tools
	}
	return all
}

// TestRealDefinitions checks that definitions of real tools are offered byte for byte, apart from Markdown links, and
// that none is withheld or too large.
func TestRealDefinitions(t *testing.T) {
	s, n := sanitize.New(), 0
	for server, definitions := range realDefinitions(t) {
		tools, _ := readAll(server, definitions, s)
		for _, tool := range tools {
			n++
			linked := len(tool.Flags) > 0
			for _, f := range tool.Flags {
				if f.Rule == "link" {
					t.Logf("%s.%s: %s", server, tool.Name, f)
					continue
				}
				t.Errorf("%s.%s: %s", server, tool.Name, f)
			}
			if offered := OfferedDefinition(tool, isSmall); offered == nil || !linked && string(offered) != string(tool.Raw) {
				t.Errorf("%s.%s is withheld or cut", server, tool.Name)
			}
			input, _ := parseJSON(tool.Raw, 2).findMember("inputSchema")
			if !linked && string(input.raw) != string(tool.InputSchema) {
				t.Errorf("%s.%s: another schema", server, tool.Name)
			}
		}
	}
	t.Logf("%d tools", n)
}

// BenchmarkClean measures how long it takes to clean the definitions of 2,000 real tools and, for comparison, to
// parse them.
func BenchmarkClean(b *testing.B) {
	s := sanitize.New()
	var tools []*core.Tool
	var parsed []jsonNode
	byServer := realDefinitions(b)
	for len(tools) < 2000 {
		for server, definitions := range byServer {
			some, _ := readAll(server, definitions, s)
			tools = append(tools, some...)
		}
	}
	tools = slices.Clone(tools[:2000])
	for _, tool := range tools {
		parsed = append(parsed, parseJSON(tool.Raw, maxDepth))
	}
	b.Run("clean", func(b *testing.B) {
		for b.Loop() {
			for i, tool := range tools {
				t := *tool
				cleanDefinition(&t, parsed[i], s)
			}
		}
	})
	b.Run("parse", func(b *testing.B) {
		for b.Loop() {
			for _, tool := range tools {
				computePin(parseJSON(tool.Raw, maxDepth))
			}
		}
	})
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			sanitize.New()
		}
	})
}
