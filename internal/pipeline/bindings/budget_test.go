package bindings

import (
	"testing"

	"retort/internal/core"
	"retort/internal/tokens"
)

// TestBudget checks that the descriptions of real servers' tools stay within a number of tokens (o200k_base), on
// average per tool.
func TestBudget(t *testing.T) {
	ts := catalogs(t)
	for _, tt := range []struct {
		lang   core.Language
		detail StubDetail
		most   float64
	}{
		{core.TypeScript, Name, 8}, {core.TypeScript, Description, 18}, {core.TypeScript, Signature, 70}, {core.TypeScript, Full, 230},
		{core.Python, Name, 8}, {core.Python, Description, 20}, {core.Python, Signature, 80}, {core.Python, Full, 240},
	} {
		total := 0
		for _, s := range ts.Servers {
			for _, tool := range s.Tools {
				total += tokens.CountTokens(RenderStub(ts, tool, tt.lang, tt.detail))
			}
		}
		average := float64(total) / float64(ts.CountTools())
		t.Logf("%s, level %d: %.1f tokens", tt.lang, tt.detail, average)
		if average > tt.most {
			t.Errorf("%s, level %d: %.1f tokens per tool, at most %.0f wanted", tt.lang, tt.detail, average, tt.most)
		}
	}
}
