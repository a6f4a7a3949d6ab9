package pipeline

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"retort/internal/base/deadline"
	"retort/internal/core"
	"retort/internal/pipeline/approval"
	"retort/internal/privacy/redact"
)

// RunningExecutions tracks the running executions. An execution that waits for a person can outlive its request. It is safe
// for concurrent use.
type RunningExecutions struct {
	journals *approval.JournalStore
	asking   questionCounts

	mu     sync.Mutex
	flying map[string]*execution
	closed bool
	all    sync.WaitGroup
}

// NewFlights returns a RunningExecutions, which tracks executions in flight, without any execution yet. The argument
// journals stores which calls an execution has sent, in case the execution outlives its request.
func NewFlights(journals *approval.JournalStore) *RunningExecutions {
	return &RunningExecutions{journals: journals, flying: map[string]*execution{}}
}

// execution holds the state of one execution from its request to its Outcome. The runs of its program (a dry run and
// the run after it), the audit log, and the requests that wait for the Outcome share this state.
type execution struct {
	pipeline  *Pipeline             // with the policy as it was when the execution began
	req       core.ExecutionRequest // complete
	permit    core.Permit           // of the principal that asked for it
	revision  uint64                // of the servers when it began; see relay.ExecutionContext
	screen    *redact.Session       // nil if nothing is hidden
	screenErr error                 // why personal data cannot be hidden; no values are recorded then
	journal   *approval.CallJournal
	theirs    *serverQuestions // questions of servers to the client

	began   time.Time
	begun   chan struct{} // closed when the first audit log entry is made; refused is there then
	refused *core.Error   // why that entry could not be made
	counts  entryCounts

	cancel  context.CancelCauseFunc
	ended   chan struct{} // closed when outcome is there
	outcome core.Outcome
	turn    chan struct{} // holds one token: a person is asked one thing at a time

	run atomic.Pointer[programExecution] // the run of the program that began last; nil before the first

	mu       sync.Mutex
	channel  core.ApprovalChannel // of the request that returns the Outcome, or nil
	news     chan struct{}        // closed and replaced when a question can only be answered elsewhere
	interim  *core.Outcome        // what the request returns once a person is asked; see tell
	detached bool
	landed   time.Time // when it ended without a request waiting for it
	shown    string    // ids of the questions that the last pending Outcome listed
}

// startExecution starts an execution and returns its Outcome. If nobody can be asked through the request and a person
// is needed, it returns a pending Outcome, and the execution continues afterwards. The arguments what and body
// describe the request in the audit log.
func (p *Pipeline) startExecution(
	ctx context.Context, req core.ExecutionRequest, what map[string]any, body requestBody,
	execute func(context.Context, *execution) core.Outcome,
) core.Outcome {
	if refused := p.Policy.RefusedError(); refused != nil {
		return core.Outcome{ExecutionID: req.ID, Status: core.StatusDenied, Error: refused}
	}
	ctx = p.WithPolicyPermit(ctx)
	permitted, expire := deadline.WhilePermitted(context.WithoutCancel(ctx))
	own, cancel := context.WithCancelCause(permitted)
	x := &execution{
		pipeline: p, req: req, permit: core.PermitOf(ctx), revision: p.Relay.Revision(), cancel: cancel,
		journal: p.Flights.journals.NewJournal(req.ID),
		theirs:  newTheirs(p.Approvals.Bounds, p.Policy.Principal(), &p.Flights.asking),
		begun:   make(chan struct{}), ended: make(chan struct{}), turn: make(chan struct{}, 1),
		channel: core.ChannelOf(ctx), news: make(chan struct{}),
	}
	x.turn <- struct{}{}
	if err := p.Flights.addExecution(x); err != nil {
		expire()
		return core.Outcome{ExecutionID: req.ID, Status: core.StatusRejected, Error: err}
	}
	go func() {
		defer p.Flights.all.Done()
		if req.Noted {
			execute = executeJournaled(execute)
		}
		defer expire()
		o := x.executeRecorded(own, what, body, execute)
		p.Approvals.Table.EndExecution(req.ID)
		x.mu.Lock()
		x.outcome, x.landed = o, time.Now()
		x.mu.Unlock()
		close(x.ended)
	}()
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	defer stop()
	return p.followExecution(ctx, x, p.Approvals.Wait, stop)
}

// WithPolicyPermit returns a context whose Permit is valid only while the Permit of ctx is valid and the policy does
// not deny the principal everything.
func (p *Pipeline) WithPolicyPermit(ctx context.Context) context.Context {
	permit, policy := core.PermitOf(ctx), p.Policy
	return core.WithPermit(ctx, core.Permit{Credential: permit.Credential, Check: func() *core.Error {
		if refused := policy.RefusedError(); refused != nil {
			return refused
		}
		return permit.CheckValid()
	}})
}

// executeJournaled returns a function that calls execute only after the execution's journal, the list of calls that
// it sends, is durably on disk. If the journal cannot be written, the function returns an Outcome with an error
// instead.
func executeJournaled(
	execute func(context.Context, *execution) core.Outcome,
) func(context.Context, *execution) core.Outcome {
	return func(ctx context.Context, x *execution) core.Outcome {
		if err := x.journal.MakeDurable(); err != nil {
			return core.Outcome{
				ExecutionID: x.req.ID, Status: core.StatusError,
				Error: core.Errorf(core.KindInternal, "pipeline", "it did not run, because its calls could not be recorded: %w", err),
			}
		}
		return execute(ctx, x)
	}
}

// Cancel cancels an execution, even one that waits for a person, and returns its Outcome. ok is false if the
// principal has no such execution.
func (p *Pipeline) Cancel(id string) (core.Outcome, bool) {
	p.Flights.mu.Lock()
	x, ok := p.Flights.flying[id]
	p.Flights.mu.Unlock()
	if !ok || x.pipeline.Policy.Principal() != p.Policy.Principal() {
		return core.Outcome{}, false
	}
	x.cancel(nil)
	<-x.ended
	return p.Flights.takeOutcome(x), true
}

// StopExecution cancels an execution of the principal, even one that waits for a person. It does not wait for the end:
// Resume then returns the Outcome. It has no effect if the principal has no such execution.
func (p *Pipeline) StopExecution(id string) {
	p.Flights.mu.Lock()
	defer p.Flights.mu.Unlock()
	if x, ok := p.Flights.flying[id]; ok && x.pipeline.Policy.Principal() == p.Policy.Principal() {
		x.cancel(nil)
	}
}

// executeRecorded runs execute and writes the execution's first and last audit log entry.
func (x *execution) executeRecorded(
	ctx context.Context, what map[string]any, body requestBody,
	execute func(context.Context, *execution) core.Outcome,
) core.Outcome {
	x.beginRecord(what, body)
	ctx, ended := x.beginStep(ctx, core.StepExecution, x.requestedEvent())
	o := x.withholdResult(execute(core.WithChannel(ctx, x.askRequester), x))
	if refused := x.waitReady(); refused == nil { // what has not begun has no end
		o = x.pipeline.addWarnings(x.recordEnd(o))
	}
	o.Trace = core.TraceOf(ctx).TraceID()
	if x.pipeline.Tracer != nil {
		ended(x.endEvent(o))
	}
	return o
}

// withholdResult removes the result from the Outcome if the principal's permission has ended.
func (x *execution) withholdResult(o core.Outcome) core.Outcome {
	refused := x.permit.CheckValid()
	if refused == nil {
		return o
	}
	return core.Outcome{ExecutionID: o.ExecutionID, Status: core.StatusCancelled, Error: refused, Stats: o.Stats}
}

func (s *RunningExecutions) addExecution(x *execution) *core.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return core.Errorf(core.KindCancelled, "pipeline", "the engine is closed")
	}
	if _, taken := s.flying[x.req.ID]; taken {
		return core.Errorf(core.KindInvalidArguments, "pipeline", "an execution with the id %q already exists", x.req.ID)
	}
	s.flying[x.req.ID] = x
	s.all.Add(1)
	return nil
}

// followExecution waits for the Outcome of an execution. It waits no longer, and returns a pending Outcome, if a
// question has waited longer than patience and nobody can be asked through the current request. Before it returns a
// pending Outcome, it calls the function free, which lets the execution continue after the request. If free returns
// false, ctx has already ended the execution, so followExecution waits for the Outcome after all.
func (p *Pipeline) followExecution(ctx context.Context, x *execution, patience time.Duration, free func() bool) core.Outcome {
	for {
		news := x.changeSignal()
		if x.isLeftToOthers() && len(p.Approvals.Table.ListWaiting(x.req.ID)) > 0 {
			o := x.takeInterim()
			if o != nil || x.waitFor(ctx, patience) {
				if waiting := p.Approvals.Table.ListWaiting(x.req.ID); len(waiting) > 0 && free() {
					return p.waitingOutcome(x, o, waiting)
				}
			}
		}
		select {
		case <-x.ended:
			return p.Flights.takeOutcome(x)
		case <-news:
		}
	}
}

// waitFor waits until patience has passed or ctx ends, and returns true. If the execution ends before that, it
// returns false.
func (x *execution) waitFor(ctx context.Context, patience time.Duration) bool {
	timer := time.NewTimer(max(patience, approval.GatherTime))
	defer timer.Stop()
	select {
	case <-x.ended:
		return false
	case <-ctx.Done():
	case <-timer.C:
	}
	return true
}

// askRequester implements core.ApprovalChannel. It passes a question to the channel of the request that currently
// waits for the execution.
func (x *execution) askRequester(ctx context.Context, a core.Approval) (core.ApprovalAnswer, bool) {
	select {
	case <-x.turn:
		defer func() { x.turn <- struct{}{} }()
	case <-ctx.Done():
		return core.ApprovalAnswer{}, false
	}
	x.mu.Lock()
	channel := x.channel
	x.mu.Unlock()
	if channel != nil {
		x.gatherQuestions(ctx)
	}
	a, waits := x.pipeline.Approvals.Table.FindGroup(a.ID)
	if !waits {
		return core.ApprovalAnswer{}, false // an earlier answer was sufficient
	}
	if channel != nil && ctx.Err() == nil {
		answer, ok := channel(ctx, a)
		if ok {
			answer.Also = a.Same                                                  // an equal question that was added since is asked separately
			_ = x.pipeline.Approvals.Table.AnswerApproval(a.ID, a.Digest, answer) // before the next is asked: it may be covered
		}
		if ok || ctx.Err() != nil {
			return core.ApprovalAnswer{}, false
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.channel = nil
	close(x.news)
	x.news = make(chan struct{})
	return core.ApprovalAnswer{}, false
}

// gatherQuestions waits for approval.GatherTime, so that several questions asked at the same time are shown together.
func (x *execution) gatherQuestions(ctx context.Context) {
	timer := time.NewTimer(approval.GatherTime)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (x *execution) changeSignal() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.news
}

// isLeftToOthers reports whether questions of the execution are left to other channels, for example the retort
// command, because the current request cannot show them to anybody.
func (x *execution) isLeftToOthers() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.channel == nil
}

// waitingOutcome returns the Outcome of an execution that waits for a person. It includes the result of a dry run
// that has not been returned yet.
func (p *Pipeline) waitingOutcome(x *execution, dry *core.Outcome, waiting []core.Approval) core.Outcome {
	if dry != nil {
		return p.proposeEffects(x, *dry, waiting)
	}
	return p.pendingOutcome(x, waiting)
}

// detachExecution lets an execution continue after its request was answered. If its journal cannot be written, it
// cancels the execution and waits for its end.
func (p *Pipeline) detachExecution(x *execution) error {
	if err := x.journal.MakeDurable(); err != nil {
		x.cancel(nil)
		<-x.ended
		return err
	}
	x.mu.Lock()
	x.detached = true
	x.mu.Unlock()
	p.Flights.evictOutcomes()
	return nil
}

// pendingOutcome returns the Outcome for a request whose execution continues after the answer.
func (p *Pipeline) pendingOutcome(x *execution, waiting []core.Approval) core.Outcome {
	if err := p.detachExecution(x); err != nil {
		o := p.Flights.takeOutcome(x)
		o.Warnings = append(o.Warnings, "it was cancelled, because its calls could not be recorded: "+err.Error())
		return o
	}
	return x.describeWaiting(waiting)
}

// takeOutcome returns the Outcome of an execution that has ended, and forgets the execution and its journal.
func (s *RunningExecutions) takeOutcome(x *execution) core.Outcome {
	s.mu.Lock()
	delete(s.flying, x.req.ID)
	s.mu.Unlock()
	x.journal.RemoveFile()
	return x.outcome
}

// Bounds on the executions that have landed. An execution has landed if it ended after its request was answered and
// is kept until its Outcome is fetched.
const (
	maxLanded = 256
	maxAge    = time.Hour
)

// evictOutcomes forgets Outcomes that were not fetched for too long, and the oldest if there are too many. The
// journals of these executions stay on disk.
func (s *RunningExecutions) evictOutcomes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var landed []*execution
	for _, x := range s.flying {
		if at := x.endTime(); !at.IsZero() {
			landed = append(landed, x)
		}
	}
	slices.SortFunc(landed, func(a, b *execution) int {
		return cmp.Or(a.endTime().Compare(b.endTime()), strings.Compare(a.req.ID, b.req.ID))
	})
	for i, x := range landed {
		if len(landed)-i > maxLanded || time.Since(x.endTime()) > maxAge {
			delete(s.flying, x.req.ID)
			x.journal.StopWriting()
		}
	}
}

// endTime returns when an execution ended that continued after its request was answered. For any other execution, and
// while it still runs, endTime returns the zero time.
func (x *execution) endTime() time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.detached {
		return time.Time{}
	}
	return x.landed
}

// Resume waits again for an execution whose Outcome was pending. It returns when the execution has ended, or when the
// execution has waited for a person longer than patience. If ctx ends while the execution waits for a person, the
// execution continues to wait. If ctx ends at another time, the execution is cancelled.
func (p *Pipeline) Resume(ctx context.Context, id string, patience time.Duration) core.Outcome {
	p.Flights.mu.Lock()
	x, ok := p.Flights.flying[id]
	p.Flights.mu.Unlock()
	if !ok || x.pipeline.Policy.Principal() != p.Policy.Principal() {
		return p.lostOutcome(id)
	}
	x.setChannel(core.ChannelOf(ctx))
	waiting := p.Approvals.Table.ListWaiting(id)
	if core.ChannelOf(ctx) != nil {
		for _, a := range waiting {
			go x.askRequester(ctx, a)
		}
	}
	stop := context.AfterFunc(ctx, func() {
		if len(p.Approvals.Table.ListWaiting(id)) == 0 {
			x.cancel(context.Cause(ctx))
		}
	})
	defer stop()
	return p.followExecution(ctx, x, patience, func() bool { return true })
}

func (x *execution) setChannel(c core.ApprovalChannel) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.channel = c
}

// LostOutcome returns an Outcome for an execution whose engine has died. It lists the calls that the journal records
// as sent. Its status is outcome_unknown, or rejected if the execution has no journal.
func (p *Pipeline) LostOutcome(id string) core.Outcome { return p.lostOutcome(id) }

// lostOutcome returns the Outcome for an execution that this engine does not know.
func (p *Pipeline) lostOutcome(id string) core.Outcome {
	sent, err := p.Flights.journals.ReadLost(id)
	switch {
	case errors.Is(err, approval.ErrAlive):
		return core.Outcome{ExecutionID: id, Status: core.StatusRejected, Error: core.Errorf(
			core.KindInvalidArguments, "pipeline.resume", "the execution %q belongs to another engine that still runs", id,
		).
			WithHint("resume it with the engine that started it")}
	case errors.Is(err, fs.ErrNotExist):
		return core.Outcome{ExecutionID: id, Status: core.StatusRejected, Error: core.Errorf(
			core.KindInvalidArguments, "pipeline.resume", "no waiting execution has the id %q", id,
		).
			WithHint("its outcome was already returned, or it never waited for a person")}
	case err != nil:
		return core.Outcome{
			ExecutionID: id, Status: core.StatusOutcomeUnknown,
			Error: core.Errorf(core.KindInternal, "pipeline.resume", "%w", err),
		}
	}
	said := "no call that may have effects was sent"
	if len(sent) > 0 {
		said = "the listed calls were sent and may have taken effect"
	}
	return core.Outcome{ExecutionID: id, Status: core.StatusOutcomeUnknown, Calls: sent, Error: core.Errorf(
		core.KindInternal, "pipeline.resume", "the engine ended before the outcome was returned; %s", said,
	).
		WithHint("check the effects before you repeat anything; Retort did not repeat anything")}
}

// CountRunning returns the number of a principal's executions that have not ended, including those that wait for a
// person.
func (s *RunningExecutions) CountRunning(principal string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.flying {
		select {
		case <-x.ended:
		default:
			if x.pipeline.Policy.Principal() == principal {
				n++
			}
		}
	}
	return n
}

// Close cancels all executions and waits for their end.
func (s *RunningExecutions) Close() error {
	s.mu.Lock()
	s.closed = true
	for _, x := range s.flying {
		x.cancel(nil)
	}
	s.mu.Unlock()
	s.all.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.flying {
		x.journal.StopWriting()
	}
	return nil
}
