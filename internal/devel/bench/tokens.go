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

// measureTokens counts the o200k_base tokens of the definitions and previews that a model reads.
func (b *benchRun) measureTokens(context.Context) error {
	tools, err := makeToolset(usualToolCount)
	if err != nil {
		return err
	}
	for _, detail := range []bindings.StubDetail{bindings.Signature, bindings.Full} {
		var counts []float64
		for _, s := range tools.Servers {
			for _, t := range s.Tools {
				counts = append(counts, float64(tokens.CountTokens(bindings.RenderStub(tools, t, core.TypeScript, detail))))
			}
		}
		b.addRow(
			map[bindings.StubDetail]string{bindings.Signature: "signature", bindings.Full: "full definition"}[detail]+" of a tool",
			counts, "tokens", 0,
		)
	}
	return b.measurePreviews()
}

// discardFiles implements a file store that discards all files.
type discardFiles struct{}

func (discardFiles) Write(string, []byte) error { return nil }

func (b *benchRun) measurePreviews() error {
	rows := make([]string, 5000)
	for i := range rows {
		rows[i] = fmt.Sprintf(
			`{"id":%d,"customer":"Customer %d","state":%q,"amount":%d.5,"created":"2026-01-%02dT10:00:00Z","note":null}`, i,
			i%900, []string{"open", "paid", "late"}[i%3], i%1000, i%28+1,
		)
	}
	array := "[" + strings.Join(rows, ",") + "]"
	text, err := json.Marshal(strings.Repeat("a line of a log that is much too long to be read by anybody\n", 20_000))
	if err != nil {
		return err
	}
	for _, r := range []struct{ name, value string }{
		{"5,000 rows", array}, {"an object around 5,000 rows", `{"total":5000,"next":null,"rows":` + array + `}`}, {"1 MB of text", string(text)},
	} {
		o := report.MakeOutcome(sandbox.RunReport{Status: core.StatusOK, Value: json.RawMessage(r.value)}, report.Options{
			ID: "bench", MaxTokens: core.DefaultResultTokens, Files: discardFiles{},
		})
		b.rows = append(b.rows, ResultRow{
			Name: "outcome with a preview of " + r.name, Median: float64(report.CountReturned(o)), Unit: "tokens",
			Target: core.DefaultResultTokens,
		})
	}
	return nil
}
