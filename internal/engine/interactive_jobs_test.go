package engine_test

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"retort/internal/agent/model/modeltest"
	"retort/internal/core"
	"retort/internal/devel/demo"
	"retort/internal/devel/testenv"
	"retort/internal/engine"
)

// statesByTitle returns the statuses of an engine's jobs, by title.
func statesByTitle(t *testing.T, e *engine.Engine) map[string]engine.JobState {
	t.Helper()
	all, err := e.Tasks()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]engine.JobState{}
	for _, s := range all {
		if s.Kind != core.JobTask {
			t.Errorf("%+v", s)
		}
		found[s.Title] = s
	}
	return found
}

// TestTaskTakesItsTurn checks that tasks whose callers wait run in turn, that one slot is enough for a task with all
// its programs, and that principals take turns.
func TestTaskTakesItsTurn(t *testing.T) {
	gate := make(chan struct{})
	e := newOffice(t, "maxConcurrentTasks: 1\nprincipals: {anna: {}, berta: {}}", func(n int, a modeltest.ReceivedRequest) modeltest.ScriptedStep {
		if n == 1 {
			<-gate
			return writes(`return nope`)(1, a)
		}
		return writes(`return 'done'`)(1, a)
	})
	var mu sync.Mutex
	var order, waited []string
	var all sync.WaitGroup
	begin := func(principal, title string) {
		all.Go(func() {
			o := e.As(principal).ExecuteTask(t.Context(), engine.Task{Description: title, Progress: func(s engine.TaskStep) {
				mu.Lock()
				defer mu.Unlock()
				if s.Phase == core.PhaseQueue {
					waited = append(waited, title)
				}
			}})
			mu.Lock()
			defer mu.Unlock()
			order = append(order, title)
			if o.Status != core.StatusOK || string(o.Result) != `"done"` {
				t.Errorf("%s: %s %+v", title, o.Status, o.Error)
			}
		})
		testenv.WaitUntil(t, title+" is in the queue", func() bool { _, ok := statesByTitle(t, e.As(principal))[title]; return ok })
	}
	begin("anna", "a1")
	testenv.WaitUntil(t, "the model is asked", func() bool { return len(e.model.Requests()) == 1 })
	begin("anna", "a2")
	begin("anna", "a3")
	begin("berta", "b1")
	if s := statesByTitle(t, e.As("anna")); s["a1"].Status != core.TaskRunning || s["a2"].Status != core.TaskQueued || s["a2"].Position != 1 || s["a3"].Position != 2 || s["a1"].Progress == nil {
		t.Errorf("%+v", s)
	}
	if _, theirs := statesByTitle(t, e.As("anna"))["b1"]; theirs {
		t.Error("a task of another principal is listed")
	}
	testenv.WaitUntil(t, "three tasks have reported that they are queued", func() bool { mu.Lock(); defer mu.Unlock(); return len(waited) == 3 })
	close(gate)
	all.Wait()
	if n := len(e.model.Requests()); n != 5 {
		t.Errorf("asked %d times", n)
	}
	if at := strings.Join(order, " "); !strings.HasPrefix(at, "a1 b1 ") {
		t.Errorf("the greedy principal comes first: %s", at)
	}
}

// TestTaskIsCancelled checks that a task in any state ends when it is cancelled, and when its waiting caller goes
// away.
func TestTaskIsCancelled(t *testing.T) {
	for name, c := range map[string]struct {
		settings string
		step     modeltest.ScriptedStep
		reached  func(*agentSetup, engine.JobState) bool
	}{
		"in the line":              {"maxConcurrentTasks: 1", modeltest.ScriptedStep{}, nil},
		"while the model is asked": {"", modeltest.ScriptedStep{Hang: true}, func(e *agentSetup, _ engine.JobState) bool { return len(e.model.Requests()) > 0 }},
		"while its program runs":   {"", modeltest.ScriptedStep{Text: "```ts\n" + sleepProgram + "\n```"}, func(e *agentSetup, _ engine.JobState) bool { return e.CountRunning() > 0 }},
		"while it waits for a person": {"approval: {autoApproveMedium: false}", modeltest.ScriptedStep{Text: "```ts\n" + create + "\n```"}, func(e *agentSetup, s engine.JobState) bool {
			return s.Status == core.TaskPending && len(e.Waiting(s.ID)) > 0
		}},
	} {
		for _, leaves := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				e := newOfficeWith(t, "provider: openai", c.settings, func(int, modeltest.ReceivedRequest) modeltest.ScriptedStep { return c.step })
				reached := c.reached
				if reached == nil {
					submit(t, e.Engine, engine.Request{Code: sleepProgram})
					testenv.WaitUntil(t, "a program runs", func() bool { return e.CountRunning() > 0 })
					reached = func(_ *agentSetup, s engine.JobState) bool { return s.Status == core.TaskQueued }
				}
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				ended := make(chan engine.Outcome, 1)
				go func() { ended <- e.ExecuteTask(ctx, engine.Task{Description: todo}) }()
				mine := func() (s engine.JobState) {
					all, err := e.Tasks()
					if err != nil {
						t.Fatal(err)
					}
					for _, one := range all {
						if one.Kind == core.JobTask {
							s = one
						}
					}
					return s
				}
				testenv.WaitUntil(t, "the task is in the state to cancel it in", func() bool { s := mine(); return s.ID != "" && reached(e, s) })
				waits := mine().Status == core.TaskPending
				if leaves && !waits {
					leave()
				} else if _, err := e.CancelTask(t.Context(), mine().ID); err != nil {
					t.Fatal(err)
				}
				if o := <-ended; !waits && (o.Error == nil || o.Error.Kind != core.KindCancelled) || waits && o.Status != core.StatusPendingApproval {
					t.Errorf("%s %+v", o.Status, o.Error)
				}
				if s := mine(); s.Status != core.TaskStatus(core.StatusCancelled) || e.effects() != 0 || len(e.Waiting("")) != 0 {
					t.Errorf("%+v, %d effects", s, e.effects())
				}
			})
		}
	}
}

// TestTaskForLater checks that a submitted task runs although no caller waits, continues when a person has answered,
// and frees its slot while it waits.
func TestTaskForLater(t *testing.T) {
	e := newOffice(t, "maxConcurrentTasks: 1\napproval: {autoApproveMedium: false}", writes(create+` throw new Error('a')`, `return 'mended'`))
	j, err := engine.TaskJob(engine.Task{Description: todo})
	if err != nil {
		t.Fatal(err)
	}
	s, err := e.Submit(t.Context(), j)
	if err != nil || s.Title != todo {
		t.Fatalf("%+v, %v", s, err)
	}
	testenv.WaitUntil(t, "a person is asked", func() bool { now, _ := e.Task(s.ID); return now.Status == core.TaskPending })
	if other := finished(t, e.Engine, submit(t, e.Engine, engine.Request{Code: "return 1"}).ID); other.Status != "ok" {
		t.Errorf("%+v", other)
	}
	testenv.WaitUntil(t, "it has ended", func() bool {
		for _, a := range e.Waiting(s.ID) {
			_ = e.Decide(a.ID, a.Digest, engine.Answer{Approve: true})
		}
		now, _ := e.Task(s.ID)
		return now.Status.HasEnded()
	})
	done := finished(t, e.Engine, s.ID)
	if done.Status != "ok" || string(done.Outcome.Result) != `"mended"` || done.Outcome.Attempts != 2 || done.Outcome.Task != s.ID || e.effects() != 1 {
		t.Errorf("%+v %+v, %d effects", done, done.Outcome, e.effects())
	}
}

// TestTaskFindsTheLineFull checks that a task that finds the queue full is refused with an error before anything is
// done for it.
func TestTaskFindsTheLineFull(t *testing.T) {
	e := newOffice(t, "maxConcurrentTasks: 1\ntasks: {waiting: 1}", writes("return 1"))
	submit(t, e.Engine, engine.Request{Code: sleepProgram})
	o := e.ExecuteTask(t.Context(), engine.Task{Description: todo})
	if o.Status != core.StatusRejected || o.Error.Kind != core.KindLimit || len(e.model.Requests()) != 0 {
		t.Errorf("%s %+v", o.Status, o.Error)
	}
}

// TestTaskBesideAnotherEngine checks that a task whose caller waits runs without the queue if another engine works on
// the queue of the data directory.
func TestTaskBesideAnotherEngine(t *testing.T) {
	e := newOffice(t, "maxConcurrentTasks: 1", writes("return 1"))
	submit(t, e.Engine, engine.Request{Code: sleepProgram})
	testenv.WaitUntil(t, "a program runs", func() bool { return e.CountRunning() > 0 })
	other, err := engine.Open(t.Context(), engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: e.home})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if o := other.ExecuteTask(t.Context(), engine.Task{Description: todo}); o.TaskContext == nil {
		t.Errorf("%s %+v", o.Status, o.Error)
	}
}

// TestTaskWaitsForServers checks that a task that starts with the engine finds the tools of servers that are still
// starting.
func TestTaskWaitsForServers(t *testing.T) {
	crm, err := demo.Open("crm")
	if err != nil {
		t.Fatal(err)
	}
	model := modeltest.New(writes(create + ` return 1`))
	t.Cleanup(model.Close)
	answers := make(chan struct{})
	e, err := engine.Open(t.Context(), engine.Config{
		NoFiles: true, Reserve: engine.ReserveNone, Settings: "model: {provider: openai, url: " + model.URL + ", model: scripted}",
		Servers: []engine.Server{{Name: "crm", Dial: func(ctx context.Context) (io.ReadWriteCloser, error) {
			select {
			case <-answers:
				return crm.Dial(ctx)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	var once sync.Once
	o := e.ExecuteTask(t.Context(), engine.Task{Description: todo, Progress: func(s engine.TaskStep) {
		if s.Phase == core.PhaseDiscover && strings.Contains(s.Text, "waiting for crm") {
			once.Do(func() { close(answers) })
		}
	}})
	if o.Status != core.StatusOK || o.Attempts != 1 || !strings.Contains(model.Requests()[0].Last, "createRecord") {
		t.Errorf("%s %+v", o.Status, o.Error)
	}
}
