package internal_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"retort/internal/devel/bench"
	"retort/internal/devel/pictures"
)

// measurements holds the output of "retort bench --json".
type measurements struct {
	Rows []bench.ResultRow `json:"rows"`
	Date string            `json:"date"`
	OS   string            `json:"os"`
	Arch string            `json:"arch"`
	CPUs int               `json:"cpus"`
}

// benchmarksPage returns the page about benchmarks. Its figures are in two files next to it: benchmarks.json is the
// output of "retort bench --json", and tokens.json is written by a test of cmd/retort.
func benchmarksPage(t *testing.T) string {
	var m measurements
	readFigures(t, "docs/reference/benchmarks.json", &m)
	var tokens pictures.Figures
	readFigures(t, pictures.FiguresFile, &tokens)
	return "# Benchmarks\n" + writtenBy + `
## Time and memory

` + "`retort bench`" + ` measures these figures on your machine. The table shows one run on ` + fmt.Sprintf("%d cores of %s/%s, on %s", m.CPUs, m.OS, m.Arch, m.Date) + `.
On a busy machine all figures are higher, so compare them only with each other. To make the table again, write the output
of ` + "`retort bench --json`" + ` to ` + "`docs/reference/benchmarks.json`" + ` while the machine does nothing else, and then run the
command above.

` + benchTable(m.Rows) + `
` + "`retort bench targets`" + ` compares only the promised figures: tokens and cost of a session, wrappers, sandboxes, validation
and personal data by type.

## Tokens

` + "`retort bench tokens`" + ` does nine tasks in four ways against the sample servers. All ways must produce the same answer.
Each cell has the number of tokens in the context at the end, and the number of turns in which the model called
something.

` + tokens.Table() + `
<picture>
  <source media="(prefers-color-scheme: dark)" srcset="../images/tokens-dark.svg">
  <img src="../images/tokens-light.svg"
    alt="Tokens of nine tasks in four ways; programs cost more than a tool search in three small tasks">
</picture>

[tokens.json](tokens.json) has the figures of the table and of the picture. A test measures them again.

- **Only the tokens at the end count here**: definitions, what the model read, and what it wrote.
- The calls are really made. No model takes part: its turns are scripted to use the tools as well as possible, with
  filters, bulk calls, and twenty calls in a turn.
- **A trivial call costs more with programs than with a good tool search**: the search result has types, and the answer
  is in an Outcome. The call also takes longer. Small tasks with few rows cost more, too.

` + "`--json`" + ` has all figures, and ` + "`--html FILE`" + ` writes a page with charts. ` + "`retort stats --html FILE`" + ` writes such a page for your
own executions.

![The page of retort stats: executions, calls and tokens, by day and by tool](../images/stats.png)
`
}

func readFigures(t *testing.T, file string, v any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, v); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func benchTable(rows []bench.ResultRow) string {
	var b strings.Builder
	b.WriteString("| measured | median | worst | promised |\n|---|---|---|---|\n")
	for _, r := range rows {
		worst, promised := "", ""
		if r.Runs > 1 && r.Worst > 0 {
			worst = roundFigure(r.Worst)
		}
		if r.Target > 0 {
			promised = "≤ " + roundFigure(r.Target)
		}
		if !r.IsMet() {
			promised += ", **missed**"
		}
		fmt.Fprintf(&b, "| %s | %s %s | %s | %s |\n", strings.ReplaceAll(r.Name, "|", `\|`), roundFigure(r.Median), r.Unit, worst, promised)
	}
	return b.String()
}

// roundFigure returns a figure with at most three digits, and without digits after the point if it is 100 or more.
func roundFigure(x float64) string {
	digits := 0
	for limit := 100.0; x < limit && digits < 3; limit /= 10 {
		digits++
	}
	text := strconv.FormatFloat(x, 'f', digits, 64)
	if digits > 0 {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// TestRoundFigure checks how figures look in the table of benchmarks.
func TestRoundFigure(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 0.0213: "0.021", 0.7: "0.7", 4.83: "4.83", 12.34: "12.3", 99.96: "100", 490.4: "490", 5: "5"} {
		if got := roundFigure(x); got != want {
			t.Errorf("%g is shown as %s, want %s", x, got, want)
		}
	}
}
