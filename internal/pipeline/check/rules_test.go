package check

import (
	"context"
	"slices"
	"testing"

	"retort/internal/core"
	"retort/internal/pipeline/check/python/parsertest"
	"retort/internal/pipeline/check/rules"
	"retort/internal/pipeline/check/typescript"
)

// TestExamples checks that every rule reports its examples of violations and does not report its counterexamples.
func TestExamples(t *testing.T) {
	p, tools := parsertest.NewInterpreter(t), demoTools(t)
	g := newGate(t, p, rules.Maximum)
	for _, r := range rules.AllRules() {
		for _, list := range [][]rules.RuleExample{r.Fires, r.Passes} {
			for _, e := range list {
				found := findings(t, g, e, tools)
				fires := slices.ContainsFunc(found, func(f rules.RuleFinding) bool { return f.Rule == r.ID })
				if wanted := len(r.Fires) > 0 && &list[0] == &r.Fires[0]; fires != wanted {
					t.Errorf("%s: fires %v, want %v: %v\n%s", r.ID, fires, wanted, found, e.Code)
				}
			}
		}
	}
}

// findings returns the findings of all rules in an example, regardless of other errors in it.
func findings(t *testing.T, g *ProgramChecker, e rules.RuleExample, tools *core.Toolset) []rules.RuleFinding {
	t.Helper()
	var report rules.RuleReport
	var refusal *core.Error
	if e.Language == rules.Python {
		report, refusal = g.python.JudgeProgram(context.Background(), e.Code)
	} else {
		report, refusal = g.typescript.JudgeProgram(context.Background(), typescript.ProgramSource{Code: e.Code, Language: core.TypeScript})
	}
	if refusal != nil {
		t.Errorf("%s\n%s", refusal.Message, e.Code)
	}
	return report.Findings
}
