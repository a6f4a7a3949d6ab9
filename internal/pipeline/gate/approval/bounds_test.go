package approval

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"retort/internal/run"
)

// decide answers everything that waits, one after the other, and returns how many answers counted.
func decide(table *Table, a run.Answer) (n int) {
	for waiting := table.Waiting(""); len(waiting) > 0; waiting = table.Waiting("") {
		if table.Decide(waiting[0].ID, waiting[0].Digest, a) == nil {
			n++
		}
		synctest.Wait()
	}
	return n
}

// A program that asks without end is not asked about any more, whether it asks at once or one by one.
func TestQuestionsAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		questions, asked int
		equal, atOnce    bool
		answer           run.Answer
		approved         int
	}{
		"noes one by one":        {500, 5, false, false, run.Answer{}, 0},
		"noes at once":           {500, 5, false, true, run.Answer{}, 0},
		"equal ones, one by one": {500, 1, true, false, run.Answer{}, 0},
		"equal ones at once":     {500, 1, true, true, run.Answer{}, 0},
		"yeses one by one":       {60, 50, false, false, run.Answer{Approve: true}, 50},
		"yeses at once":          {60, 50, false, true, run.Answer{Approve: true}, 50},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table := New(time.Minute, nil)
				ended := make(chan *run.Error, c.questions)
				asked := 0
				for i := range c.questions {
					if c.equal {
						i = 0
					}
					go func() { ended <- table.Ask(t.Context(), call("x", fmt.Sprintf(`{"id":%d}`, i))) }()
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
					} else if err.Kind != run.KindPolicy {
						t.Errorf("%+v", err)
					}
				}
				if asked != c.asked || approved != c.approved {
					t.Errorf("asked %d times, approved %d; want %d and %d", asked, approved, c.asked, c.approved)
				}
				go func() { ended <- table.Ask(t.Context(), call("another", `{"id":0}`)) }()
				synctest.Wait()
				if n := decide(table, run.Answer{Approve: true}); n != 1 {
					t.Errorf("another program was asked about %d times", n)
				}
			})
		})
	}
}

// A yes begins the count of noes anew, and a session has its own bound within an hour.
func TestBoundsOfSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := New(time.Minute, nil)
		table.Bound(Bounds{Questions: 3, Declined: 2})
		ask := func(execution string, arguments int, approve bool) (asked int) {
			go func() { _ = table.Ask(t.Context(), call(execution, fmt.Sprintf(`{"id":%d}`, arguments))) }()
			synctest.Wait()
			return decide(table, run.Answer{Approve: approve})
		}
		if n := ask("x", 1, false) + ask("x", 2, true) + ask("x", 3, false) + ask("x", 4, true); n != 3 {
			t.Errorf("asked %d times", n)
		}
		asked := 3
		for i := range 30 {
			asked += ask(fmt.Sprint(i), 1, false)
		}
		if asked != 30 {
			t.Errorf("asked %d times within an hour", asked)
		}
		time.Sleep(time.Hour)
		if ask("later", 1, false) != 1 {
			t.Error("nobody is asked after an hour")
		}
		table.End("x")
		if _, kept := table.histories["x"]; kept {
			t.Error("what an execution has asked is kept after its end")
		}
	})
}
