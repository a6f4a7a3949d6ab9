package approval

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"retort/internal/core"
)

func call(execution, arguments string) core.Question {
	return core.Question{Execution: execution, Code: "crm.deleteContact(…)", Server: "crm", Tool: "delete_contact", Arguments: json.RawMessage(arguments), Pin: "pin", Policy: "1"}
}

// asked puts q into the table. It returns the waiting approval and a channel for the result.
func asked(t *testing.T, ctx context.Context, table *ApprovalTable, q core.Question) (core.Approval, <-chan *core.Error) {
	t.Helper()
	ended := make(chan *core.Error, 1)
	go func() { ended <- table.AskQuestion(ctx, q) }()
	synctest.Wait()
	waiting := table.ListWaiting("")
	if len(waiting) == 0 {
		t.Fatal("nothing waits")
	}
	return waiting[len(waiting)-1], ended
}

func kindOf(e *core.Error) string {
	if e == nil {
		return "ok"
	}
	return string(e.Kind)
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(table *ApprovalTable, r core.Approval, cancel func()) *core.Error
		want   string // how Ask ends
	}{
		{"yes", func(table *ApprovalTable, r core.Approval, _ func()) *core.Error {
			return table.AnswerApproval(r.ID, r.Digest, core.ApprovalAnswer{Approve: true})
		}, "ok"},
		{"no", func(table *ApprovalTable, r core.Approval, _ func()) *core.Error {
			return table.AnswerApproval(r.ID, r.Digest, core.ApprovalAnswer{Note: "too many"})
		}, "policy"},
		{"nobody", func(*ApprovalTable, core.Approval, func()) *core.Error { return nil }, "policy"},
		{"cancelled", func(_ *ApprovalTable, _ core.Approval, cancel func()) *core.Error { cancel(); return nil }, "cancelled"},
		{"yes, then cancelled before it is noticed", func(table *ApprovalTable, r core.Approval, cancel func()) *core.Error {
			defer cancel()
			return table.AnswerApproval(r.ID, r.Digest, core.ApprovalAnswer{Approve: true})
		}, "cancelled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				table := New(time.Minute, nil)
				r, ended := asked(t, ctx, table, call("x", `{"id":1}`))
				if err := c.answer(table, r, cancel); err != nil {
					t.Fatal(err)
				}
				if err := <-ended; kindOf(err) != c.want {
					t.Errorf("ended with %v, want %s", err, c.want)
				}
				if len(table.ListWaiting("")) != 0 {
					t.Error("it still waits")
				}
				if err := table.AnswerApproval(r.ID, r.Digest, core.ApprovalAnswer{Approve: true}); err == nil {
					t.Error("an answer counts afterwards")
				}
			})
		})
	}
}

func TestAnswersThatDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := New(time.Minute, nil)
		r, ended := asked(t, t.Context(), table, call("x", `{"id":1}`))
		other := call("x", `{"id":2}`)
		for name, err := range map[string]*core.Error{
			"another id":     table.AnswerApproval("nothing", r.Digest, core.ApprovalAnswer{Approve: true}),
			"other contents": table.AnswerApproval(r.ID, other.ApprovalDigest(), core.ApprovalAnswer{Approve: true}),
			"no digest":      table.AnswerApproval(r.ID, "", core.ApprovalAnswer{Approve: true}),
			"strange scope":  table.AnswerApproval(r.ID, r.Digest, core.ApprovalAnswer{Approve: true, Scope: "all"}),
		} {
			if err == nil {
				t.Errorf("%s: the answer counts", name)
			}
		}
		if err := table.AnswerApproval(r.ID, r.Digest, core.ApprovalAnswer{}); err != nil {
			t.Fatal(err)
		}
		if err := table.AnswerApproval(r.ID, r.Digest, core.ApprovalAnswer{Approve: true}); err == nil {
			t.Error("a second answer counts")
		}
		if err := <-ended; kindOf(err) != "policy" {
			t.Errorf("ended with %v", err)
		}
	})
}

// memory implements RuleStore with a map.
type memory map[AlwaysRule]bool

func (m memory) IsAllowed(r AlwaysRule) bool  { return m[r] }
func (m memory) AllowRule(r AlwaysRule) error { m[r] = true; return nil }

func TestScopes(t *testing.T) {
	same, shape, other := call("x", `{"id":1}`), call("x", `{"id":2}`), call("x", `{"id":"1"}`)
	later, changed := call("y", `{"id":3}`), call("x", `{"id":1}`)
	changed.Pin = "pin 2"
	loose := call("x", `{"id":1}`)
	loose.Policy = "2"
	for _, c := range []struct {
		scope core.ApprovalScope
		asks  []bool // for same, shape, other, later, changed, loose
	}{
		{"", []bool{true, true, true, true, true, true}},
		{core.ScopeOnce, []bool{true, true, true, true, true, true}},
		{core.ScopeRun, []bool{false, false, false, true, true, true}},
		{core.ScopeAlways, []bool{false, false, false, false, true, true}},
	} {
		t.Run(string(c.scope), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table := New(time.Minute, memory{})
				r, ended := asked(t, t.Context(), table, same)
				_ = table.AnswerApproval(r.ID, r.Digest, core.ApprovalAnswer{Approve: true, Scope: c.scope})
				<-ended
				for i, q := range []core.Question{same, shape, other, later, changed, loose} {
					if asks := table.AskQuestion(t.Context(), q) != nil; asks != c.asks[i] {
						t.Errorf("question %d: asks again is %t", i, asks)
					}
				}
				table.EndExecution("x")
				if c.scope == core.ScopeRun && table.AskQuestion(t.Context(), same) == nil {
					t.Error("the yes for the run outlives it")
				}
			})
		})
	}
}

func TestChannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := New(time.Minute, nil)
		yes := core.WithChannel(t.Context(), func(_ context.Context, r core.Approval) (core.ApprovalAnswer, bool) {
			return core.ApprovalAnswer{Approve: string(r.Arguments) == `{"id":1}`}, true
		})
		if err := table.AskQuestion(yes, call("x", `{"id":1}`)); err != nil {
			t.Error(err)
		}
		if err := table.AskQuestion(yes, call("x", `{"id":2}`)); kindOf(err) != "policy" {
			t.Error(err)
		}
		over := make(chan bool, 1)
		slow := core.WithChannel(t.Context(), func(ctx context.Context, _ core.Approval) (core.ApprovalAnswer, bool) {
			<-ctx.Done()
			over <- true
			return core.ApprovalAnswer{Approve: true}, true
		})
		r, ended := asked(t, slow, table, call("x", `{"id":3}`))
		_ = table.AnswerApproval(r.ID, r.Digest, core.ApprovalAnswer{})
		if err := <-ended; kindOf(err) != "policy" {
			t.Error("the channel has answered after the decision")
		}
		<-over // nobody goes on asking
	})
}

// TestHumanTime checks that the execution's clock is paused exactly while a question waits for its answer.
func TestHumanTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stood time.Duration
		ctx := core.WithPause(t.Context(), func() func() {
			began := time.Now()
			return func() { stood += time.Since(began) }
		})
		table := New(time.Minute, nil)
		r, ended := asked(t, ctx, table, call("x", "{}"))
		time.Sleep(40 * time.Second)
		_ = table.AnswerApproval(r.ID, r.Digest, core.ApprovalAnswer{Approve: true})
		<-ended
		if stood != 40*time.Second {
			t.Errorf("the clock stood for %v", stood)
		}
	})
}

// TestAnySequence asks, answers and cancels concurrently in random order. It checks that no call runs without an
// approval and that no approval lets two calls run.
func TestAnySequence(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			table := New(time.Duration(1+random.IntN(50))*time.Millisecond, nil)
			var ran, yes atomic.Int64
			var all sync.WaitGroup
			for i := range 1 + random.IntN(4) {
				ctx, cancel := context.WithCancel(t.Context())
				all.Go(func() {
					defer cancel()
					if table.AskQuestion(ctx, call(fmt.Sprint(i), fmt.Sprintf(`{"id":%d}`, i))) == nil {
						ran.Add(1)
					}
				})
				if random.IntN(3) == 0 {
					time.AfterFunc(time.Duration(random.IntN(60))*time.Millisecond, cancel)
				}
			}
			for range 2 + random.IntN(8) {
				wait, approve, stale := time.Duration(random.IntN(60))*time.Millisecond, random.IntN(2) == 0, random.IntN(4) == 0
				all.Go(func() {
					time.Sleep(wait)
					yes.Add(decideAll(t, table, approve, stale))
				})
			}
			all.Wait()
			if ran.Load() > yes.Load() {
				t.Errorf("%d ran with %d approvals", ran.Load(), yes.Load())
			}
		})
	}
}

// decideAll answers all waiting questions and returns how many it approved. If stale is true, it sends a wrong digest
// and checks that the answers have no effect.
func decideAll(t *testing.T, table *ApprovalTable, approve, stale bool) (yes int64) {
	for _, r := range table.ListWaiting("") {
		digest := r.Digest
		if stale {
			digest = strings.Repeat("0", 64)
		}
		if table.AnswerApproval(r.ID, digest, core.ApprovalAnswer{Approve: approve}) != nil {
			continue
		}
		if stale {
			t.Error("a decision with a wrong digest was accepted")
		}
		if approve {
			yes++
		}
	}
	return yes
}

func TestShape(t *testing.T) {
	for _, c := range []struct{ a, b string }{
		{`{"id":1,"tags":["a"]}`, `{"tags":["b","c"],"id":-2.5e9}`},
		{`{}`, ` { } `},
	} {
		if ArgumentShape(json.RawMessage(c.a)) != ArgumentShape(json.RawMessage(c.b)) {
			t.Errorf("%s and %s have other shapes", c.a, c.b)
		}
	}
	for _, c := range []struct{ a, b string }{
		{`{"id":1}`, `{"id":"1"}`}, {`{"id":1}`, `{"id":1,"force":true}`}, {`{"a":[1]}`, `{"a":["x"]}`}, {`{"a":[]}`, `{"a":[1]}`}, {`{"a":null}`, `{}`},
	} {
		if ArgumentShape(json.RawMessage(c.a)) == ArgumentShape(json.RawMessage(c.b)) {
			t.Errorf("%s and %s have the same shape", c.a, c.b)
		}
	}
}

// TestJournalsOfOtherNames checks that only ids of letters and digits get a journal, so that no id can lead to a file
// outside of the folder.
func TestJournalsOfOtherNames(t *testing.T) {
	j := NewJournals(t.TempDir())
	for _, name := range []string{"", "../a", "a/b", "a.b", "a\x00", "a\n", "ä", strings.Repeat("a", 65)} {
		if path := j.filePath(name); path != "" {
			t.Errorf("%q has the file %s", name, path)
		}
	}
	for _, name := range []string{"a", "Z9", strings.Repeat("a", 64)} {
		if j.filePath(name) == "" {
			t.Errorf("%q has no file", name)
		}
	}
}
