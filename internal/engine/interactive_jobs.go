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

// TaskJob returns a Job that performs an agent task. It ignores t.Progress, because the JobState reports progress.
func TaskJob(t Task) (Job, error) { return core.TaskJob(t) }

// ExecuteTask performs an agent task when its turn in the queue comes. A model writes a program with the tools
// that were found. The program is checked and run; if it fails, the model corrects it. Without a model the Outcome
// holds a core.TaskContext for the caller, who writes the program. Like that of Execute, the Outcome may be
// pending; Resume then continues the task. If ctx ends, the task is cancelled. The task enters the same queue as
// jobs of Submit. An exception is that another engine with the same data directory works on that queue. Only this
// engine can reach the caller that waits for the Outcome, so it then performs the task itself.
func (e *Engine) ExecuteTask(ctx context.Context, t Task) Outcome {
	q, err := e.jobs.open()
	if err == nil && q.TryOwn() {
		return e.logOutcome("performed an agent task", e.runQueued(ctx, q, t))
	}
	free, refused := e.reserveTaskID(q, t.ID)
	if refused != nil {
		return e.logOutcome("performed an agent task", Outcome{Task: t.ID, Status: core.StatusRejected, Error: refused})
	}
	defer free()
	ctx, stop := deadline.WhilePermitted(e.pipeline.WithPolicyPermit(ctx))
	defer stop()
	o := e.logOutcome("performed an agent task", e.orchestrator().Run(ctx, t))
	if err != nil {
		o.Warnings = append(o.Warnings, "the agent task ran without the queue: "+core.AsError(err).Message)
	}
	return o
}

// reserveTaskID reserves the id of a task that runs without the queue, until free is called. It fails if an
// unfinished task of the same principal has that id, in the queue or in this engine.
func (e *Engine) reserveTaskID(q *jobs.Queue, id string) (free func(), refused *core.Error) {
	principal := e.pipeline.Policy.Principal()
	if q != nil && id != "" {
		if s, err := q.Get(principal, id); err == nil && s.Principal == principal && !s.Status.HasEnded() {
			return nil, jobs.NameTaken(id)
		}
	}
	one := &unqueuedTask{principal, id}
	queue := e.jobs
	queue.mu.Lock()
	defer queue.mu.Unlock()
	for other := range queue.unqueued {
		if id != "" && *other == *one {
			return nil, jobs.NameTaken(id)
		}
	}
	queue.unqueued[one] = true
	return func() {
		queue.mu.Lock()
		defer queue.mu.Unlock()
		delete(queue.unqueued, one)
	}, nil
}

// unqueuedTask identifies an agent task that runs without the queue, by its principal and id. The id is empty if
// the caller gave none.
type unqueuedTask struct{ principal, id string }

// interactiveJob represents an agent task in the queue whose caller waits for it. The task can use what the caller's
// request offers, such as a model and a person to ask.
type interactiveJob struct {
	caller   atomic.Pointer[context.Context] // context of the request that waits now, or nil
	progress func(core.TaskStep)             // reports progress to the first request
	interim  chan Outcome                    // receives a pending Outcome; the task continues with the next resumption
	resume   chan resumption
	id       string        // ID of the job
	ended    chan struct{} // closed when the job has ended
}

// resumption represents a request to continue a task that waits for a person.
type resumption struct {
	ctx      context.Context
	patience time.Duration // how long to wait for the person
}

type interactiveJobKey struct{}

// callerContext is the context of a job, with the values of the request that currently waits for it. Deadline and
// cancellation are those of the job.
type callerContext struct {
	context.Context
	job *interactiveJob
}

func (c callerContext) Value(key any) any {
	if key == (interactiveJobKey{}) {
		return c.job
	}
	if v := c.Context.Value(key); v != nil {
		return v
	}
	if caller := c.job.caller.Load(); caller != nil {
		return (*caller).Value(key)
	}
	return nil
}

// runQueued puts a task into the queue and waits for its Outcome, or for its first pending approval.
func (e *Engine) runQueued(ctx context.Context, q *jobs.Queue, t Task) Outcome {
	a, err := e.submitInteractive(ctx, q, t)
	if err == nil {
		err = e.WorkOn(a.id)
	}
	if err != nil {
		return Outcome{ExecutionID: a.id, Task: t.ID, Status: core.StatusRejected, Error: core.AsError(err)}
	}
	const early = 300 * time.Millisecond
	report := time.AfterFunc(early, func() {
		if s, err := e.Task(a.id); err == nil && s.Status == core.TaskQueued && t.Progress != nil {
			t.Progress(core.TaskStep{Phase: core.PhaseQueue, Text: fmt.Sprintf("waiting in the queue at position %d", s.Position)})
		}
	})
	defer report.Stop()
	return e.waitForOutcome(ctx, a)
}

// submitInteractive puts a task into the queue. The job keeps the Permit in ctx, which limits how long the engine
// may work for the principal, even after its caller has stopped waiting.
func (e *Engine) submitInteractive(ctx context.Context, q *jobs.Queue, t Task) (*interactiveJob, error) {
	a := &interactiveJob{
		progress: t.Progress, interim: make(chan Outcome, 1), resume: make(chan resumption), ended: make(chan struct{}),
	}
	a.caller.Store(&ctx)
	j, err := TaskJob(t)
	if err != nil {
		return a, err
	}
	permit := core.PermitOf(ctx)
	j.Credential, j.Groups = permit.Credential, e.pipeline.Policy.Groups()
	state, err := q.SubmitJob(e.pipeline.Policy.Principal(), j, func(job context.Context) context.Context {
		return core.WithPermit(callerContext{job, a}, permit)
	})
	a.id = state.ID
	return a, err
}

// waitForOutcome waits for the Outcome of a task, or for its next pending approval. If ctx ends, it cancels the task.
func (e *Engine) waitForOutcome(ctx context.Context, a *interactiveJob) Outcome {
	waiting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan JobState, 1)
	go func() {
		s, err := e.WaitTask(waiting, a.id)
		if err != nil {
			s = JobState{Outcome: &Outcome{ExecutionID: a.id, Status: core.StatusError, Error: core.AsError(err)}}
		}
		ended <- s
	}()
	defer a.caller.Store(nil)
	select {
	case o := <-a.interim:
		return o
	case s := <-ended:
		return jobOutcome(s)
	case <-ctx.Done():
	}
	s, err := e.CancelTask(context.WithoutCancel(ctx), a.id)
	if err != nil { // it has ended meanwhile
		s = <-ended
	}
	return jobOutcome(s)
}

func jobOutcome(s JobState) Outcome {
	if s.Outcome != nil {
		return *s.Outcome
	}
	return Outcome{ExecutionID: s.ID, Status: core.StatusCancelled, Error: core.Errorf(
		core.KindCancelled, "retort.tasks", "the agent task was cancelled, but has not ended yet",
	).
		WithHint("run retort tasks show %s to see when it has ended", s.ID)}
}

// runAgentTask performs an agent task from the queue.
func (e *Engine) runAgentTask(ctx context.Context, t *jobs.JobTurn) Outcome {
	var task core.AgentTask
	if err := json.Unmarshal(t.Payload, &task); err != nil {
		return failedJob(t.Task, core.Errorf(core.KindInvalidArguments, "retort.tasks", "the agent task cannot be read: %w", err))
	}
	task.ID, task.Job = cmp.Or(task.ID, t.Task.ID), t.Task.ID
	a, _ := ctx.Value(interactiveJobKey{}).(*interactiveJob)
	var steps atomic.Int64
	task.Progress = func(s core.TaskStep) {
		t.SetProgress(core.TaskProgress{Done: int(steps.Add(1)), Message: string(s.Phase) + ": " + s.Text})
		if a != nil && a.progress != nil && a.caller.Load() != nil {
			a.progress(s)
		}
	}
	o := e.orchestrator().Run(ctx, task)
	if a == nil {
		return e.waitForApproval(ctx, t, o)
	}
	defer close(a.ended)
	return e.resumeUntilEnd(ctx, t, a, o)
}

// resumeUntilEnd hands each pending Outcome to the caller and continues the task with each resumption, until the
// Outcome is no longer pending. The task gives up its slot in the queue while it waits.
func (e *Engine) resumeUntilEnd(ctx context.Context, t *jobs.JobTurn, a *interactiveJob, o Outcome) Outcome {
	for o.Status == core.StatusPendingApproval && ctx.Err() == nil {
		execution := o.ExecutionID
		t.SetWaiting(true)
		e.jobs.setResumable(execution, a)
		a.interim <- o
		select {
		case <-ctx.Done():
		case r := <-a.resume:
			own, done := context.WithCancel(ctx)
			unbind := context.AfterFunc(r.ctx, done)
			free := e.releaseSlotWhileWaiting(t, execution)
			o = e.orchestrator().Resume(own, execution, r.patience)
			free()
			unbind()
			done()
		}
		e.jobs.takeResumable(execution)
	}
	t.SetWaiting(false)
	return e.cancelPending(o)
}

// releaseSlotWhileWaiting gives the task's slot in the queue to other jobs whenever its program waits for a person,
// and takes a slot again afterwards. It runs in the background until free is called.
func (e *Engine) releaseSlotWhileWaiting(t *jobs.JobTurn, execution string) (free func()) {
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

// setResumable registers a job whose execution is pending, under the id of that execution, so that the job can be
// resumed.
func (q *jobQueue) setResumable(execution string, a *interactiveJob) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.interactive[execution] = a
}

// takeResumable removes and returns the job that was registered for a pending execution, or nil.
func (q *jobQueue) takeResumable(execution string) *interactiveJob {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.interactive[execution]
	delete(q.interactive, execution)
	return a
}

// resumeTask continues the task whose pending execution has this id, and waits for its Outcome. It returns false if
// the principal has no such task.
func (e *Engine) resumeTask(ctx context.Context, execution string, patience time.Duration) (Outcome, bool) {
	if !e.orchestrator().IsWaiting(execution) {
		return Outcome{}, false
	}
	a := e.jobs.takeResumable(execution)
	if a == nil {
		return Outcome{}, false
	}
	a.caller.Store(&ctx)
	select {
	case a.resume <- resumption{ctx, patience}:
	case <-a.ended:
	}
	return e.waitForOutcome(context.WithoutCancel(ctx), a), true // the job knows what it means that ctx ends
}
