package config

import "testing"

// TestFormerNames checks that settings with the names that earlier versions used mean the same, and that the present
// name of an anomaly is stronger.
func TestFormerNames(t *testing.T) {
	for text, want := range map[string]AnomalyAction{
		"anomalies: {destructive_burst: stop}":                            AnomalyStop,
		"anomalies: {destructive_burst: stop, irreversible_burst: note}":  AnomalyNote,
		"anomalies: {irreversible_burst: note, destructive_burst: stop}":  AnomalyNote,
		"anomalies: {default: alert}":                                     AnomalyAlert,
		"servers: {a: {effects: {wipe: destructive, \"post_*\": money}}}": AnomalyApprove,
	} {
		read, err := ParseSettings("retort.yaml", "/p", []byte(text), nil)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		s := read.WithDefaults()
		if got := s.Anomalies.ActionFor("irreversible_burst"); got != want || s.Anomalies.Actions["destructive_burst"] != "" {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		if e := s.Servers["a"].Effects; e != nil && (e["wipe"] != "irreversible" || e["post_*"] != "money") {
			t.Errorf("%s: %v", text, e)
		}
	}
}
