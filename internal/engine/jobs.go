package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"retort/internal/base/deadline"
	"retort/internal/core"
	"retort/internal/jobs"
	"retort/internal/mcp/server"
)

// Aliases of the types of the job queue.
type (
	Job        = core.Job        // a program, an agent task or a call that waits in the queue
	JobState   = core.JobState   // a Job with its status and Outcome
	TaskStatus = core.TaskStatus // the status of a Job
	TaskCounts = core.TaskCounts // the numbers of jobs by status
)

// ProgramJob returns a Job that executes a request.
func ProgramJob(r Request) (Job, error) { return core.ProgramJob(r) }

var _ server.TaskEngine = (*Engine)(nil)

// jobQueue is the job queue of an engine. It is opened on first use.
type jobQueue struct {
	settings  *configuration
	data      *dataAssembly
	execution *executionAssembly
	queue     *openedQueue

	mu     sync.Mutex
	closed bool
	// interactive holds the agent tasks that are pending and whose callers may resume them, by the id of the pending
	// execution.
	interactive map[string]*interactiveJob
	unqueued    map[*unqueuedTask]bool // agent tasks that run without the queue
}

// openedQueue gives other parts of the engine access to the job queue, which is opened on first use. It is empty
// before that.
type openedQueue struct{ queue atomic.Pointer[jobs.Queue] }

// newJobQueue returns the job queue of an engine without opening it. Once the queue is open, the engine's other parts
// reach it through opened.
func newJobQueue(c *configuration, data *dataAssembly, execution *executionAssembly, opened *openedQueue) *jobQueue {
	return &jobQueue{
		settings: c, data: data, execution: execution, queue: opened,
		interactive: map[string]*interactiveJob{}, unqueued: map[*unqueuedTask]bool{},
	}
}

// jobRunner returns the method of Engine that runs jobs of a kind. It returns nil for an unknown kind.
func jobRunner(kind string) func(*Engine, context.Context, *jobs.JobTurn) core.Outcome {
	switch kind {
	case core.JobProgram:
		return (*Engine).runProgram
	case core.JobTask:
		return (*Engine).runAgentTask
	case core.JobPass:
		return (*Engine).runPassthrough
	}
	return nil
}

// Close closes the queue if it was opened, and keeps it from being opened later.
func (q *jobQueue) Close() error {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	if opened := q.queue.queue.Load(); opened != nil {
		return opened.Close()
	}
	return nil
}

// open returns the queue, and opens it on first use.
func (q *jobQueue) open() (*jobs.Queue, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, core.Errorf(core.KindCancelled, "retort.tasks", "the engine is closed")
	}
	if opened := q.queue.queue.Load(); opened != nil {
		return opened, nil
	}
	opened, err := q.settings.OpenQueue(q.settings.home, q.recorder(), q.lostOutcome)
	if err == nil {
		q.queue.queue.Store(opened)
	}
	return opened, err
}

// recorder returns the function with which the queue records events in the audit log; nil if the log is disabled.
func (q *jobQueue) recorder() func(core.AuditEvent, bool) *core.Error {
	if q.data.audit == nil {
		return nil
	}
	return q.data.audit.Record
}

// lostOutcome returns the Outcome of a job whose engine died while the job ran. It lists the calls that the audit
// log records as sent.
func (q *jobQueue) lostOutcome(t core.JobState) core.Outcome {
	if found := q.lostPrograms(t); found.Status == core.StatusOutcomeUnknown {
		return maskOutcome(q.settings.secrets, found)
	}
	return LostJob(t)
}

// LostJob returns the Outcome of a job whose engine died while the job ran. It is for a job whose calls are not
// known.
func LostJob(t core.JobState) core.Outcome {
	o := core.Outcome{ExecutionID: t.ID, Status: core.StatusOutcomeUnknown}
	o.Error = core.Errorf(core.KindInternal, "retort.tasks", "the engine ended while the job was running").
		WithHint(
			"run retort audit query --execution %s to see the calls that were sent; check their effects before you run it again. Retort did not repeat any call",
			t.ID,
		)
	return o
}

// lostPrograms returns the Outcome of the program that a job was running when its engine died. For an agent task,
// the Outcome lists the calls of all programs that the model wrote.
func (q *jobQueue) lostPrograms(t core.JobState) core.Outcome {
	if t.Kind != core.JobTask {
		return q.execution.pipeline.LostOutcome(t.ID)
	}
	all := core.Outcome{ExecutionID: t.ID}
	for n := range max(3, q.settings.config.Settings.Orchestrator.Attempts) {
		found := q.execution.pipeline.LostOutcome(core.ProgramOf(t.ID, n+1))
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
	q, err := e.jobs.open()
	if err != nil {
		return err
	}
	q.WorkOn(id, func(ctx context.Context, t *jobs.JobTurn) core.Outcome {
		as := e.As(t.Task.Principal, t.Task.Groups...)
		ctx = as.pipeline.WithPolicyPermit(e.restorePermit(ctx, t.Task.Credential))
		refused := core.PermitOf(ctx).CheckValid()
		if refused == nil && e.lacksGroups(t.Task) {
			refused = core.Errorf(
				core.KindPolicy, "retort.tasks", "it is not known which groups the user was in when the job was submitted, so the job does not run",
			).WithHint("submit it again")
		}
		if refused != nil {
			return core.Outcome{ExecutionID: t.Task.ID, Status: core.StatusCancelled, Error: refused}
		}
		ctx, stop := deadline.WhilePermitted(ctx)
		defer stop()
		run := jobRunner(t.Task.Kind)
		if run == nil {
			return failedJob(
				t.Task,
				core.Errorf(core.KindInvalidArguments, "retort.tasks", "this version of Retort does not support jobs of the kind %q", t.Task.Kind),
			)
		}
		return run(as, ctx, t)
	})
	return nil
}

// lacksGroups reports whether a job was submitted with an OAuth token while http.oauth.groups was not set, and it is
// set now. The groups of its user are not known, so entries for groups cannot be applied to it, and it must not run.
func (e *Engine) lacksGroups(t core.JobState) bool {
	fromServer := t.Credential.Token == "" && t.Credential != (core.Credential{})
	return fromServer && t.Groups == nil && e.config.Settings.HTTP.OAuth.Groups != ""
}

// restorePermit returns ctx with the Permit of a job, which limits how long the engine may work for the principal
// that submitted the job. If another process submitted the job, such as the engine before a restart, it rebuilds
// the Permit from the stored credential.
func (e *Engine) restorePermit(ctx context.Context, c core.Credential) context.Context {
	if core.PermitOf(ctx).Check != nil || c == (core.Credential{}) {
		return ctx
	}
	tokens := e.access.tokens
	return core.WithPermit(ctx, core.Permit{Credential: c, Check: func() *core.Error {
		switch {
		case c.Token != "" && tokens != nil && tokens.HasValid(c.Token), c.Token == "" && time.Now().Before(c.Expires):
			return nil
		}
		return core.RevokedError()
	}})
}

// startWorking calls Work in the background, so that an unreadable queue or a keyring that prompts delays nothing else.
func (e *Engine) startWorking() {
	go func() {
		if err := e.Work(); err != nil && core.AsError(err).Kind != core.KindCancelled {
			e.log.Warn("this engine cannot run jobs of the queue", "error", err)
		}
	}()
}

func failedJob(t core.JobState, err *core.Error) core.Outcome {
	return core.Outcome{ExecutionID: t.ID, Status: core.StatusRejected, Error: err}
}

// runProgram executes a program from the queue.
func (e *Engine) runProgram(ctx context.Context, t *jobs.JobTurn) core.Outcome {
	var r core.ExecutionRequest
	if err := json.Unmarshal(t.Payload, &r); err != nil {
		return failedJob(t.Task, core.Errorf(core.KindInvalidArguments, "retort.tasks", "the program cannot be read: %w", err))
	}
	r.ID, r.Noted = t.Task.ID, true
	r.Progress = func(calls int) {
		t.SetProgress(core.TaskProgress{Done: calls, Message: fmt.Sprintf("%d tool calls", calls)})
	}
	return e.waitForApproval(ctx, t, e.Execute(ctx, r))
}

// runPassthrough sends a client's tool call that has waited in the queue to the server of the tool.
func (e *Engine) runPassthrough(ctx context.Context, t *jobs.JobTurn) core.Outcome {
	var p struct {
		Request core.ExecutionRequest
		Passed  core.PassthroughRequest
	}
	if err := json.Unmarshal(t.Payload, &p); err != nil {
		return failedJob(t.Task, core.Errorf(core.KindInvalidArguments, "retort.tasks", "the call cannot be read: %w", err))
	}
	p.Request.ID, p.Request.Noted = t.Task.ID, true
	return e.waitForApproval(ctx, t, e.PassThrough(ctx, p.Request, p.Passed))
}

// waitForApproval waits until a person has answered the approval for which an execution is pending. Meanwhile the job
// gives up its slot in the queue. It returns the final Outcome.
func (e *Engine) waitForApproval(ctx context.Context, t *jobs.JobTurn, o core.Outcome) core.Outcome {
	const patience = 31 * 24 * 3600e9 // longer than a task may take
	for o.Status == core.StatusPendingApproval && ctx.Err() == nil {
		t.SetWaiting(true)
		o = e.Resume(ctx, o.ExecutionID, patience)
	}
	return e.cancelPending(o)
}

// cancelPending returns the Outcome o. If o is still pending although its job no longer waits for a person, it first
// cancels the execution and returns the Outcome after that.
func (e *Engine) cancelPending(o core.Outcome) core.Outcome {
	if o.Status != core.StatusPendingApproval {
		return o
	}
	if ended, ok := e.pipeline.Cancel(o.ExecutionID); ok {
		return e.logOutcome("cancelled", ended)
	}
	return o
}

// Submit puts a job into the queue. The job is on disk when Submit returns. It runs when its turn comes, in this
// engine or in another one with the same data directory.
func (e *Engine) Submit(ctx context.Context, j Job) (JobState, error) {
	if jobRunner(j.Kind) == nil {
		return JobState{}, core.Errorf(core.KindInvalidArguments, "retort.submit", "unknown kind of job %q", j.Kind)
	}
	q, err := e.jobs.open()
	if err != nil {
		return JobState{}, err
	}
	peer, permit := core.PeerOf(ctx), core.PermitOf(ctx)
	j.Credential, j.Groups = permit.Credential, e.pipeline.Policy.Groups()
	with := func(ctx context.Context) context.Context { return core.WithPermit(core.WithPeer(ctx, peer), permit) }
	t, err := q.SubmitJob(e.pipeline.Policy.Principal(), j, with)
	if err != nil {
		return t, err
	}
	return t, e.Work()
}

// Task returns a job of the engine's principal. It returns an error for jobs of other principals, as for unknown
// ones.
func (e *Engine) Task(id string) (JobState, error) {
	q, err := e.jobs.open()
	if err != nil {
		return JobState{}, err
	}
	t, err := q.Get(e.pipeline.Policy.Principal(), id)
	return e.refreshState(t), err
}

// refreshState corrects the state of a job: it changes the status from pending to running if no question of the job
// waits for an answer any more.
func (e *Engine) refreshState(t JobState) JobState {
	if t.Status == core.TaskPending && len(e.Waiting(t.ID)) == 0 {
		t.Status = core.TaskRunning
	}
	return t
}

// Tasks returns the jobs of the engine's principal in the order of submission.
func (e *Engine) Tasks() ([]JobState, error) {
	q, err := e.jobs.open()
	if err != nil {
		return nil, err
	}
	all, _, err := q.ListJobs(e.pipeline.Policy.Principal())
	for i := range all {
		all[i] = e.refreshState(all[i])
	}
	return all, err
}

// CancelTask cancels a job that has not ended and waits briefly for its end. It returns an error if there is no such
// job or it has already ended.
func (e *Engine) CancelTask(ctx context.Context, id string) (JobState, error) {
	q, err := e.jobs.open()
	if err != nil {
		return JobState{}, err
	}
	return q.CancelJob(ctx, e.pipeline.Policy.Principal(), id)
}

// WaitTask waits until a job has ended or ctx is done.
func (e *Engine) WaitTask(ctx context.Context, id string) (JobState, error) {
	q, err := e.jobs.open()
	if err != nil {
		return JobState{}, err
	}
	t, err := q.WaitEnd(ctx, e.pipeline.Policy.Principal(), id)
	return e.refreshState(t), err
}

// WatchTask waits until the state of a job differs from seen, or ctx is done.
func (e *Engine) WatchTask(ctx context.Context, id string, seen JobState) (JobState, error) {
	q, err := e.jobs.open()
	if err != nil {
		return JobState{}, err
	}
	t, err := q.WaitChange(ctx, e.pipeline.Policy.Principal(), id, seen)
	return e.refreshState(t), err
}

// countJobs returns the number of jobs by state, for one principal or, if principal is empty, for all. It returns nil
// if the queue has not been opened.
func (q *openedQueue) countJobs(principal string) *TaskCounts {
	opened := q.queue.Load()
	if opened == nil {
		return nil
	}
	c := opened.CountJobs(principal)
	return &c
}

// countRunning counts the running jobs and the agent tasks without the queue, of one principal or, if principal is
// empty, of all.
func (q *jobQueue) countRunning(principal string) (n int) {
	if c := q.queue.countJobs(principal); c != nil {
		n = c.Running
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for one := range q.unqueued {
		if principal == "" || one.principal == principal {
			n++
		}
	}
	return n
}
