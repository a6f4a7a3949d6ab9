package rules

import (
	"strings"
	"testing"

	"retort/internal/core"
)

func TestWeigh(t *testing.T) {
	read := UsedTool{Tool: "drive.getDocument", Effect: core.EffectInfo{Kind: core.EffectRead, Reason: "its name says get"}}
	write := UsedTool{Tool: "crm.updateRecord", Effect: core.EffectInfo{Kind: core.EffectWrite, Reason: "its name says update"}}
	destroy := UsedTool{Tool: "crm.deleteRecord", Effect: core.EffectInfo{Kind: core.EffectIrreversible, Reason: "its name says delete"}}
	often := func(u UsedTool) UsedTool { u.Loop = true; return u }
	for _, c := range []struct {
		name    string
		report  RuleReport
		uses    []UsedTool
		unknown bool
		score   int
		level   RiskLevel
		reason  string // part of the first
	}{
		{name: "nothing", level: RiskLow},
		{name: "reads", uses: []UsedTool{read}, score: 5, level: RiskLow, reason: "drive.getDocument, which only reads: its name says get"},
		{name: "writes", uses: []UsedTool{read, write}, score: 30, level: RiskMedium, reason: "crm.updateRecord, which changes something"},
		{name: "writes often", uses: []UsedTool{often(write)}, score: 35, level: RiskMedium},
		{name: "destroys", uses: []UsedTool{destroy}, score: 50, level: RiskHigh, reason: "which is irreversible"},
		{name: "destroys often", uses: []UsedTool{read, write, often(destroy)}, score: 77, level: RiskHigh},
		{name: "computes", uses: []UsedTool{read, write, often(destroy)}, unknown: true, score: 87, level: RiskCritical, reason: "it computes which of 3 tools it calls"},
		{name: "evaluates", report: RuleReport{Findings: []RuleFinding{{Rule: "code.eval", Severity: Medium, Detail: "eval"}}}, score: 15, level: RiskLow, reason: "it executes text as code: eval"},
		{name: "escapes", report: RuleReport{Findings: []RuleFinding{{Rule: "dunder.walk", Severity: High}, {Rule: "code.decoded", Severity: Critical}}}, score: 72, level: RiskHigh, reason: "it executes text after decoding it"},
		{name: "files", report: RuleReport{Impact: ProgramImpact{Writes: []string{"a"}, Deletes: []string{"b"}, Domains: []string{"x", "y", "z", "w"}}}, score: 22, level: RiskLow, reason: "it deletes b"},
		{name: "everything", report: RuleReport{Findings: []RuleFinding{{Rule: "code.decoded", Severity: Critical}}, Complexity: 99}, uses: []UsedTool{often(destroy)}, unknown: true, score: 100, level: RiskCritical},
	} {
		r := WeighRisk(c.report, c.uses, c.unknown)
		if r.Score != c.score || r.Level != c.level {
			t.Errorf("%s: %d, %s; want %d, %s: %q", c.name, r.Score, r.Level, c.score, c.level, r.Reasons)
		}
		if c.reason != "" && !strings.Contains(r.Reasons[0], c.reason) {
			t.Errorf("%s: %q", c.name, r.Reasons)
		}
	}
}
