package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"retort/internal/base/deadline"
	"retort/internal/core"
	"retort/internal/jobs"
)

// TaskJob returns a Job that performs an agent task. It ignores t.Progress: the JobState reports progress.
func TaskJob(t Task) (Job, error) { return core.TaskJob(t) }

// ExecuteTask performs an agent task when its turn in the queue comes. A model writes a program with the tools that
// were found. The program is checked and run, and goes back to the model if it fails. Without a model the Outcome
// holds a Pack for the caller, who writes the program. Like that of Execute, the Outcome may be pending; Resume then
// continues the task. If ctx ends, the task is cancelled.
//
// The task enters the same queue as jobs of Submit, unless another engine with the same data directory works on that
// queue. Only this engine can reach the caller that waits for the Outcome, so it then performs the task itself.
func (e *Engine) ExecuteTask(ctx context.Context, t Task) Outcome {
	q, err := e.line.queue()
	if err == nil && q.TryOwn() {
		return e.logged("performed an agent task", e.attachTask(ctx, q, t))
	}
	free, refused := e.holdTask(q, t.ID)
	if refused != nil {
		return e.logged("performed an agent task", Outcome{Task: t.ID, Status: core.StatusRejected, Error: refused})
	}
	defer free()
	ctx, stop := deadline.WhilePermitted(e.pipeline.WithPolicyPermit(ctx))
	defer stop()
	o := e.logged("performed an agent task", e.orchestrator().Run(ctx, t))
	if err != nil {
		o.Warnings = append(o.Warnings, "the agent task ran without the queue: "+core.AsError(err).Message)
	}
	return o
}

// holdTask registers a task that is performed without the queue, until free is called. It refuses an ID that an
// unfinished task of the same principal already has, in the queue or in this engine.
func (e *Engine) holdTask(q *jobs.Queue, id string) (free func(), refused *core.Error) {
	principal := e.pipeline.Policy.Principal()
	if q != nil && id != "" {
		if s, err := q.Get(principal, id); err == nil && s.Principal == principal && !s.Status.HasEnded() {
			return nil, jobs.NameTaken(id)
		}
	}
	one := &directTask{principal, id}
	l := e.line
	l.mu.Lock()
	defer l.mu.Unlock()
	for other := range l.direct {
		if id != "" && *other == *one {
			return nil, jobs.NameTaken(id)
		}
	}
	if l.direct == nil {
		l.direct = map[*directTask]bool{}
	}
	l.direct[one] = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.direct, one)
	}, nil
}

// directTask identifies a task that is performed without the queue. Its id is empty if the caller gave none.
type directTask struct{ principal, id string }

// attached represents a task in the queue whose caller waits for it. The task can use what the caller's request offers: a
// model, a person to ask.
type attached struct {
	caller   atomic.Pointer[context.Context] // of the request that waits now, or nil
	progress func(core.TaskStep)             // of the first
	said     chan Outcome                    // holds one: the task is pending, and goes on with the next resumption
	goOn     chan resumption
	task     string
	ended    chan struct{} // closed when the job has been done
}

// resumption represents a request to continue a task that waits for a person.
type resumption struct {
	ctx      context.Context
	patience time.Duration
}

type attachedKey struct{}

// borrowed is the context of a job, with the values of the request that currently waits for it. Deadline and
// cancellation are those of the job.
type borrowed struct {
	context.Context
	from *attached
}

func (b borrowed) Value(key any) any {
	if key == (attachedKey{}) {
		return b.from
	}
	if v := b.Context.Value(key); v != nil {
		return v
	}
	if caller := b.from.caller.Load(); caller != nil {
		return (*caller).Value(key)
	}
	return nil
}

// attachTask puts a task into the queue and waits for it.
func (e *Engine) attachTask(ctx context.Context, q *jobs.Queue, t Task) Outcome {
	a := &attached{progress: t.Progress, said: make(chan Outcome, 1), goOn: make(chan resumption), ended: make(chan struct{})}
	a.caller.Store(&ctx)
	permit := core.PermitOf(ctx)
	j, err := TaskJob(t)
	if err == nil {
		j.Credential = permit.Credential
		var state JobState
		state, err = q.SubmitJob(e.pipeline.Policy.Principal(), j, func(job context.Context) context.Context {
			return core.WithPermit(borrowed{job, a}, permit) // also when nobody waits any more
		})
		a.task = state.ID
	}
	if err == nil {
		err = e.WorkOn(a.task)
	}
	if err != nil {
		return Outcome{ExecutionID: a.task, Task: t.ID, Status: core.StatusRejected, Error: core.AsError(err)}
	}
	const early = 300 * time.Millisecond
	told := time.AfterFunc(early, func() {
		if s, err := e.Task(a.task); err == nil && s.Status == core.TaskQueued && t.Progress != nil {
			t.Progress(core.TaskStep{Phase: core.PhaseQueue, Text: fmt.Sprintf("waiting in the queue at position %d", s.Position)})
		}
	})
	defer told.Stop()
	return e.follow(ctx, a)
}

// follow waits for the Outcome of a task, or for its next pending approval. If ctx ends, it cancels the task.
func (e *Engine) follow(ctx context.Context, a *attached) Outcome {
	waiting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan JobState, 1)
	go func() {
		s, err := e.WaitTask(waiting, a.task)
		if err != nil {
			s = JobState{Outcome: &Outcome{ExecutionID: a.task, Status: core.StatusError, Error: core.AsError(err)}}
		}
		ended <- s
	}()
	defer a.caller.Store(nil)
	select {
	case o := <-a.said:
		return o
	case s := <-ended:
		return outcomeOf(s)
	case <-ctx.Done():
	}
	s, err := e.CancelTask(context.WithoutCancel(ctx), a.task)
	if err != nil { // it has ended meanwhile
		s = <-ended
	}
	return outcomeOf(s)
}

func outcomeOf(s JobState) Outcome {
	if s.Outcome != nil {
		return *s.Outcome
	}
	return Outcome{ExecutionID: s.ID, Status: core.StatusCancelled, Error: core.Errorf(
		core.KindCancelled, "retort.tasks", "the agent task was cancelled, but has not ended yet",
	).
		WithHint("run retort tasks show %s to see when it has ended", s.ID)}
}

// does returns the function that performs an agent task from the queue.
func (e *Engine) does() jobs.RunFunc {
	return func(ctx context.Context, t *jobs.JobTurn) Outcome {
		var task core.AgentTask
		if err := json.Unmarshal(t.Payload, &task); err != nil {
			return failedTask(t.Task, core.Errorf(core.KindInvalidArguments, "retort.tasks", "the agent task cannot be read: %w", err))
		}
		task.ID, task.Job = cmp.Or(task.ID, t.Task.ID), t.Task.ID
		a, _ := ctx.Value(attachedKey{}).(*attached)
		var steps atomic.Int64
		task.Progress = func(s core.TaskStep) {
			t.SetProgress(core.TaskProgress{Done: int(steps.Add(1)), Message: string(s.Phase) + ": " + s.Text})
			if a != nil && a.progress != nil && a.caller.Load() != nil {
				a.progress(s)
			}
		}
		o := e.orchestrator().Run(ctx, task)
		if a == nil {
			return e.attended(ctx, t, o)
		}
		defer close(a.ended)
		return e.resumed(ctx, t, a, o)
	}
}

// resumed hands each pending Outcome to the caller and continues the task with each resumption, until it is no longer
// pending. The task gives up its slot in the queue while it waits.
func (e *Engine) resumed(ctx context.Context, t *jobs.JobTurn, a *attached, o Outcome) Outcome {
	for o.Status == core.StatusPendingApproval && ctx.Err() == nil {
		execution := o.ExecutionID
		t.SetWaiting(true)
		e.line.waits(execution, a)
		a.said <- o
		select {
		case <-ctx.Done():
		case r := <-a.goOn:
			own, done := context.WithCancel(ctx)
			unbind := context.AfterFunc(r.ctx, done)
			free := e.places(t, execution)
			o = e.orchestrator().Resume(own, execution, r.patience)
			free()
			unbind()
			done()
		}
		e.line.waits(execution, nil)
	}
	t.SetWaiting(false)
	return e.unattended(o)
}

// places releases the task's slot in the queue while its program waits for a person, and takes it back afterwards. It
// does so until free is called.
func (e *Engine) places(t *jobs.JobTurn, execution string) (free func()) {
	const often = 50 * time.Millisecond
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(often)
		defer tick.Stop()
		for {
			t.SetWaiting(len(e.pipeline.Approvals.Table.ListWaiting(execution)) > 0)
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	return func() { close(stop); <-done }
}

// waits registers a as the task that waits with this execution. A nil a removes the entry.
func (l *line) waits(execution string, a *attached) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a == nil {
		delete(l.attached, execution)
		return
	}
	if l.attached == nil {
		l.attached = map[string]*attached{}
	}
	l.attached[execution] = a
}

// take removes and returns the task that waits with this execution, or nil.
func (l *line) take(execution string) *attached {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.attached[execution]
	delete(l.attached, execution)
	return a
}

// resumeTask continues the task that waits with this execution. It returns false if the principal has no such task.
func (e *Engine) resumeTask(ctx context.Context, execution string, patience time.Duration) (Outcome, bool) {
	if !e.orchestrator().IsWaiting(execution) {
		return Outcome{}, false
	}
	a := e.line.take(execution)
	if a == nil {
		return Outcome{}, false
	}
	a.caller.Store(&ctx)
	select {
	case a.goOn <- resumption{ctx, patience}:
	case <-a.ended:
	}
	return e.follow(context.WithoutCancel(ctx), a), true // the job knows what it means that ctx ends
}
