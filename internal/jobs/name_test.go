package jobs

import (
	"fmt"
	"sync"
	"testing"

	"retort/internal/core"
)

// TestNames checks that only one of several engines succeeds if they submit jobs with the same name at the same time.
// After that job has ended, the name must be free again.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	var queues []*Queue
	for range 4 {
		queues = append(queues, open(t, options(dir)))
	}
	errs := make([]error, 16)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			_, errs[i] = queues[i%len(queues)].SubmitJob("anna", core.Job{Kind: "test", Name: "same"}, nil)
		})
	}
	all.Wait()
	taken := 0
	for _, err := range errs {
		if err != nil {
			if core.AsError(err).Message != NameTaken("same").Message {
				t.Error(err)
			}
			taken++
		}
	}
	if taken != len(errs)-1 {
		t.Errorf("%d of %d were refused", taken, len(errs))
	}
	if _, err := queues[1].SubmitJob("berta", core.Job{Kind: "test", Name: "same"}, nil); err != nil {
		t.Errorf("the id of another principal's task is taken: %v", err)
	}
	for principal, want := range map[string]string{"anna": "anna", "berta": "berta"} {
		if s, err := queues[2].Get(principal, "same"); err != nil || s.Principal != want {
			t.Errorf("%s: %+v %v", principal, s, err)
		}
	}
	if _, err := queues[2].Get("clara", "same"); err == nil || fmt.Sprint(err) != fmt.Sprint(missing(queues[2], "clara", "other", "same")) {
		t.Errorf("what is said of an id of others differs from what is said of none: %v", err)
	}
	queues[3].WorkOnAll(ok)
	first, err := queues[3].Get("anna", "same")
	if err != nil {
		t.Fatal(err)
	}
	wait(t, queues[3], first.ID)
	second := submit(t, queues[0], "anna", core.Job{Name: "same"})
	if found, err := queues[0].Get("anna", "same"); err != nil || found.ID != second.ID {
		t.Errorf("%+v %v", found, err)
	}
	if _, err := queues[0].SubmitJob("anna", core.Job{Kind: "test", Name: "../x"}, nil); err == nil {
		t.Error("a path is taken for an id")
	}
}

// missing returns the queue's error for an unknown job id, with the argument as in place of the id. Tests use it to
// compare the errors for two different ids.
func missing(q *Queue, principal, id, as string) error {
	_, err := q.Get(principal, id)
	e := *core.AsError(err)
	e.Message = fmt.Sprintf("there is no job %q", as)
	return &e
}
