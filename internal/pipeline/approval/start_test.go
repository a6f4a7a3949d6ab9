package approval

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"retort/internal/core"
)

// expected returns a question before the start of a program. Each of the texts is SERVER of one call of delete_contact.
func expected(execution string, servers ...string) core.Question {
	q := core.Question{Execution: execution, Code: "for (…) …", Policy: "1", Start: true}
	for _, server := range servers {
		q.Effects = append(q.Effects, core.IntendedCall{
			Server: server, Tool: "delete_contact", Arguments: json.RawMessage(`{"id":1}`), Effect: "irreversible", Pin: "pin",
		})
	}
	return q
}

// TestStartScopes checks which later calls the answer to a question before a program's start covers, besides the calls
// that it lists.
func TestStartScopes(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer core.ApprovalAnswer
		covers int // calls of the same tool in the same run, of five
		later  bool
	}{
		{"once", core.ApprovalAnswer{Approve: true}, 0, false},
		{"each", core.ApprovalAnswer{Approve: true, Scope: core.ScopeEach}, 0, false},
		{"run", core.ApprovalAnswer{Approve: true, Scope: core.ScopeRun}, 5, false},
		{"run, a number", core.ApprovalAnswer{Approve: true, Scope: core.ScopeRun, Calls: 4}, 2, false},
		{"run, no more than listed", core.ApprovalAnswer{Approve: true, Scope: core.ScopeRun, Calls: 2}, 0, false},
		{"always", core.ApprovalAnswer{Approve: true, Scope: core.ScopeAlways}, 5, true},
		{"no", core.ApprovalAnswer{Scope: core.ScopeRun}, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table := New(time.Minute, memory{})
				a, ended := asked(t, t.Context(), table, expected("x", "crm", "crm"))
				if err := table.AnswerApproval(a.ID, a.Digest, c.answer); err != nil {
					t.Fatal(err)
				}
				<-ended
				covered := 0
				for range 5 {
					q := call("x", `{"id":2}`)
					if table.IsCovered(q) {
						covered++
						if err := table.AskQuestion(t.Context(), q); err != nil {
							t.Fatal(err)
						}
					}
				}
				if covered != c.covers {
					t.Errorf("%d of 5 calls are covered, want %d", covered, c.covers)
				}
				for name, q := range map[string]core.Question{
					"another tool":       {Execution: "x", Code: "…", Server: "crm", Tool: "delete_all", Arguments: json.RawMessage(`{"id":1}`), Pin: "pin", Policy: "1"},
					"another definition": {Execution: "x", Code: "…", Server: "crm", Tool: "delete_contact", Arguments: json.RawMessage(`{"id":1}`), Pin: "other", Policy: "1"},
					"critical":           {Execution: "x", Code: "…", Server: "crm", Tool: "delete_contact", Arguments: json.RawMessage(`{"id":1}`), Pin: "pin", Policy: "1", Critical: "rm -rf"},
					"personal data":      {Execution: "x", Code: "…", Server: "crm", Tool: "delete_contact", Arguments: json.RawMessage(`{"id":1}`), Pin: "pin", Policy: "1", Crosses: "e-mail"},
				} {
					if table.IsCovered(q) {
						t.Errorf("%s is covered", name)
					}
				}
				table.EndExecution("x")
				if got := table.IsCovered(call("y", `{"id":2}`)); got != c.later {
					t.Errorf("a call of a later run is covered: %v, want %v", got, c.later)
				}
			})
		})
	}
}

// TestStartAnswersThatDoNotCount checks answers that a question before a program's start does not offer. Nothing is
// decided by them.
func TestStartAnswersThatDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := New(time.Minute, nil)
		several, _ := asked(t, t.Context(), table, expected("x", "crm", "crm", "mail"))
		time.Sleep(time.Second) // so that it is the newest
		one, _ := asked(t, t.Context(), table, call("x", `{"id":1}`))
		for _, c := range []struct {
			a      core.Approval
			answer core.ApprovalAnswer
		}{
			{several, core.ApprovalAnswer{Approve: true, Scope: core.ScopeRun, Calls: 1}}, // fewer than listed
			{several, core.ApprovalAnswer{Approve: true, Scope: core.ScopeEach, Calls: 9}},
			{one, core.ApprovalAnswer{Approve: true, Scope: core.ScopeEach}},
		} {
			if err := table.AnswerApproval(c.a.ID, c.a.Digest, c.answer); err == nil || !table.IsWaiting(c.a.ID) {
				t.Errorf("%+v counts as an answer", c.answer)
			}
		}
		for _, a := range []core.Approval{several, one} { // a denial counts with any scope
			if err := table.AnswerApproval(a.ID, a.Digest, core.ApprovalAnswer{Scope: core.ScopeEach}); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestStartScopeTooWide checks that a scope that a question before a program's start does not offer counts as once.
func TestStartScopeTooWide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := New(time.Minute, memory{})
		a, ended := asked(t, t.Context(), table, expected("x", "crm", "mail"))
		if err := table.AnswerApproval(a.ID, a.Digest, core.ApprovalAnswer{Approve: true, Scope: core.ScopeAlways}); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil || table.IsCovered(call("x", `{"id":2}`)) {
			t.Errorf("%v, other calls are covered: %v", err, table.IsCovered(call("x", `{"id":2}`)))
		}
	})
}

// TestEqualStarts checks that an answer with the scope each, which is shown for equal programs of two executions, starts
// both programs without approving a call of either.
func TestEqualStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := New(time.Minute, nil)
		scopes := make(chan core.ApprovalScope, 2)
		for _, execution := range []string{"x", "y"} {
			go func() {
				answer, _, refused := table.PutQuestion(t.Context(), expected(execution, "crm", "crm"))
				if refused != nil {
					t.Error(refused)
				}
				scopes <- answer.Scope
			}()
		}
		synctest.Wait()
		group := core.GroupAlike(table.ListWaiting(""))
		if len(group) != 1 || len(group[0].Same) != 1 {
			t.Fatalf("%+v", group)
		}
		answer := core.ApprovalAnswer{Approve: true, Scope: core.ScopeEach, Also: group[0].Same}
		if err := table.AnswerApproval(group[0].ID, group[0].Digest, answer); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if scope := <-scopes; scope != core.ScopeEach {
				t.Errorf("an execution got the scope %s", scope)
			}
		}
	})
}
