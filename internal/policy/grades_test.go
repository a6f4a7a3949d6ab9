package policy_test

import (
	"testing"

	"retort/internal/core"
	"retort/internal/policy"
)

// TestGrades checks the decisions for each grade of irreversible effects: at every level, with no rule, with the rule
// ask and with the rule approve, for everybody and for a user with a level of its own.
func TestGrades(t *testing.T) {
	names := map[core.EffectGrade]string{
		core.GradeMoney: "refund_payment", core.GradeDeletion: "delete_row", core.GradeOther: "run_job",
		core.GradeSendOutside: "send_mail", core.GradeSendInside: "post_message",
	}
	for grade, name := range names {
		for _, level := range []policy.PermissionLevel{policy.ReadOnly, policy.WriteRestricted, policy.ExecuteFull} {
			for _, rule := range []policy.GradeRule{"", policy.GradeAsk, policy.GradeApprove} {
				p := must(t, policy.Rules{
					AccessLimits: policy.AccessLimits{Level: level},
					Principals:   map[string]policy.AccessLimits{"ada": {Level: policy.WriteRestricted}},
					Grades:       map[core.EffectGrade]policy.GradeRule{grade: rule},
				})
				for principal, want := range map[string]policy.AccessVerdict{
					"": gradeVerdict(level, rule), "ada": max(gradeVerdict(level, rule), policy.Ask),
				} {
					d := p.ViewFor(principal).DecideTool(tool("db", name))
					if d.Verdict != want || d.Effect.Grade != grade || level != policy.ReadOnly && d.Eased != (rule == policy.GradeApprove) {
						t.Errorf("%s, %s, %q for %q: %s, %s, eased %v", name, level, rule, principal, shape(d), d.Effect.Grade, d.Eased)
					}
				}
			}
		}
	}
}

func gradeVerdict(level policy.PermissionLevel, rule policy.GradeRule) policy.AccessVerdict {
	switch {
	case level == policy.ReadOnly:
		return policy.Deny
	case rule == policy.GradeAsk, rule == "" && level == policy.WriteRestricted:
		return policy.Ask
	}
	return policy.Allow
}

// TestGradesOfOtherGrades checks that a rule for one grade does not ease another, and that a change of the rules
// while an execution is running eases nothing for it.
func TestGradesOfOtherGrades(t *testing.T) {
	eased := policy.Rules{Grades: map[core.EffectGrade]policy.GradeRule{core.GradeSendInside: policy.GradeApprove}, Version: "2"}
	if d := must(t, eased).ViewFor("").DecideTool(tool("db", "refund_payment")); d.Verdict != policy.Ask || d.Eased {
		t.Errorf("refund_payment: %s, eased %v", shape(d), d.Eased)
	}
	current := policy.NewCurrent(must(t, policy.Rules{Version: "1"}))
	begun := current.ViewFor("").FreezePolicy()
	current.ReplacePolicy(must(t, eased))
	if d := begun.DecideTool(tool("db", "post_message")); d.Verdict != policy.Ask || d.Eased {
		t.Errorf("post_message after the change: %s, eased %v", shape(d), d.Eased)
	}
	if d := current.ViewFor("").DecideTool(tool("db", "post_message")); d.Verdict != policy.Allow || !d.Eased {
		t.Errorf("post_message with the new rules: %s, eased %v", shape(d), d.Eased)
	}
}

// TestStatedEffects checks that what a person states about a tool replaces what Retort assumes, and that arguments
// which name an action can still make a call graver.
func TestStatedEffects(t *testing.T) {
	p := must(t, policy.Rules{
		AccessLimits: policy.AccessLimits{Level: policy.ReadOnly},
		Effects: map[string]map[string]string{"db": {
			"*": "write", "get_*": "read", "get_order": "money", "sync": "read", "wipe": "destructive", "note?": "money", "not*": "deletion", "note2": "send_inside",
		}},
	})
	for name, want := range map[string]core.EffectInfo{
		"get_row": {Kind: core.EffectWrite}, "get_order": {Kind: core.EffectIrreversible, Grade: core.GradeMoney}, "sync": {Kind: core.EffectRead},
		"wipe":   {Kind: core.EffectIrreversible, Grade: core.GradeOther},
		"note1":  {Kind: core.EffectIrreversible, Grade: core.GradeMoney},
		"note2":  {Kind: core.EffectIrreversible, Grade: core.GradeSendInside},
		"noted3": {Kind: core.EffectIrreversible, Grade: core.GradeDeletion},
		"delete": {Kind: core.EffectWrite}, "SYNC": {Kind: core.EffectWrite},
	} {
		if e := p.ViewFor("").EffectOf(tool("db", name)); e.Kind != want.Kind || e.Grade != want.Grade {
			t.Errorf("%s: %s %s, want %s %s", name, e.Kind, e.Grade, want.Kind, want.Grade)
		}
	}
	if d := p.ViewFor("").DecideTool(tool("db", "sync")); d.Verdict != policy.Allow {
		t.Errorf("sync: %s", shape(d))
	}
	if d := p.ViewFor("").DecideCall(tool("db", "sync"), []byte(`{"action": "delete_all"}`)); d.Verdict != policy.Deny {
		t.Errorf("sync that deletes: %s", shape(d))
	}
	if e := p.ViewFor("").EffectOf(tool("other", "get_row")); e.Kind != core.EffectRead {
		t.Errorf("a tool of another server: %s", e.Kind)
	}
	for _, bad := range []map[string]string{{"a": "harmless"}, {"[": "read"}, {"a": ""}} {
		if _, err := policy.New(policy.Rules{Effects: map[string]map[string]string{"db": bad}}); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
}
