package check

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"retort/internal/core"
	"retort/internal/pipeline/check/python/parsertest"
	"retort/internal/pipeline/check/rules"
)

// TestCorpus checks that the level standard refuses none of the harmless programs in testdata/corpus, and that the
// level high refuses all hostile ones. It logs a table of how many programs in each class are refused at each level.
func TestCorpus(t *testing.T) {
	p, tools := parsertest.NewInterpreter(t), demoTools(t)
	levels := []rules.StrictnessLevel{rules.Permissive, rules.Standard, rules.Strict, rules.Maximum}
	var gates []*ProgramChecker
	for _, l := range levels {
		gates = append(gates, newGate(t, p, l))
	}
	archives, err := filepath.Glob("testdata/corpus/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("there is no corpus", err)
	}
	table := "refused, of them by a rule: permissive  standard      high   maximum\n"
	harmless, hostile := 0, 0
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		class := strings.TrimSuffix(filepath.Base(path), ".txtar")
		isHarmless := strings.HasPrefix(class, "harmless")
		var refused, ruled [4]int
		for _, f := range archive.Files {
			for k, g := range gates {
				_, refusal := g.Check(context.Background(), core.ExecutionRequest{Code: string(f.Data), Language: language(f.Name), Name: f.Name}, tools, nil)
				if refusal != nil {
					refused[k]++
				}
				if refusal != nil && refusal.Kind == core.KindPolicy {
					ruled[k]++
				}
				switch {
				case refusal != nil && refusal.Kind == core.KindSyntax && strings.HasPrefix(string(f.Data), "# Python 3.10") && strings.HasPrefix(p.Version, "3.9."):
				case isHarmless && levels[k] == rules.Standard && refusal != nil:
					t.Errorf("%s: %s is refused: %s\n%s", class, f.Name, refusal.Message, refusal.Frame)
				case isHarmless && refusal != nil:
					t.Logf("%s: %s is refused at %s: %s", class, f.Name, levels[k], refusal.Message)
				case !isHarmless && levels[k] == rules.Strict && refusal == nil:
					t.Errorf("%s: %s passes\n%s", class, f.Name, f.Data)
				case !isHarmless && levels[k] == rules.Strict && refusal.Kind != core.KindPolicy:
					t.Logf("%s: %s is refused, but by no rule: %s", class, f.Name, refusal.Message)
				}
			}
		}
		if isHarmless {
			harmless += len(archive.Files)
		} else {
			hostile += len(archive.Files)
		}
		table += fmt.Sprintf("%-22s %3d ", class, len(archive.Files))
		for k := range levels {
			table += fmt.Sprintf("  %3d/%3d", refused[k], ruled[k])
		}
		table += "\n"
	}
	t.Logf("%d harmless, %d hostile\n%s", harmless, hostile, table)
	if harmless < 150 || hostile < 150 {
		t.Errorf("the corpus has %d harmless and %d hostile programs; 150 of each are wanted", harmless, hostile)
	}
}
