package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"retort/internal/core"
	"retort/internal/devel/testenv"
)

func options(dir string) Options {
	return Options{Dir: filepath.Join(dir, "queue"), Marks: filepath.Join(dir, "own"), Key: func() ([]byte, error) { return bytes.Repeat([]byte{7}, 32), nil }}
}

func open(t *testing.T, o Options) *Queue {
	t.Helper()
	q, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	return q
}

func submit(t *testing.T, q *Queue, principal string, j core.Job) core.JobState {
	t.Helper()
	if j.Kind == "" {
		j.Kind = "test"
	}
	task, err := q.SubmitJob(principal, j, nil)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func wait(t *testing.T, q *Queue, id string) core.JobState {
	t.Helper()
	task, err := q.WaitEnd(testenv.Context(t), "", id)
	if err != nil || !task.Status.HasEnded() {
		t.Fatalf("%+v, %v", task, err)
	}
	return task
}

func ok(_ context.Context, t *JobTurn) core.Outcome {
	return core.Outcome{ExecutionID: t.Task.ID, Status: core.StatusOK, Result: t.Payload}
}

func status(q *Queue, id string) core.TaskStatus {
	task, _ := q.Get("", id)
	return task.Status
}

func TestRuns(t *testing.T) {
	q := open(t, options(t.TempDir()))
	task := submit(t, q, "", core.Job{Payload: []byte(`{"a":9007199254740993}`), Title: "p.ts"})
	if task.Status != core.TaskQueued || task.Position != 1 {
		t.Errorf("%+v", task)
	}
	q.WorkOnAll(ok)
	if task = wait(t, q, task.ID); task.Status != "ok" || string(task.Outcome.Result) != `{"a":9007199254740993}` || task.Session != "default" {
		t.Errorf("%+v", task)
	}
	files, _ := filepath.Glob(filepath.Join(q.o.Dir, "*"))
	for _, name := range files {
		if text, _ := os.ReadFile(name); bytes.Contains(text, []byte("90071")) || bytes.Contains(text, []byte("p.ts")) {
			t.Errorf("%s can be read", name)
		}
	}
}

// gated runs jobs that end only when the test signals it. It records the order in which the jobs begin.
type gated struct {
	mu    sync.Mutex
	begun []string // principals of the jobs in the order in which they began
	next  chan struct{}
}

func (g *gated) run(ctx context.Context, t *JobTurn) core.Outcome {
	g.mu.Lock()
	g.begun = append(g.begun, t.Task.Principal)
	g.mu.Unlock()
	select {
	case <-g.next:
		return core.Outcome{Status: core.StatusOK}
	case <-ctx.Done():
		return core.Outcome{Status: core.StatusCancelled}
	}
}

func (g *gated) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.begun)
}

// TestFairness checks that the many jobs of one principal delay another principal's first job by at most one job. If
// there are several slots, they must not delay it at all.
func TestFairness(t *testing.T) {
	for _, slots := range []int{1, 4} {
		t.Run(fmt.Sprint(slots), func(t *testing.T) {
			o := options(t.TempDir())
			o.Slots = slots
			q, g := open(t, o), &gated{next: make(chan struct{})}
			for range 100 {
				submit(t, q, "greedy", core.Job{Priority: maxPriority})
			}
			q.WorkOnAll(g.run)
			taken := max(1, slots-1)
			testenv.WaitUntil(t, "the first has begun", func() bool { return g.count() == taken })
			submit(t, q, "modest", core.Job{})
			submit(t, q, "modest", core.Job{})
			if slots == 1 {
				g.next <- struct{}{}
			}
			testenv.WaitUntil(t, "the modest one has begun", func() bool { return g.count() == taken+1 })
			if g.begun[taken] != "modest" {
				t.Fatalf("began: %v", g.begun)
			}
			for range 3 { // and then in turn
				g.next <- struct{}{}
			}
			testenv.WaitUntil(t, "the next have begun", func() bool { return g.count() == taken+4 })
			if modest := strings.Count(strings.Join(g.begun[taken:], " "), "modest"); modest != 2 {
				t.Errorf("began: %v", g.begun)
			}
		})
	}
}

func TestPriority(t *testing.T) {
	o := options(t.TempDir())
	o.Slots = 1
	q := open(t, o)
	var mu sync.Mutex
	var order []string
	titles := []string{"b", "c", "a", "d"}
	for i, p := range []int{0, 0, 5, -1} {
		submit(t, q, "", core.Job{Title: titles[i], Priority: p})
	}
	all, _, _ := q.ListJobs("")
	if all[2].Position != 1 || all[3].Position != 4 {
		t.Errorf("%+v", all)
	}
	q.WorkOnAll(func(_ context.Context, t *JobTurn) core.Outcome {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, t.Task.Title)
		return core.Outcome{Status: core.StatusOK}
	})
	for _, task := range all {
		wait(t, q, task.ID)
	}
	if got := strings.Join(order, ""); got != "abcd" {
		t.Error(got)
	}
}

func TestFull(t *testing.T) {
	o := options(t.TempDir())
	o.Waiting = 2
	q := open(t, o)
	submit(t, q, "anna", core.Job{})
	submit(t, q, "anna", core.Job{})
	_, err := q.SubmitJob("anna", core.Job{Kind: "test"}, nil)
	if e := core.AsError(err); e == nil || e.Kind != core.KindLimit || !strings.Contains(e.Message, "2 of your jobs") || !strings.Contains(e.Hint, "again in about") {
		t.Errorf("%v", err)
	}
	submit(t, q, "berta", core.Job{})
	for _, bad := range []core.Job{{}, {Kind: "test", Priority: 11}, {Kind: "test", Deadline: -1}, {Kind: "test", Payload: bytes.Repeat([]byte("1"), maxPayload+1)}} {
		if _, err := q.SubmitJob("", bad, nil); err == nil {
			t.Errorf("%.100v is taken", bad)
		}
	}
}

func TestForeign(t *testing.T) {
	q := open(t, options(t.TempDir()))
	task := submit(t, q, "anna", core.Job{})
	_, err := q.Get("berta", task.ID)
	_, none := q.Get("berta", "none")
	if err == nil || strings.ReplaceAll(err.Error(), task.ID, "none") != none.Error() {
		t.Errorf("%v, %v", err, none)
	}
	if _, err := q.CancelJob(t.Context(), "berta", task.ID); err == nil || status(q, task.ID) != core.TaskQueued {
		t.Errorf("%v, %s", err, status(q, task.ID))
	}
	if all, _, _ := q.ListJobs("berta"); len(all) != 0 {
		t.Errorf("%v", all)
	}
}

// TestCancel checks that a job can be cancelled in any state, and that it then stays cancelled.
func TestCancel(t *testing.T) {
	o := options(t.TempDir())
	q := open(t, o)
	cancel := func(id string) core.JobState {
		t.Helper()
		task, err := q.CancelJob(t.Context(), "", id)
		if err != nil || task.Status != "cancelled" || task.Ended.IsZero() {
			t.Fatalf("%+v, %v", task, err)
		}
		if again, err := q.CancelJob(t.Context(), "", id); err == nil || again.Status != "cancelled" {
			t.Errorf("%v, %v", again, err)
		}
		return task
	}
	before := submit(t, q, "", core.Job{})
	cancel(before.ID) // nobody works
	var ran sync.Map
	q.WorkOnAll(func(ctx context.Context, turn *JobTurn) core.Outcome {
		ran.Store(turn.Task.ID, true)
		switch turn.Task.Title {
		case "person":
			turn.SetWaiting(true)
			<-ctx.Done()
			return core.Outcome{Status: core.StatusPendingApproval, Approvals: []core.Approval{{ID: "a"}}}
		case "stubborn":
			<-ctx.Done()
			return core.Outcome{Status: core.StatusOK}
		}
		<-ctx.Done()
		return core.Outcome{Status: core.StatusCancelled}
	})
	testenv.WaitUntil(t, "the queue is owned", q.IsOwner)
	for _, title := range []string{"runs", "stubborn", "person"} {
		task := submit(t, q, "", core.Job{Title: title})
		want := core.TaskRunning
		if title == "person" {
			want = core.TaskPending
		}
		testenv.WaitUntil(t, title+" runs", func() bool { _, is := ran.Load(task.ID); return is && status(q, task.ID) == want })
		if o := cancel(task.ID).Outcome; title == "stubborn" && o.Status != core.StatusOK || title == "person" && (o.Status != core.StatusCancelled || o.Approvals != nil) {
			t.Errorf("%s: %+v", title, o)
		}
	}
	if _, is := ran.Load(before.ID); is {
		t.Error("what was cancelled before ran")
	}
	_ = q.Close()
	again := open(t, o)
	if status(again, before.ID) != "cancelled" {
		t.Error(status(again, before.ID))
	}
}

// TestPending checks that a job that waits for a person's decision does not keep other jobs from running.
func TestPending(t *testing.T) {
	o := options(t.TempDir())
	o.Slots = 1
	q := open(t, o)
	yes := make(chan struct{})
	q.WorkOnAll(func(_ context.Context, turn *JobTurn) core.Outcome {
		if turn.Task.Title == "person" {
			turn.SetWaiting(true)
			<-yes
			turn.SetWaiting(false)
		}
		return core.Outcome{Status: core.StatusOK}
	})
	first := submit(t, q, "", core.Job{Title: "person"})
	testenv.WaitUntil(t, "the first is pending", func() bool { return status(q, first.ID) == core.TaskPending })
	second := submit(t, q, "", core.Job{})
	wait(t, q, second.ID)
	close(yes)
	wait(t, q, first.ID)
	if q.turns.total != 0 || len(q.turns.running) != 0 {
		t.Errorf("%+v", q.turns)
	}
}

func TestDeadline(t *testing.T) { synctest.Test(t, endAtDeadlines) }

func endAtDeadlines(t *testing.T) {
	q := open(t, options(t.TempDir()))
	late := submit(t, q, "", core.Job{Deadline: time.Nanosecond})
	slow := submit(t, q, "", core.Job{Deadline: time.Minute})
	time.Sleep(time.Microsecond)
	q.WorkOnAll(func(ctx context.Context, _ *JobTurn) core.Outcome {
		<-ctx.Done()
		return core.Outcome{Status: core.StatusCancelled}
	})
	for _, id := range []string{late.ID, slow.ID} {
		if task := wait(t, q, id); task.Status != "timeout" || !strings.Contains(task.Outcome.Error.Message, "deadline") {
			t.Errorf("%+v", task)
		}
	}
	if task, _ := q.Get("", late.ID); !task.Begun.IsZero() {
		t.Error("it began after its deadline")
	}
	if task, _ := q.Get("", slow.ID); task.Begun.IsZero() || !task.Ended.Equal(task.Deadline) {
		t.Errorf("it ran from %v to %v, its deadline is %v", task.Begun, task.Ended, task.Deadline)
	}
}

// TestRestart checks that closing a queue cancels its running job. A queue that is opened later must run the job that
// was waiting.
func TestRestart(t *testing.T) {
	o := options(t.TempDir())
	o.Slots = 1
	q := open(t, o)
	first := submit(t, q, "", core.Job{})
	second := submit(t, q, "", core.Job{Payload: []byte(`2`)})
	began := make(chan struct{})
	q.WorkOnAll(func(ctx context.Context, _ *JobTurn) core.Outcome {
		close(began)
		<-ctx.Done()
		return core.Outcome{Status: core.StatusCancelled}
	})
	<-began
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, o)
	if status(again, first.ID) != "cancelled" || status(again, second.ID) != core.TaskQueued {
		t.Errorf("%s, %s", status(again, first.ID), status(again, second.ID))
	}
	again.WorkOnAll(ok)
	if task := wait(t, again, second.ID); string(task.Outcome.Result) != "2" {
		t.Errorf("%+v", task)
	}
}

// TestWorkOn checks that WorkOn runs only the jobs whose ids it is given. Other jobs must stay queued even after those
// jobs have ended.
func TestWorkOn(t *testing.T) {
	o := options(t.TempDir())
	o.Slots = 1
	q := open(t, o)
	first, second := submit(t, q, "", core.Job{}), submit(t, q, "", core.Job{})
	q.WorkOn(second.ID, ok)
	wait(t, q, second.ID)
	third := submit(t, q, "", core.Job{})
	q.WorkOn(third.ID, ok) // first is ahead of it in the queue
	wait(t, q, third.ID)
	if status(q, first.ID) != core.TaskQueued {
		t.Error(status(q, first.ID))
	}
	q.WorkOnAll(ok)
	wait(t, q, first.ID)
}

// TestClosedBeforeItBegan closes a queue while a job is about to begin. It checks that the job stays queued, and that
// a queue opened later runs it.
func TestClosedBeforeItBegan(t *testing.T) {
	o := options(t.TempDir())
	q := open(t, o)
	task := submit(t, q, "", core.Job{Payload: []byte(`1`)})
	q.mu.Lock()
	e := q.tasks[task.ID]
	q.mu.Unlock()
	for _, late := range []bool{false, true} {
		turn := &JobTurn{queue: q, entry: e}
		if !late {
			q.stop()
		} else {
			q.ctx, q.stop = context.WithCancel(context.Background())
			q.o.Record = func(core.AuditEvent, bool) *core.Error { q.stop(); return nil }
		}
		if o, err := q.prepareJob(t.Context(), turn); o != nil || err == nil || q.shelf.hasBegun(task.ID) {
			t.Errorf("%+v, %v", o, err)
		}
	}
	_ = q.Close()
	q = open(t, o)
	q.WorkOnAll(ok)
	if task := wait(t, q, task.ID); string(task.Outcome.Result) != "1" {
		t.Errorf("%+v", task)
	}
}

// TestMarkedJobIsNotRun checks that a job with a mark that it has begun is not run, even if its file says that it is
// queued. Mark and file differ if an engine dies after writing the mark, or if a person restores an older copy of the
// file. The mark must also be respected if it is written after this engine has taken over the queue.
func TestMarkedJobIsNotRun(t *testing.T) {
	for _, marked := range []string{"before the queue is taken over", "afterwards"} {
		q := open(t, options(t.TempDir()))
		task := submit(t, q, "", core.Job{})
		if marked == "afterwards" && !q.TryOwn() {
			t.Fatal("another queue owns the folder")
		}
		if err := q.shelf.markBegun(task.ID); err != nil {
			t.Fatal(err)
		}
		q.WorkOnAll(func(context.Context, *JobTurn) core.Outcome {
			t.Errorf("marked %s: the job ran", marked)
			return core.Outcome{Status: core.StatusOK}
		})
		if task := wait(t, q, task.ID); task.Status != core.TaskStatus(core.StatusOutcomeUnknown) {
			t.Errorf("marked %s: %+v", marked, task)
		}
	}
}

// TestTwoEngines checks that only one engine runs jobs, while others can submit, wait and cancel. When the first
// engine ends, another one must take over.
func TestTwoEngines(t *testing.T) { synctest.Test(t, twoEngines) }

func twoEngines(t *testing.T) {
	o := options(t.TempDir())
	o.Slots = 1
	one, two := open(t, o), open(t, o)
	g := &gated{next: make(chan struct{})}
	one.WorkOnAll(g.run)
	testenv.WaitUntil(t, "the queue is owned", one.IsOwner)
	two.WorkOnAll(ok)
	first := submit(t, two, "", core.Job{})
	testenv.WaitUntil(t, "the first has begun", func() bool { return g.count() == 1 })
	second := submit(t, two, "", core.Job{})
	third := submit(t, two, "", core.Job{Payload: []byte(`3`)})
	if !two.IsAttended() || two.IsOwner() {
		t.Error("two have it")
	}
	if task, err := two.CancelJob(t.Context(), "", second.ID); err != nil || task.Status != "cancelled" {
		t.Errorf("%+v, %v", task, err)
	}
	if task, err := two.CancelJob(t.Context(), "", first.ID); err != nil || task.Status != "cancelled" {
		t.Errorf("%+v, %v", task, err)
	}
	_ = one.Close() // the third has begun there, or not
	if task := wait(t, two, third.ID); task.Status != "ok" && task.Status != "cancelled" {
		t.Errorf("%+v", task)
	}
	testenv.WaitUntil(t, "the other owns the queue", two.IsOwner)
	fourth := submit(t, two, "", core.Job{Payload: []byte(`4`)})
	if task := wait(t, two, fourth.ID); string(task.Outcome.Result) != "4" {
		t.Errorf("%+v", task)
	}
}

// TestDamaged checks that a job file that cannot be read is neither run nor removed, and that it does not affect other
// jobs.
func TestDamaged(t *testing.T) {
	o := options(t.TempDir())
	q := open(t, o)
	bad, other, good := submit(t, q, "", core.Job{}), submit(t, q, "", core.Job{}), submit(t, q, "", core.Job{})
	_ = q.Close()
	path := func(id string) string { return filepath.Join(o.Dir, id+jobSuffix) }
	text, _ := os.ReadFile(path(bad.ID))
	if err := errors.Join(os.WriteFile(path(bad.ID), text[:len(text)-1], 0o600), os.WriteFile(path(other.ID), mustRead(path(good.ID)), 0o600)); err != nil {
		t.Fatal(err)
	}
	q = open(t, o)
	q.WorkOnAll(ok)
	wait(t, q, good.ID)
	if _, err := q.Get("", bad.ID); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Error(err)
	}
	if _, err := q.Get("anna", bad.ID); err == nil || !strings.Contains(err.Error(), "there is no job") {
		t.Error(err)
	}
	all, warnings, err := q.ListJobs("")
	if err != nil || len(all) != 1 || len(warnings) != 2 {
		t.Errorf("%v, %v, %v", all, warnings, err)
	}
	if _, err := os.Stat(path(bad.ID)); err != nil {
		t.Error(err)
	}
	o.Key = func() ([]byte, error) { return bytes.Repeat([]byte{8}, 32), nil }
	_ = q.Close()
	q = open(t, o)
	if all, warnings, err := q.ListJobs(""); err != nil || len(all) != 0 || len(warnings) != 3 {
		t.Errorf("%v, %v, %v", all, warnings, err)
	}
}

func mustRead(path string) []byte {
	text, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	return text
}

// TestBroughtBack checks that restoring an old copy of an ended job's file does not run the job a second time.
func TestBroughtBack(t *testing.T) {
	o := options(t.TempDir())
	q := open(t, o)
	task := submit(t, q, "", core.Job{})
	path := filepath.Join(o.Dir, task.ID+jobSuffix)
	old := mustRead(path)
	runs := 0
	once := func(context.Context, *JobTurn) core.Outcome { runs++; return core.Outcome{Status: core.StatusOK} }
	q.WorkOnAll(once)
	wait(t, q, task.ID)
	_ = q.Close()
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	q = open(t, o)
	q.WorkOnAll(once)
	if task := wait(t, q, task.ID); task.Status != "outcome_unknown" || runs != 1 {
		t.Errorf("%+v, %d", task, runs)
	}
}

// TestUnwritable checks that a job is not queued if it cannot be stored or written to the audit log. It also checks
// that a job does not start if its start cannot be stored.
func TestUnwritable(t *testing.T) { synctest.Test(t, unwritable) }

func unwritable(t *testing.T) {
	o := options(t.TempDir())
	if err := os.WriteFile(o.Marks, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	q := open(t, o)
	ran := make(chan struct{}, 8)
	q.WorkOnAll(func(context.Context, *JobTurn) core.Outcome {
		ran <- struct{}{}
		return core.Outcome{Status: core.StatusOK}
	})
	task := submit(t, q, "", core.Job{})
	testenv.WaitUntil(t, "it waits for a second try", func() bool { q.mu.Lock(); defer q.mu.Unlock(); return q.tasks[task.ID].held })
	if len(ran) != 0 || status(q, task.ID) != core.TaskQueued {
		t.Fatal("it ran")
	}
	if err := os.Remove(o.Marks); err != nil {
		t.Fatal(err)
	}
	wait(t, q, task.ID)

	o = options(t.TempDir())
	q = open(t, o)
	if err := os.WriteFile(o.Dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := q.SubmitJob("", core.Job{Kind: "test"}, nil); err == nil || len(q.tasks) != 0 || q.bytes != 0 {
		t.Errorf("%v, %v", err, q.tasks)
	}
	o = options(t.TempDir())
	o.Record = func(core.AuditEvent, bool) *core.Error {
		return core.Errorf(core.KindInternal, "audit", "the disk is full")
	}
	q = open(t, o)
	if _, err := q.SubmitJob("", core.Job{Kind: "test"}, nil); err == nil || len(q.tasks) != 0 {
		t.Errorf("%v, %v", err, q.tasks)
	}
}

func TestForgets(t *testing.T) {
	o := options(t.TempDir())
	q := open(t, o)
	q.WorkOnAll(ok)
	short := submit(t, q, "", core.Job{Keep: time.Second})
	long := submit(t, q, "", core.Job{Session: "s"})
	wait(t, q, short.ID)
	wait(t, q, long.ID)
	q.mu.Lock()
	now := time.Now()
	q.removeExpired(now)
	q.removeExpired(now.Add(minResultAge + time.Second))
	q.mu.Unlock()
	if _, err := q.Get("", short.ID); err == nil {
		t.Error("it is still there")
	}
	if status(q, long.ID) != "ok" {
		t.Error("the other is not there any more")
	}
	if n, err := q.EraseJobs("", "s", nil); n != 1 || err != nil {
		t.Error(n, err)
	}
	files, _ := filepath.Glob(filepath.Join(o.Dir, "*"+jobSuffix))
	if len(files) != 0 {
		t.Error(files)
	}
}

// TestPlainID checks which ids may be used as names of job files.
func TestPlainID(t *testing.T) {
	for id, want := range map[string]bool{
		"a": true, "0z9": true, strings.Repeat("a", 64): true,
		"": false, strings.Repeat("a", 65): false, "A": false, "a.b": false, "../a": false, "a/b": false, "a b": false, "á": false, "a\n": false,
	} {
		if got := plainID(id); got != want {
			t.Errorf("%q: %v, want %v", id, got, want)
		}
	}
}
