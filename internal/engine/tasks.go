package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"retort/internal/base/deadline"
	"retort/internal/core"
	"retort/internal/jobs"
	"retort/internal/mcp/server"
)

// The nouns of the queue.
type (
	// Types of the job queue.
	Job        = core.Job        // what somebody wants done when its turn comes
	JobState   = core.JobState   // a Job with what became of it
	TaskStatus = core.TaskStatus // where it stands
	TaskCounts = core.TaskCounts // how many there are
)

// ProgramJob returns a Job that executes a request.
func ProgramJob(r Request) (Job, error) { return core.ProgramJob(r) }

var _ server.TaskEngine = (*Engine)(nil)

// line represents an engine's job queue, opened on first use.
type line struct {
	open func() (*jobs.Queue, error)
	jobs map[string]func(*Engine) jobs.RunFunc // by the kind of the job

	mu       sync.Mutex
	opened   *jobs.Queue
	closed   bool
	attached map[string]*attached // by the execution that waits for a person
	direct   map[*directTask]bool // tasks that are done without the queue
}

// lines prepares the job queue of an engine without opening it.
func (p *parts) lines() {
	p.line = &line{open: func() (*jobs.Queue, error) { return p.OpenQueue(p.home, p.recorder(), p.lostTask) }}
	p.line.jobs = map[string]func(*Engine) jobs.RunFunc{
		core.JobProgram: (*Engine).runs, core.JobTask: (*Engine).does, core.JobPass: (*Engine).passesOn,
	}
	p.onClose(p.line.close)
}

func (l *line) close() error {
	l.mu.Lock()
	l.closed = true
	q := l.opened
	l.mu.Unlock()
	if q == nil {
		return nil
	}
	return q.Close()
}

func (l *line) queue() (*jobs.Queue, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, core.Errorf(core.KindCancelled, "retort.tasks", "the engine is closed")
	}
	var err error
	if l.opened == nil {
		l.opened, err = l.open()
	}
	return l.opened, err
}

// recorder returns the function with which the queue records events in the audit log; nil if the log is disabled.
func (p *parts) recorder() func(core.AuditEvent, bool) *core.Error {
	if p.audit == nil {
		return nil
	}
	return p.audit.Record
}

// lostTask returns the Outcome of a job whose engine died while it ran, with the calls that are known.
func (p *parts) lostTask(t core.JobState) core.Outcome {
	if found := p.lostPrograms(t); found.Status == core.StatusOutcomeUnknown {
		return maskedOutcome(p.secrets, found)
	}
	return LostJob(t)
}

// LostJob returns the Outcome of a job whose engine died while it ran, if its calls are not known.
func LostJob(t core.JobState) core.Outcome {
	o := core.Outcome{ExecutionID: t.ID, Status: core.StatusOutcomeUnknown}
	o.Error = core.Errorf(core.KindInternal, "retort.tasks", "the engine ended while the job was running").
		WithHint(
			"run retort audit query --execution %s to see the calls that were sent; check their effects before you run it again. Retort did not repeat any call",
			t.ID,
		)
	return o
}

// lostPrograms returns the Outcome of the program of a job whose engine died; for an agent task, that of all programs
// the model wrote.
func (p *parts) lostPrograms(t core.JobState) core.Outcome {
	if t.Kind != core.JobTask {
		return p.pipeline.LostOutcome(t.ID)
	}
	all := core.Outcome{ExecutionID: t.ID}
	for n := range max(3, p.config.Settings.Orchestrator.Attempts) {
		found := p.pipeline.LostOutcome(core.ProgramOf(t.ID, n+1))
		if found.Status != core.StatusOutcomeUnknown {
			continue
		}
		calls := append(all.Calls, found.Calls...)
		all = found
		all.Task, all.Calls = t.ID, calls
	}
	return all
}

// Work makes this engine run the jobs in the queue of its data directory, as soon as no other engine does. Submit,
// Serve and Listen call it.
func (e *Engine) Work() error { return e.WorkOn("") }

// WorkOn is like Work, restricted to one job unless id is empty.
func (e *Engine) WorkOn(id string) error {
	q, err := e.line.queue()
	if err != nil {
		return err
	}
	q.WorkOn(id, func(ctx context.Context, t *jobs.JobTurn) core.Outcome {
		as := e.As(t.Task.Principal)
		ctx = as.pipeline.WithPolicyPermit(e.permitted(ctx, t.Task.Credential))
		if refused := core.PermitOf(ctx).CheckValid(); refused != nil {
			return core.Outcome{ExecutionID: t.Task.ID, Status: core.StatusCancelled, Error: refused}
		}
		ctx, stop := deadline.WhilePermitted(ctx)
		defer stop()
		do, ok := e.line.jobs[t.Task.Kind]
		if !ok {
			return failedTask(
				t.Task,
				core.Errorf(core.KindInvalidArguments, "retort.tasks", "this version of Retort does not support jobs of the kind %q", t.Task.Kind),
			)
		}
		return do(as)(ctx, t)
	})
	return nil
}

// permitted returns the context of a job with the Permit under which the job was submitted. If another process
// submitted the job, or an earlier one, the Permit is rebuilt from the stored credential.
func (e *Engine) permitted(ctx context.Context, c core.Credential) context.Context {
	if core.PermitOf(ctx).Check != nil || c == (core.Credential{}) {
		return ctx
	}
	book, err := e.OpenTokens()
	return core.WithPermit(ctx, core.Permit{Credential: c, Check: func() *core.Error {
		switch {
		case c.Token != "" && err == nil && book.HasValid(c.Token), c.Token == "" && time.Now().Before(c.Expires):
			return nil
		}
		return core.RevokedError()
	}})
}

// works calls Work in the background, so that an unreadable queue or a keyring that prompts delays nothing else.
func (e *Engine) works() {
	go func() {
		if err := e.Work(); err != nil && core.AsError(err).Kind != core.KindCancelled {
			e.log.Warn("this engine cannot run jobs of the queue", "error", err)
		}
	}()
}

func failedTask(t core.JobState, err *core.Error) core.Outcome {
	return core.Outcome{ExecutionID: t.ID, Status: core.StatusRejected, Error: err}
}

// runs returns the function that executes a program from the queue.
func (e *Engine) runs() jobs.RunFunc {
	return func(ctx context.Context, t *jobs.JobTurn) core.Outcome {
		var r core.ExecutionRequest
		if err := json.Unmarshal(t.Payload, &r); err != nil {
			return failedTask(t.Task, core.Errorf(core.KindInvalidArguments, "retort.tasks", "the program cannot be read: %w", err))
		}
		r.ID, r.Noted = t.Task.ID, true
		r.Progress = func(calls int) {
			t.SetProgress(core.TaskProgress{Done: calls, Message: fmt.Sprintf("%d tool calls", calls)})
		}
		return e.attended(ctx, t, e.Execute(ctx, r))
	}
}

// passesOn returns the function that passes a client's call from the queue on to its server.
func (e *Engine) passesOn() jobs.RunFunc {
	return func(ctx context.Context, t *jobs.JobTurn) core.Outcome {
		var p struct {
			Request core.ExecutionRequest
			Passed  core.PassthroughRequest
		}
		if err := json.Unmarshal(t.Payload, &p); err != nil {
			return failedTask(t.Task, core.Errorf(core.KindInvalidArguments, "retort.tasks", "the call cannot be read: %w", err))
		}
		p.Request.ID, p.Request.Noted = t.Task.ID, true
		return e.attended(ctx, t, e.Pass(ctx, p.Request, p.Passed))
	}
}

// attended waits until an execution is no longer pending: a person must answer first. Meanwhile the job gives up its
// slot.
func (e *Engine) attended(ctx context.Context, t *jobs.JobTurn, o core.Outcome) core.Outcome {
	const patience = 31 * 24 * 3600e9 // longer than a task may take
	for o.Status == core.StatusPendingApproval && ctx.Err() == nil {
		t.SetWaiting(true)
		o = e.Resume(ctx, o.ExecutionID, patience)
	}
	return e.unattended(o)
}

// unattended cancels an execution that is still pending although its job no longer waits for it.
func (e *Engine) unattended(o core.Outcome) core.Outcome {
	if o.Status != core.StatusPendingApproval {
		return o
	}
	if ended, ok := e.pipeline.Cancel(o.ExecutionID); ok {
		return e.logged("cancelled", ended)
	}
	return o
}

// Submit puts a job into the queue. The job is on disk when Submit returns. It runs when its turn comes, in this
// engine or in another one with the same data directory.
func (e *Engine) Submit(ctx context.Context, j Job) (JobState, error) {
	if _, ok := e.line.jobs[j.Kind]; !ok {
		return JobState{}, core.Errorf(core.KindInvalidArguments, "retort.submit", "unknown kind of job %q", j.Kind)
	}
	q, err := e.line.queue()
	if err != nil {
		return JobState{}, err
	}
	peer, permit := core.PeerOf(ctx), core.PermitOf(ctx)
	j.Credential = permit.Credential
	with := func(ctx context.Context) context.Context { return core.WithPermit(core.WithPeer(ctx, peer), permit) }
	t, err := q.SubmitJob(e.pipeline.Policy.Principal(), j, with)
	if err != nil {
		return t, err
	}
	return t, e.Work()
}

// Task returns a job of the engine's principal. Jobs of other principals are not found.
func (e *Engine) Task(id string) (JobState, error) {
	q, err := e.line.queue()
	if err != nil {
		return JobState{}, err
	}
	t, err := q.Get(e.pipeline.Policy.Principal(), id)
	return e.seen(t), err
}

// seen returns the state of a job. A pending job whose question has been answered is shown as running.
func (e *Engine) seen(t JobState) JobState {
	if t.Status == core.TaskPending && len(e.Waiting(t.ID)) == 0 {
		t.Status = core.TaskRunning
	}
	return t
}

// Tasks returns the jobs of the engine's principal in the order of submission.
func (e *Engine) Tasks() ([]JobState, error) {
	q, err := e.line.queue()
	if err != nil {
		return nil, err
	}
	all, _, err := q.ListJobs(e.pipeline.Policy.Principal())
	for i := range all {
		all[i] = e.seen(all[i])
	}
	return all, err
}

// CancelTask cancels a job in any state and waits briefly for its end. It returns an error if there is no such job or
// it has already ended.
func (e *Engine) CancelTask(ctx context.Context, id string) (JobState, error) {
	q, err := e.line.queue()
	if err != nil {
		return JobState{}, err
	}
	return q.CancelJob(ctx, e.pipeline.Policy.Principal(), id)
}

// WaitTask waits until a job has ended or ctx is done.
func (e *Engine) WaitTask(ctx context.Context, id string) (JobState, error) {
	q, err := e.line.queue()
	if err != nil {
		return JobState{}, err
	}
	t, err := q.WaitEnd(ctx, e.pipeline.Policy.Principal(), id)
	return e.seen(t), err
}

// WatchTask waits until the state of a job differs from seen, or ctx is done.
func (e *Engine) WatchTask(ctx context.Context, id string, seen JobState) (JobState, error) {
	q, err := e.line.queue()
	if err != nil {
		return JobState{}, err
	}
	t, err := q.WaitChange(ctx, e.pipeline.Policy.Principal(), id, seen)
	return e.seen(t), err
}

// counts returns the number of jobs by state, for one principal or, if principal is empty, for all. It returns nil if
// the queue has not been opened.
func (l *line) counts(principal string) *TaskCounts {
	l.mu.Lock()
	q := l.opened
	l.mu.Unlock()
	if q == nil {
		return nil
	}
	c := q.CountJobs(principal)
	return &c
}

// active counts the running tasks, in the queue and without it, of one principal or, if principal is empty, of all.
func (l *line) active(principal string) (n int) {
	if c := l.counts(principal); c != nil {
		n = c.Running
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for one := range l.direct {
		if principal == "" || one.principal == principal {
			n++
		}
	}
	return n
}
