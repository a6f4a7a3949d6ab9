package approval

import (
	"slices"

	"retort/internal/core"
)

// fitScope returns an approval of q with a scope that q offers. A scope that is too wide for a question before the start of
// a program becomes ScopeOnce; other questions treat it so themselves. It returns an error if the answer has ScopeEach
// and q does not offer that, or if its limit on calls is lower than the number of calls that q lists.
func fitScope(q core.Question, a core.ApprovalAnswer) (core.ApprovalAnswer, *core.Error) {
	offered := slices.Contains(q.Scopes(), a.Scope)
	switch {
	case a.Scope == core.ScopeEach && !offered:
		return a, core.Errorf(core.KindInvalidArguments, "approval", "this question cannot be approved with the scope %s", a.Scope).
			WithHint("possible are: %s", core.JoinScopes(q.Scopes()))
	case q.Start && !offered:
		a.Scope, a.Calls = core.ScopeOnce, 0
	case q.Start && a.Calls > 0 && a.Calls < q.LeastCalls():
		return a, core.Errorf(
			core.KindInvalidArguments, "approval", "calls is %d but must be at least %d, because the request lists %d calls of a tool",
			a.Calls, q.LeastCalls(), q.LeastCalls(),
		)
	}
	return a, nil
}

// grantWiderScope handles the answer to a question that was asked before a program started. If the answer covers more than
// the listed calls, such as all calls of a tool in this run, grantWiderScope stores that approval. It does not store the
// approval of the listed calls, which the caller of PutQuestion does. The caller must hold t.mu.
func (t *ApprovalTable) grantWiderScope(e *tableEntry) {
	if !e.answer.Approve || e.answer.Scope != core.ScopeRun && e.answer.Scope != core.ScopeAlways {
		return
	}
	for _, call := range e.Effects {
		q := e.Question
		q.Server, q.Tool, q.Pin, q.Arguments, q.Crosses = call.Server, call.Tool, call.Pin, call.Arguments, ""
		if e.answer.Scope == core.ScopeAlways && t.rules != nil {
			_ = t.rules.AllowRule(ruleOf(q)) // if it cannot be stored, a person is asked again next time
		}
		left := -1 // all
		if e.answer.Calls > 0 {
			left = e.answer.Calls - e.CountCalls(call.Server, call.Tool)
		}
		t.granted[grantOf(q)] = &runApproval{e.answer, left}
	}
}

// IsCovered reports whether an earlier approval covers q, so that nobody would be asked.
func (t *ApprovalTable) IsCovered(q core.Question) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.findCovering(q)
	return ok
}
