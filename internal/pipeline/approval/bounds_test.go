package approval

import (
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"retort/internal/core"
)

// decide gives the same answer to all waiting questions, one after the other. Questions that are shown together get
// one answer. It returns how many answers were accepted.
func decide(table *ApprovalTable, a core.ApprovalAnswer) (n int) {
	for waiting := core.GroupAlike(table.ListWaiting("")); len(waiting) > 0; waiting = core.GroupAlike(table.ListWaiting("")) {
		a.Also = waiting[0].Same
		if table.AnswerApproval(waiting[0].ID, waiting[0].Digest, a) == nil {
			n++
		}
		synctest.Wait()
	}
	return n
}

// TestQuestionsAreBounded checks how often a person is asked about a program that asks without end: 50 times if the
// person approves, 5 times if the person denies, once if all questions are equal.
func TestQuestionsAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		questions, asked int
		equal, atOnce    bool
		answer           core.ApprovalAnswer
		approved         int
	}{
		"noes one by one":        {500, 5, false, false, core.ApprovalAnswer{}, 0},
		"noes at once":           {500, 1, false, true, core.ApprovalAnswer{}, 0},
		"equal ones, one by one": {500, 1, true, false, core.ApprovalAnswer{}, 0},
		"equal ones at once":     {500, 1, true, true, core.ApprovalAnswer{}, 0},
		"yeses one by one":       {60, 50, false, false, core.ApprovalAnswer{Approve: true}, 50},
		"yeses at once":          {60, 1, false, true, core.ApprovalAnswer{Approve: true}, 60},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table := New(time.Minute, nil)
				ended := make(chan *core.Error, c.questions)
				asked := 0
				for i := range c.questions {
					if c.equal {
						i = 0
					}
					go func() { ended <- table.AskQuestion(t.Context(), call("x", fmt.Sprintf(`{"id":%d}`, i))) }()
					if !c.atOnce {
						synctest.Wait()
						asked += decide(table, c.answer)
					}
				}
				synctest.Wait()
				asked += decide(table, c.answer)
				approved := 0
				for range c.questions {
					if err := <-ended; err == nil {
						approved++
					} else if err.Kind != core.KindPolicy {
						t.Errorf("%+v", err)
					}
				}
				if asked != c.asked || approved != c.approved {
					t.Errorf("asked %d times, approved %d; want %d and %d", asked, approved, c.asked, c.approved)
				}
				go func() { ended <- table.AskQuestion(t.Context(), call("another", `{"id":0}`)) }()
				synctest.Wait()
				if n := decide(table, core.ApprovalAnswer{Approve: true}); n != 1 {
					t.Errorf("another program was asked about %d times", n)
				}
			})
		})
	}
}

// TestGroupsAreBounded checks that calls which are shown together count as one question, but only if they are asked
// about within a second of the first.
func TestGroupsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := New(time.Hour, nil)
		table.SetBounds(QuestionBounds{Questions: 3})
		ended := make(chan *core.Error, 100)
		for i := range 100 { // ten calls at once, every half second
			go func() { ended <- table.AskQuestion(t.Context(), call("x", fmt.Sprintf(`{"id":%d}`, i))) }()
			synctest.Wait()
			if i%10 == 9 {
				time.Sleep(groupWindow / 2)
			}
		}
		if waiting := len(table.ListWaiting("x")); waiting != 60 {
			t.Errorf("%d calls wait, want those of the three seconds that began with a question", waiting)
		}
		if n := decide(table, core.ApprovalAnswer{Approve: true}); n != 1 {
			t.Errorf("%d answers", n)
		}
		approved := 0
		for range 100 {
			if <-ended == nil {
				approved++
			}
		}
		if approved != 60 {
			t.Errorf("approved %d", approved)
		}
	})
}

// TestSharedAnswer checks that one answer decides the different calls that were shown together, and only these. An
// answer to one call must not decide another one.
func TestSharedAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := New(time.Minute, nil)
		ids := map[string]string{}
		ended := map[string]<-chan *core.Error{}
		ask := func(name string, q core.Question) {
			one, end := asked(t, t.Context(), table, q)
			ids[name], ended[name] = one.ID, end
			time.Sleep(time.Millisecond)
		}
		for _, name := range []string{"1", "2", "3"} {
			ask(name, call("x", `{"id":`+name+`}`))
		}
		shown := core.GroupAlike(table.ListWaiting(""))[0]
		ask("4", call("x", `{"id":4}`))
		for name, wrong := range map[string]struct {
			digest string
			also   []string
		}{
			"one call fewer":          {shown.Digest, shown.Same[:1]},
			"one call more":           {shown.Digest, append(shown.Same[:2:2], ids["4"])},
			"another order":           {shown.Digest, []string{shown.Same[1], shown.Same[0]}},
			"a question that is gone": {shown.Digest, append(shown.Same[:2:2], "nothing")},
			"no digest":               {"", []string{"nothing"}},
		} {
			if table.AnswerApproval(shown.ID, wrong.digest, core.ApprovalAnswer{Approve: true, Also: wrong.also}) == nil {
				t.Fatalf("%s was accepted", name)
			}
		}
		if err := table.AnswerApproval(shown.ID, shown.Digest, core.ApprovalAnswer{Approve: true, Also: shown.Same}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, name := range []string{"1", "2", "3"} {
			if err := <-ended[name]; err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if left := table.ListWaiting("x"); len(left) != 1 || left[0].ID != ids["4"] {
			t.Errorf("still waiting: %+v", left)
		}
		ask("5", call("x", `{"id":5}`))
		four := table.ListWaiting("x")[0]
		if err := table.AnswerApproval(four.ID, four.Digest, core.ApprovalAnswer{Approve: true, Also: []string{ids["5"]}}); err != nil || !table.IsWaiting(ids["5"]) {
			t.Errorf("an answer to one call decided another: %v", err)
		}
	})
}

// TestNumberOfCalls checks that an approval for the rest of a run covers as many calls as the person said, including
// those that were shown with it.
func TestNumberOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := New(time.Minute, nil)
		ended := make(chan *core.Error, 10)
		ask := func(i int) {
			go func() { ended <- table.AskQuestion(t.Context(), call("x", fmt.Sprintf(`{"id":%d}`, i))) }()
			synctest.Wait()
		}
		ask(0)
		ask(1)
		shown := core.GroupAlike(table.ListWaiting(""))[0]
		for _, wrong := range []core.ApprovalAnswer{{Approve: true, Calls: 4}, {Approve: true, Scope: core.ScopeRun, Calls: -1}} {
			if table.AnswerApproval(shown.ID, shown.Digest, wrong) == nil {
				t.Errorf("%+v was accepted", wrong)
			}
		}
		a := core.ApprovalAnswer{Approve: true, Scope: core.ScopeRun, Calls: 4, Also: shown.Same}
		if err := table.AnswerApproval(shown.ID, shown.Digest, a); err != nil {
			t.Fatal(err)
		}
		for i := 2; i < 6; i++ {
			ask(i)
		}
		if waiting := len(table.ListWaiting("")); waiting != 2 || len(ended) != 4 {
			t.Errorf("%d calls wait, %d were approved", waiting, len(ended))
		}
		decide(table, core.ApprovalAnswer{Approve: true})
	})
}

// TestBoundsOfSessions checks that an approval resets the count of denials, and that all executions of a session
// together may ask only a limited number of questions within an hour.
func TestBoundsOfSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := New(time.Minute, nil)
		table.SetBounds(QuestionBounds{Questions: 3, Declined: 2})
		ask := func(execution string, arguments int, approve bool) (asked int) {
			go func() { _ = table.AskQuestion(t.Context(), call(execution, fmt.Sprintf(`{"id":%d}`, arguments))) }()
			synctest.Wait()
			return decide(table, core.ApprovalAnswer{Approve: approve})
		}
		if n := ask("x", 1, false) + ask("x", 2, true) + ask("x", 3, false) + ask("x", 4, true); n != 3 {
			t.Errorf("asked %d times", n)
		}
		asked := 3
		for i := range 30 {
			asked += ask(fmt.Sprint(i), 1, true)
		}
		if asked != 30 {
			t.Errorf("asked %d times within an hour", asked)
		}
		time.Sleep(time.Hour)
		if ask("later", 1, false) != 1 {
			t.Error("nobody is asked after an hour")
		}
		table.EndExecution("x")
		if _, kept := table.histories["x"]; kept {
			t.Error("what an execution has asked is kept after its end")
		}
	})
}

// TestBoundOfUser checks that a principal cannot avoid the bound on questions by using a new session name each time.
func TestBoundOfUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := New(time.Minute, nil)
		table.SetBounds(QuestionBounds{Questions: 3, Declined: 2})
		asked := 0
		for i := range 100 {
			c := call(fmt.Sprint(i), `{"id":1}`)
			c.Session = fmt.Sprint("session ", i)
			go func() { _ = table.AskQuestion(t.Context(), c) }()
			synctest.Wait()
			asked += decide(table, core.ApprovalAnswer{Approve: true})
		}
		if asked != 60 {
			t.Errorf("asked %d times within an hour, want 60", asked)
		}
		other := call("other", `{"id":1}`)
		other.Principal = "another"
		go func() { _ = table.AskQuestion(t.Context(), other) }()
		synctest.Wait()
		if decide(table, core.ApprovalAnswer{Approve: true}) != 1 {
			t.Error("nobody is asked about another user")
		}
	})
}

// TestEqualQuestions checks that one answer decides all equal questions that were shown together. It must not decide
// questions asked later, or different questions whose ids the answer contains.
func TestEqualQuestions(t *testing.T) {
	for name, a := range map[string]core.ApprovalAnswer{"once": {Approve: true}, "run": {Approve: true, Scope: core.ScopeRun}, "no": {Note: "not today"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { answerEqual(t, a, func() { time.Sleep(time.Millisecond) }) })
		})
	}
}

// answerEqual asks equal and different questions, gives the answer a, and checks which questions the answer decides.
// It calls pause after each question, so that all have different times.
func answerEqual(t *testing.T, a core.ApprovalAnswer, pause func()) {
	table := New(time.Minute, nil)
	ended := map[string]<-chan *core.Error{}
	ask := func(name string, q core.Question) string {
		one, end := asked(t, t.Context(), table, q)
		ended[name] = end
		pause()
		return one.ID
	}
	first := ask("first", call("x", `{"id":1}`))
	second := ask("second", call("x", `{"id":1}`))
	ask("other execution", call("y", `{"id":1}`))
	otherReason := call("x", `{"id":2}`)
	otherReason.Rule = "another reason"
	different := ask("other arguments", otherReason)
	stranger := call("z", `{"id":1}`)
	stranger.Principal = "eve"
	theirs := ask("other principal", stranger)
	shown := core.GroupAlike(table.ListWaiting(""))[0]
	if shown.ID != first || shown.Count != 3 || shown.Same[0] != second {
		t.Fatalf("shown as one: %+v", shown)
	}
	ask("unseen", call("y", `{"id":1}`))
	if group, ok := table.FindGroup(second); !ok || group.ID != first || group.Count != 2 {
		t.Errorf("the group of one execution: %+v", group)
	}
	a.Also = append(shown.Same, different, theirs, "nothing", first)
	if err := table.AnswerApproval(first, shown.Digest, a); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	for _, name := range []string{"first", "second", "other execution"} {
		select {
		case err := <-ended[name]:
			if (err == nil) != a.Approve {
				t.Errorf("%s: %v", name, err)
			}
		default:
			t.Errorf("%s still waits", name)
		}
	}
	left := map[string]bool{}
	for _, one := range table.ListWaiting("") {
		left[string(one.Arguments)+one.Principal+one.Execution] = true
	}
	want := map[string]bool{`{"id":2}x`: true, `{"id":1}evez`: true, `{"id":1}y`: true}
	if a.Scope == core.ScopeRun {
		delete(want, `{"id":2}x`) // it is the same tool in the same run
	}
	if !a.Approve {
		delete(want, `{"id":1}y`) // a no answers equal questions of its program
	}
	if !maps.Equal(left, want) {
		t.Errorf("still waits: %v", left)
	}
	if h := table.histories["y"]; !a.Approve && h.declined != 1 {
		t.Errorf("the other program was declined %d times", h.declined)
	}
}

// TestDenialsOfTool checks that a program cannot avoid the bound on denied questions about one tool by asking for
// something harmless in between.
func TestDenialsOfTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := New(time.Minute, nil)
		denied := 0
		for i := range 20 {
			dangerous, harmless := call("x", fmt.Sprintf(`{"id":%d}`, i)), call("x", fmt.Sprintf(`{"id":%d}`, i))
			harmless.Tool = "update_contact"
			go func() { _ = table.AskQuestion(t.Context(), dangerous) }()
			synctest.Wait()
			denied += decide(table, core.ApprovalAnswer{})
			go func() { _ = table.AskQuestion(t.Context(), harmless) }()
			synctest.Wait()
			if n := decide(table, core.ApprovalAnswer{Approve: true}); n != 1 {
				t.Errorf("asked %d times about the harmless tool", n)
			}
		}
		if denied != core.DefaultDeclined {
			t.Errorf("asked %d times about the tool that was denied", denied)
		}
	})
}

// TestDenialsInManyPrograms checks that a principal cannot avoid the bound on denied questions by running programs
// again and again. Other principals, other tools and later hours are counted separately, and an approval resets the
// count.
func TestDenialsInManyPrograms(t *testing.T) {
	for name, of := range map[string]func(q *core.Question){
		"a call":         func(*core.Question) {},
		"a program":      func(q *core.Question) { q.Server, q.Tool, q.Arguments = "", "", nil },
		"other sessions": func(q *core.Question) { q.Session = "s" + q.Execution },
		"other clients":  func(q *core.Question) { q.Client = "client " + q.Execution },
		"other code":     func(q *core.Question) { q.Code += q.Execution },
		"other pins":     func(q *core.Question) { q.Pin += q.Execution },
		"a login":        func(q *core.Question) { q.Login = "https://example.org/" + q.Execution },
		"effects":        func(q *core.Question) { q.Effects = []core.IntendedCall{{Tool: q.Execution}} },
		"unusual":        func(q *core.Question) { q.Unusual = "rate" },
		"crossing":       func(q *core.Question) { q.Crosses = "email " + q.Execution },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table := New(time.Minute, nil)
				ask := func(i int, change func(q *core.Question), approve bool) int {
					q := call(fmt.Sprint(i), fmt.Sprintf(`{"id":%d}`, i))
					of(&q)
					change(&q)
					go func() { _ = table.AskQuestion(t.Context(), q); table.EndExecution(q.Execution) }()
					synctest.Wait()
					return decide(table, core.ApprovalAnswer{Approve: approve})
				}
				same := func(*core.Question) {}
				asked := 0
				for i := range 200 {
					asked += ask(i, same, false)
				}
				if want := declinedShare * core.DefaultDeclined; asked != want {
					t.Errorf("asked %d times, want %d", asked, want)
				}
				if n := ask(1000, func(q *core.Question) { q.Principal = "other" }, false); n != 1 {
					t.Errorf("asked %d times for another user", n)
				}
				if n := ask(1001, func(q *core.Question) { q.Server, q.Tool = "crm", "other" }, false); n != 1 {
					t.Errorf("asked %d times about another tool", n)
				}
				time.Sleep(time.Hour)
				asked = 0
				for i := range 40 {
					asked += ask(2000+i, same, i%10 == 9)
				}
				if asked != 40 {
					t.Errorf("asked %d times with approvals in between", asked)
				}
			})
		})
	}
}

// TestDenialOfEqualQuestions checks that one denial of a question which many programs ask counts only once.
func TestDenialOfEqualQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := New(time.Minute, nil)
		for i := range 40 {
			go func() { _ = table.AskQuestion(t.Context(), call(fmt.Sprint(i), `{"id":1}`)) }()
		}
		synctest.Wait()
		shown := core.GroupAlike(table.ListWaiting(""))
		if len(shown) != 1 || shown[0].Count != 40 {
			t.Fatalf("shown: %d questions, the first for %d", len(shown), shown[0].Count)
		}
		if err := table.AnswerApproval(shown[0].ID, shown[0].Digest, core.ApprovalAnswer{Also: shown[0].Same}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		go func() { _ = table.AskQuestion(t.Context(), call("next", `{"id":2}`)) }()
		synctest.Wait()
		if n := decide(table, core.ApprovalAnswer{}); n != 1 {
			t.Errorf("asked %d times afterwards", n)
		}
	})
}
