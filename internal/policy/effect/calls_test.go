package effect

import (
	"encoding/json"
	"testing"

	"retort/internal/core"
)

// labelledCall holds a call from the corpus together with its true effect.
type labelledCall struct {
	Server, Name, Description, Effect string
	Arguments                         json.RawMessage
}

// TestCallCorpus checks that no call in the corpus is judged milder than its true effect, and that at most one in
// twelve is judged stricter.
func TestCallCorpus(t *testing.T) {
	calls := readLines[labelledCall](t, "calls.jsonl")
	var stricter int
	for _, c := range calls {
		tool := core.Tool{Server: c.Server, Name: c.Name, Description: c.Description}
		want := kind(t, c.Effect)
		switch e := NewJudge(&tool, false).CallEffect(c.Arguments); {
		case e.Kind < want:
			t.Errorf("%s(%s) is %s, judged %s (%s)", c.Name, c.Arguments, want, e.Kind, e.Reason)
		case e.Kind > want:
			stricter++
			t.Logf("stricter: %s(%s) is %s, judged %s (%s)", c.Name, c.Arguments, want, e.Kind, e.Reason)
		}
	}
	t.Logf("%d calls, %d judged stricter than they are", len(calls), stricter)
	if stricter*12 > len(calls) {
		t.Errorf("%d of %d calls are judged stricter than they are", stricter, len(calls))
	}
}
