package audit

import (
	"testing"
	"time"

	"retort/internal/core"
)

// TestFormerNames checks that entries of earlier versions, which call an irreversible effect "destructive", are
// replayed with the present names, and that a filter for either name of an anomaly finds the entries of both.
func TestFormerNames(t *testing.T) {
	call := eventOf(&LogRow{Kind: string(core.EventCall), Facts: []byte(`{"effect":"destructive"}`)})
	question := eventOf(&LogRow{Kind: string(core.EventQuestion), Facts: []byte(`{"anomaly":"rate,destructive_burst"}`)})
	found := eventOf(&LogRow{Kind: string(core.EventAnomaly), Status: "destructive_burst"})
	if call.Effect != "irreversible" || question.Facts["anomaly"] != "rate,irreversible_burst" || found.Status != "irreversible_burst" {
		t.Errorf("%s, %v, %s", call.Effect, question.Facts, found.Status)
	}
	for _, asked := range []string{"irreversible_burst", "destructive_burst"} {
		f := Filter{Statuses: []string{asked}, From: time.Unix(0, 0)}
		for _, written := range []string{"irreversible_burst", "destructive_burst", "rate"} {
			if got := f.matchesRow(&LogRow{Status: written}); got != (written != "rate") {
				t.Errorf("a filter for %s: %s is found: %v", asked, written, got)
			}
		}
	}
}
