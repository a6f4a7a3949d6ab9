package emit

import (
	"testing"

	"retort/internal/ledger"
	"retort/internal/run"
)

// TestBudget holds what the tools of real servers cost in a model's context,
// in o200k_base tokens per tool on average.
func TestBudget(t *testing.T) {
	ts := catalogs(t)
	for _, tt := range []struct {
		lang   run.Language
		detail Detail
		most   float64
	}{
		{run.TypeScript, Name, 8}, {run.TypeScript, Description, 18}, {run.TypeScript, Signature, 70}, {run.TypeScript, Full, 230},
		{run.Python, Name, 8}, {run.Python, Description, 20}, {run.Python, Signature, 80}, {run.Python, Full, 240},
	} {
		total := 0
		for _, s := range ts.Servers {
			for _, tool := range s.Tools {
				total += ledger.Count(Stub(ts, tool, tt.lang, tt.detail))
			}
		}
		average := float64(total) / float64(ts.Count())
		t.Logf("%s, level %d: %.1f tokens", tt.lang, tt.detail, average)
		if average > tt.most {
			t.Errorf("%s, level %d: %.1f tokens per tool, at most %.0f wanted", tt.lang, tt.detail, average, tt.most)
		}
	}
}
