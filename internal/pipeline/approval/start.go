package approval

import (
	"slices"

	"retort/internal/core"
)

// checkScope returns an error if an answer to q has a scope that q does not offer, or covers fewer calls than q lists.
// An answer to other questions than those before the start of a program may have a scope that is too wide: it then
// counts as once.
func checkScope(q core.Question, a core.ApprovalAnswer) *core.Error {
	if (q.Start || a.Scope == core.ScopeEach) && !slices.Contains(q.Scopes(), a.Scope) {
		return core.Errorf(core.KindInvalidArguments, "approval", "this question cannot be approved with the scope %s", a.Scope).
			WithHint("possible are: %s", core.JoinScopes(q.Scopes()))
	}
	if !q.Start || a.Calls == 0 {
		return nil
	}
	for _, e := range q.Effects {
		if n := q.CountCalls(e.Server, e.Tool); a.Calls < n {
			return core.Errorf(core.KindInvalidArguments, "approval", "calls: %d is less than the %d calls of %s.%s that were shown", a.Calls, n, e.Server, e.Tool)
		}
	}
	return nil
}

// grantExpected stores what the answer to a question before the start of a program covers beyond the calls that the
// question lists. The caller must hold mu.
func (t *ApprovalTable) grantExpected(e *tableEntry) {
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
