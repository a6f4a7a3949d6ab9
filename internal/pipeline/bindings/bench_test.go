package bindings

import (
	"slices"
	"testing"

	"retort/internal/core"
)

// tenServers lists ten servers with 451 tools in total, a realistic set for a developer.
var tenServers = []string{
	"github-official", "playwright", "chrome-devtools", "context7", "notion", "sentry", "linear-tacticlaunch", "mcp-filesystem", "mcp-memory", "mcp-slack",
}

// tools451 returns the tools of tenServers if the catalogues contain them. Otherwise it returns 451 tools from
// testdata, with repetitions.
func tools451(tb testing.TB) []*core.Tool {
	var ten, all []*core.Tool
	for _, s := range catalogs(tb).Servers {
		all = append(all, s.Tools...)
		if slices.Contains(tenServers, s.Name) {
			ten = append(ten, s.Tools...)
		}
	}
	if len(ten) >= 451 {
		return ten
	}
	for len(all) < 451 {
		all = append(all, all...)
	}
	return all[:451]
}

func BenchmarkDeclarations451(b *testing.B) {
	tools := tools451(b)
	b.ReportAllocs()
	for b.Loop() {
		for _, t := range tools {
			ToolDeclaration(t)
		}
	}
}

func BenchmarkSignatures451(b *testing.B) {
	tools := tools451(b)
	ts := core.NewToolset(nil)
	for b.Loop() {
		for _, t := range tools {
			RenderStub(ts, t, core.TypeScript, Signature)
		}
	}
}
