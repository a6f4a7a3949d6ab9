package core

import (
	"slices"
	"testing"
)

// TestFormerNames checks that the names of earlier versions mean the same as the present ones.
func TestFormerNames(t *testing.T) {
	for name, want := range map[string]EffectKind{
		"read": EffectRead, "write": EffectWrite, "irreversible": EffectIrreversible, "destructive": EffectIrreversible,
	} {
		if k, ok := ParseEffect(name); !ok || k != want {
			t.Errorf("%s: %s, %v", name, k, ok)
		}
	}
	if _, ok := ParseEffect("Destructive"); ok || EffectName("odd") != "odd" || EffectName("destructive") != "irreversible" {
		t.Error("other names")
	}
	if AnomalyName("destructive_burst") != AnomalyIrreversible || AnomalyName("rate") != "rate" {
		t.Error("names of anomalies")
	}
	for _, kind := range []string{"destructive_burst", AnomalyIrreversible} {
		if all := AnomalyAliases([]string{"rate", kind}); !slices.Equal(all, []string{"rate", AnomalyIrreversible, "destructive_burst"}) {
			t.Errorf("%v", all)
		}
	}
	for _, g := range EffectGrades() {
		if e, ok := ParseEffectRule(g.String()); !ok || e.Kind != EffectIrreversible || e.Grade != g {
			t.Errorf("%s: %v, %v", g, e, ok)
		}
	}
}

// TestExplain checks the sentences that say what a call does.
func TestExplain(t *testing.T) {
	for want, e := range map[string]EffectInfo{
		"a.b only reads (its name says get).":           {Kind: EffectRead, Reason: "its name says get"},
		"a.b changes something (its name says update).": {Kind: EffectWrite, Reason: "its name says update"},
		"a.b sends something that cannot be taken back (send_inside: its name says post). Trust it.": {
			Kind: EffectIrreversible, Grade: GradeSendInside, Reason: "its name says post", Advice: "Trust it.",
		},
		"a.b may move money or order something, which cannot be taken back (money: r).": {Kind: EffectIrreversible, Grade: GradeMoney, Reason: "r"},
		"a.b deletes or replaces something that cannot be restored (deletion: r).":      {Kind: EffectIrreversible, Grade: GradeDeletion, Reason: "r"},
		"a.b does something that cannot be undone (other: r).":                          {Kind: EffectIrreversible, Grade: GradeOther, Reason: "r"},
	} {
		if got := e.Explain("a.b"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
