package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"retort/internal/core"
	"retort/internal/pipeline/bindings"
	"retort/internal/pipeline/report"
	"retort/internal/sandbox"
	"retort/internal/tokens"
)

// tokens counts the o200k_base tokens of the definitions and previews that a model reads.
func (b *bench) tokens(context.Context) error {
	tools, err := toolset(ordinary)
	if err != nil {
		return err
	}
	for _, detail := range []bindings.Detail{bindings.Signature, bindings.Full} {
		var counts []float64
		for _, s := range tools.Servers {
			for _, t := range s.Tools {
				counts = append(counts, float64(tokens.Count(bindings.Stub(tools, t, core.TypeScript, detail))))
			}
		}
		b.add(map[bindings.Detail]string{bindings.Signature: "signature", bindings.Full: "full definition"}[detail]+" of a tool", counts, "tokens", 0)
	}
	return b.previews()
}

// nowhere discards files.
type nowhere struct{}

func (nowhere) Write(string, []byte) error { return nil }

func (b *bench) previews() error {
	rows := make([]string, 5000)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"id":%d,"customer":"Customer %d","state":%q,"amount":%d.5,"created":"2026-01-%02dT10:00:00Z","note":null}`, i, i%900, []string{"open", "paid", "late"}[i%3], i%1000, i%28+1)
	}
	array := "[" + strings.Join(rows, ",") + "]"
	text, err := json.Marshal(strings.Repeat("a line of a log that is much too long to be read by anybody\n", 20_000))
	if err != nil {
		return err
	}
	for _, r := range []struct{ name, value string }{
		{"5,000 rows", array}, {"an object around 5,000 rows", `{"total":5000,"next":null,"rows":` + array + `}`}, {"1 MB of text", string(text)},
	} {
		o := report.Make(sandbox.Report{Status: core.StatusOK, Value: json.RawMessage(r.value)}, report.Options{ID: "bench", MaxTokens: report.DefaultMaxTokens, Files: nowhere{}})
		b.rows = append(b.rows, Row{Name: "outcome with a preview of " + r.name, Median: float64(report.Returned(o)), Unit: "tokens", Target: report.DefaultMaxTokens})
	}
	return nil
}
