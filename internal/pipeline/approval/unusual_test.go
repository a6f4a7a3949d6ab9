package approval

import (
	"testing"
	"testing/synctest"
	"time"

	"retort/internal/core"
)

// TestUnusual checks that no earlier approval covers an unusual call. Approving such a call also approves waiting
// calls of the same principal whose only reason is the same anomaly, but no later calls.
func TestUnusual(t *testing.T) { synctest.Test(t, askUnusual) }

func askUnusual(t *testing.T) {
	table := New(time.Minute, nil)
	ask := func(q core.Question) func() *core.Error {
		_, ended := asked(t, t.Context(), table, q)
		return func() *core.Error { return <-ended }
	}
	waits := func(n int) []core.Approval {
		t.Helper()
		all := table.ListWaiting("x")
		if len(all) != n {
			t.Fatalf("%d approvals are waiting, want %d", len(all), n)
		}
		return all
	}
	q := core.Question{Execution: "x", Server: "crm", Tool: "delete"}
	usual := ask(q)
	a := waits(1)[0]
	if err := table.AnswerApproval(a.ID, a.Digest, core.ApprovalAnswer{Approve: true, Scope: core.ScopeRun}); err != nil || usual() != nil {
		t.Fatal(err)
	}
	q.Unusual, q.Merely, q.Rule = "irreversible_burst", true, "anomalies.irreversible_burst: much"
	first := ask(q)
	a = waits(1)[0]
	second := ask(q)
	other, also, different := q, q, q
	other.Principal, also.Merely, different.Unusual = "ann", false, "exfiltration"
	left := []func() *core.Error{ask(other), ask(also), ask(different)}
	waits(5)
	if err := table.AnswerApproval(a.ID, a.Digest, core.ApprovalAnswer{Approve: true, Scope: core.ScopeAlways}); err != nil {
		t.Fatal(err)
	}
	if first() != nil || second() != nil {
		t.Error("the approval has no effect")
	}
	later := ask(q)
	for i, refused := range append(left, later) {
		if refused() == nil {
			t.Errorf("%d was covered", i)
		}
	}
}
