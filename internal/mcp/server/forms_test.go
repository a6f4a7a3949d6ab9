package server

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
)

// TestFormsTakeTurns checks that a client shows few forms at the same time, that the most dangerous approval is shown
// next, and that questions of servers leave room for approvals.
func TestFormsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var forms openForms
		session, other := new(mcp.ServerSession), new(mcp.ServerSession)
		var shown []string
		leave := map[string]func(){}
		var mu sync.Mutex // of shown and leave: several turns can begin at once
		ask := func(name string, s *mcp.ServerSession, danger int) {
			go func() {
				if l, ok := forms.awaitTurn(t.Context(), s, danger); ok {
					mu.Lock()
					shown, leave[name] = append(shown, name), l
					mu.Unlock()
				}
			}()
			synctest.Wait()
		}
		for i := range 100 {
			ask(fmt.Sprint("server ", i), session, serverForm)
		}
		ask("write", session, 1)
		ask("read", session, 0)
		for i := range 50 {
			ask(fmt.Sprint("harmless ", i), session, 1)
		}
		ask("delete", session, 3)
		ask("another client", other, 0)
		if want := []string{"server 0", "server 1", "write", "read", "another client"}; !slices.Equal(shown, want) {
			t.Errorf("shown: %q", shown)
		}
		leave["read"]()
		delete(leave, "read")
		synctest.Wait()
		if shown[len(shown)-1] != "delete" {
			t.Errorf("shown next: %q", shown[5:])
		}
		leave["server 0"]()
		delete(leave, "server 0")
		synctest.Wait()
		if shown[len(shown)-1] != "harmless 0" {
			t.Errorf("shown next: %q", shown[6:])
		}
		for len(leave) > 0 {
			mu.Lock()
			open := leave
			leave = map[string]func(){}
			mu.Unlock()
			for _, l := range open {
				l()
			}
			synctest.Wait()
		}
		if len(shown) != 154 || len(forms.clients) != 0 {
			t.Errorf("%d forms shown, %d clients left", len(shown), len(forms.clients))
		}
	})
}

// TestFormsThatEnd checks that a waiting form is not shown if its question is answered elsewhere before its turn.
func TestFormsThatEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var forms openForms
		session := new(mcp.ServerSession)
		var open []func()
		for range maxOpenForms {
			l, _ := forms.awaitTurn(t.Context(), session, 0)
			open = append(open, l)
		}
		ctx, end := context.WithCancel(t.Context())
		done := make(chan bool)
		go func() { _, ok := forms.awaitTurn(ctx, session, 4); done <- ok }()
		synctest.Wait()
		end()
		if <-done {
			t.Error("a form that is not needed any more was shown")
		}
		for _, l := range open {
			l()
		}
		if len(forms.clients) != 0 {
			t.Error("the client is kept")
		}
	})
}

// TestFormsOfRound checks that the forms sent in one result are few and include the most dangerous approvals, no
// matter when these were requested.
func TestFormsOfRound(t *testing.T) {
	var waiting []core.Approval
	for i := range 40 {
		q := core.Question{Server: "s", Tool: fmt.Sprint("update_", i), Effect: "write"}
		waiting = append(waiting, core.Approval{ID: fmt.Sprint(i), Digest: q.ApprovalDigest(), Question: q})
	}
	waiting[39].Effect, waiting[20].Critical = "irreversible", "sudo"
	forms := formsOfRound(waiting)
	if len(forms) != maxRoundForms || forms[0].ID != "20" || forms[1].ID != "39" || forms[2].ID != "0" {
		t.Errorf("%d forms: %+v", len(forms), forms)
	}
	if len(formsOfRound(nil)) != 0 {
		t.Error("forms of nothing")
	}
}

// TestQuestionsOfTask checks that the questions of a task are asked in the order of their danger, and questions of
// upstream servers last.
func TestQuestionsOfTask(t *testing.T) {
	a, b := core.Approval{ID: "a", Question: core.Question{Tool: "t", Effect: "write"}}, core.Approval{ID: "b", Digest: "1", Question: core.Question{Tool: "u", Effect: "irreversible"}}
	requests := mcp.InputRequestMap{"ask-1": &mcp.ElicitParams{}, "a": &mcp.ElicitParams{}, "ask-2": &mcp.ElicitParams{}, "b": &mcp.ElicitParams{}}
	if got := byDanger(dangersOf(requests, []core.Approval{a, b})); !slices.Equal(got, []string{"b", "a", "ask-1", "ask-2"}) {
		t.Errorf("asked in the order %q", got)
	}
}
