package bindings

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"retort/internal/core"
)

// catalogs returns the tools of real servers, read from their tools/list answers in testdata or in the folder
// RETORT_CATALOGS.
func catalogs(tb testing.TB) *core.Toolset {
	tb.Helper()
	folder := os.Getenv("RETORT_CATALOGS")
	if folder == "" {
		folder = filepath.Join("testdata", "catalog")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("no catalogues in %s: %v", folder, err)
	}
	var listed []listing
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			tb.Fatal(err)
		}
		var l listing
		if err := json.Unmarshal(raw, &l); err != nil {
			tb.Fatalf("%s: %v", f, err)
		}
		listed = append(listed, l)
	}
	return toolset(listed...)
}

type listing struct {
	Name  string       `json:"name"`
	Tools []definition `json:"tools"`
}

type definition struct {
	Name         string               `json:"name"`
	Title        string               `json:"title"`
	Description  string               `json:"description"`
	InputSchema  json.RawMessage      `json:"inputSchema"`
	OutputSchema json.RawMessage      `json:"outputSchema"`
	Annotations  core.ToolAnnotations `json:"annotations"`
}

// toolset returns a Toolset made from tools/list answers, as the engine's catalogue would make it.
func toolset(listed ...listing) *core.Toolset {
	var names []string
	for _, l := range listed {
		names = append(names, l.Name)
	}
	ids := AssignServer(names)
	var servers []*core.ToolServer
	for _, l := range listed {
		s := &core.ToolServer{Name: l.Name, TypeScript: ids[l.Name].TypeScript, Python: ids[l.Name].Python}
		var tools []string
		for _, d := range l.Tools {
			tools = append(tools, d.Name)
		}
		assigned := AssignTools(tools)
		for _, d := range l.Tools {
			s.Tools = append(s.Tools, &core.Tool{
				Server: l.Name, Name: d.Name, Title: d.Title, Description: d.Description, InputSchema: d.InputSchema,
				OutputSchema: d.OutputSchema, Annotations: d.Annotations,
				TypeScript: assigned[d.Name].TypeScript, Python: assigned[d.Name].Python,
			})
		}
		servers = append(servers, s)
	}
	slices.SortFunc(servers, func(a, b *core.ToolServer) int { return strings.Compare(a.Name, b.Name) })
	return core.NewToolset(servers)
}
