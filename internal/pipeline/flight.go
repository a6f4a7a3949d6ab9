package pipeline

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"retort/internal/base/deadline"
	"retort/internal/core"
	"retort/internal/pipeline/approval"
)

// Flights holds the executions that are running. One that waits for a person can outlive its request. It is safe for
// concurrent use.
type Flights struct {
	journals *approval.Journals
	asking   asking

	mu     sync.Mutex
	flying map[string]*flight
	closed bool
	all    sync.WaitGroup
}

// NewFlights returns an empty Flights that writes executions which outlive their request to journals.
func NewFlights(journals *approval.Journals) *Flights {
	return &Flights{journals: journals, flying: map[string]*flight{}}
}

// flight holds the state of one execution.
type flight struct {
	id, principal string
	cancel        context.CancelCauseFunc
	journal       *approval.Journal
	table         *approval.Table
	record        *record
	permit        core.Permit   // of the principal that asked for it
	revision      uint64        // of the servers when it began; see relay.Execution
	theirs        *theirs       // questions of servers to the client
	ended         chan struct{} // closed when outcome is there
	outcome       core.Outcome
	turn          chan struct{} // holds one token: a person is asked one thing at a time

	mu       sync.Mutex
	channel  core.Channel  // of the request that returns the Outcome; nil if there is none
	news     chan struct{} // closed and replaced when a question can only be answered elsewhere
	interim  *core.Outcome // what the request returns once a person is asked; see tell
	detached bool
	landed   time.Time // when it ended without a request waiting for it
}

// together bounds how long an execution that starts to wait can ask more, so that simultaneous questions are shown
// together.
const together = 20 * time.Millisecond

// fly starts an execution with its own context and follows it. what and body are recorded with the request.
func (p *Pipeline) fly(ctx context.Context, req core.Request, what map[string]any, body asked, execute func(context.Context, *flight) core.Outcome) core.Outcome {
	id := req.ID
	if refused := p.Policy.Refused(); refused != nil {
		return core.Outcome{ExecutionID: id, Status: core.StatusDenied, Error: refused}
	}
	ctx = p.Permitted(ctx)
	permitted, expire := deadline.WhilePermitted(context.WithoutCancel(ctx))
	own, cancel := context.WithCancelCause(permitted)
	f := &flight{
		id: id, principal: p.Policy.Principal(), cancel: cancel, journal: p.Flights.journals.Of(id), table: p.Approvals.Table, permit: core.PermitOf(ctx), revision: p.Relay.Revision(),
		theirs: newTheirs(p.Approvals.Bounds, p.Policy.Principal(), &p.Flights.asking),
		ended:  make(chan struct{}), turn: make(chan struct{}, 1), channel: core.ChannelOf(ctx), news: make(chan struct{}),
	}
	f.turn <- struct{}{}
	if err := p.Flights.add(f); err != nil {
		expire()
		return core.Outcome{ExecutionID: id, Status: core.StatusRejected, Error: err}
	}
	go func() {
		defer p.Flights.all.Done()
		if req.Noted {
			execute = noting(id, execute)
		}
		defer expire()
		o := p.recorded(own, req, what, body, f, execute)
		p.Approvals.Table.End(id)
		f.mu.Lock()
		f.outcome, f.landed = o, time.Now()
		f.mu.Unlock()
		close(f.ended)
	}()
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	defer stop()
	return p.follow(ctx, f, p.Approvals.Wait, stop)
}

// Permitted returns a context whose Permit also ends when the policy no longer allows the principal anything.
func (p *Pipeline) Permitted(ctx context.Context) context.Context {
	permit, policy := core.PermitOf(ctx), p.Policy
	return core.WithPermit(ctx, core.Permit{Credential: permit.Credential, Check: func() *core.Error {
		if refused := policy.Refused(); refused != nil {
			return refused
		}
		return permit.Refused()
	}})
}

// noting returns execute preceded by writing the journal to disk. If that fails, nothing is executed.
func noting(id string, execute func(context.Context, *flight) core.Outcome) func(context.Context, *flight) core.Outcome {
	return func(ctx context.Context, f *flight) core.Outcome {
		if err := f.journal.Keep(); err != nil {
			return core.Outcome{ExecutionID: id, Status: core.StatusError, Error: core.Errorf(core.KindInternal, "pipeline", "it did not run, because its calls could not be noted: %w", err)}
		}
		return execute(ctx, f)
	}
}

// Cancel cancels an execution, even one that waits for a person, and returns its Outcome. It returns false if there
// is no such execution.
func (p *Pipeline) Cancel(id string) (core.Outcome, bool) {
	p.Flights.mu.Lock()
	f, ok := p.Flights.flying[id]
	p.Flights.mu.Unlock()
	if !ok || f.principal != p.Policy.Principal() {
		return core.Outcome{}, false
	}
	f.cancel(nil)
	<-f.ended
	return p.Flights.land(f), true
}

// recorded runs execute between the first and the last audit log entry of an execution.
func (p *Pipeline) recorded(ctx context.Context, req core.Request, what map[string]any, body asked, f *flight, execute func(context.Context, *flight) core.Outcome) core.Outcome {
	f.record = p.begin(req, what, body)
	ctx, ended := f.record.step(ctx, core.StepExecution, f.record.requested(req))
	o := f.withheld(execute(core.WithChannel(ctx, f.ask), f))
	if refused := f.record.ready(); refused == nil { // what has not begun has no end
		o = p.warned(f.record.end(o))
	}
	o.Trace = core.TraceOf(ctx).ID()
	if p.Tracer != nil {
		ended(f.record.ended(o))
	}
	return o
}

// withheld returns the Outcome without its result if the principal's permission has ended.
func (f *flight) withheld(o core.Outcome) core.Outcome {
	refused := f.permit.Refused()
	if refused == nil {
		return o
	}
	return core.Outcome{ExecutionID: o.ExecutionID, Status: core.StatusCancelled, Error: refused, Stats: o.Stats}
}

func (s *Flights) add(f *flight) *core.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return core.Errorf(core.KindCancelled, "pipeline", "the engine is closed")
	}
	if _, taken := s.flying[f.id]; taken {
		return core.Errorf(core.KindInvalidArguments, "pipeline", "there is an execution %q already", f.id)
	}
	s.flying[f.id] = f
	s.all.Add(1)
	return nil
}

// follow waits for the Outcome, or until a question has waited for patience and nobody could be asked. free detaches
// the execution from ctx; it returns false if ctx has already ended it.
func (p *Pipeline) follow(ctx context.Context, f *flight, patience time.Duration, free func() bool) core.Outcome {
	for {
		news := f.tidings()
		if f.left() && len(p.Approvals.Table.Waiting(f.id)) > 0 {
			o := f.told()
			if o != nil || f.wait(ctx, patience) {
				if waiting := p.Approvals.Table.Waiting(f.id); len(waiting) > 0 && free() {
					return p.asking(f, o, waiting)
				}
			}
		}
		select {
		case <-f.ended:
			return p.Flights.land(f)
		case <-news:
		}
	}
}

// wait waits for patience or until ctx ends. It returns false if the execution has ended.
func (f *flight) wait(ctx context.Context, patience time.Duration) bool {
	timer := time.NewTimer(max(patience, together))
	defer timer.Stop()
	select {
	case <-f.ended:
		return false
	case <-ctx.Done():
	case <-timer.C:
	}
	return true
}

// ask is the execution's channel: it asks through the channel of the request that follows it, and passes the answer
// to the table itself.
func (f *flight) ask(ctx context.Context, a core.Approval) (core.Answer, bool) {
	select {
	case <-f.turn:
		defer func() { f.turn <- struct{}{} }()
	case <-ctx.Done():
		return core.Answer{}, false
	}
	f.mu.Lock()
	channel := f.channel
	f.mu.Unlock()
	if channel != nil {
		f.gather(ctx)
	}
	a, waits := f.table.Group(a.ID)
	if !waits {
		return core.Answer{}, false // an earlier answer was sufficient
	}
	if channel != nil && ctx.Err() == nil {
		answer, ok := channel(ctx, a)
		if ok {
			answer.Also = a.Same                       // an equal question that was added since is asked separately
			_ = f.table.Decide(a.ID, a.Digest, answer) // before the next is asked: it may be covered
		}
		if ok || ctx.Err() != nil {
			return core.Answer{}, false
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.channel = nil
	close(f.news)
	f.news = make(chan struct{})
	return core.Answer{}, false
}

// gather waits briefly so that questions asked at the same time are shown as one.
func (f *flight) gather(ctx context.Context) {
	timer := time.NewTimer(together)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (f *flight) tidings() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.news
}

// left reports whether pending questions can only be answered outside of the request.
func (f *flight) left() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.channel == nil
}

// asking returns the Outcome of an execution that waits for a person, including its dry run if that was not returned
// yet.
func (p *Pipeline) asking(f *flight, dry *core.Outcome, waiting []core.Approval) core.Outcome {
	if dry != nil {
		return p.proposed(f, *dry, waiting)
	}
	return p.pending(f, waiting)
}

// detach lets an execution continue without its request. If its calls cannot be noted on disk, it is cancelled and
// has ended.
func (p *Pipeline) detach(f *flight) error {
	if err := f.journal.Keep(); err != nil {
		f.cancel(nil)
		<-f.ended
		return err
	}
	f.mu.Lock()
	f.detached = true
	f.mu.Unlock()
	p.Flights.evict()
	return nil
}

// shown returns the waiting approvals without what the model has already seen or must not see.
func shown(waiting []core.Approval) []core.Approval {
	list := make([]core.Approval, len(waiting))
	for i, a := range waiting {
		a = a.ForModel()
		a.Code, a.Skills, a.Effects, a.Change = "", nil, nil, "" // nor what it must not see yet
		a.Login, a.Impact = "", nil                              // they are for a person
		list[i] = a
	}
	return list
}

// pending returns the Outcome of an execution that continues without the request.
func (p *Pipeline) pending(f *flight, waiting []core.Approval) core.Outcome {
	if err := p.detach(f); err != nil {
		o := p.Flights.land(f)
		o.Warnings = append(o.Warnings, "it was cancelled, because its calls could not be noted: "+err.Error())
		return o
	}
	o := core.Outcome{ExecutionID: f.id, Status: core.StatusPendingApproval, Approvals: shown(core.Grouped(waiting))}
	var actions []string
	for _, a := range waiting {
		actions = append(actions, a.Action())
	}
	o.Error = core.Errorf(core.KindPolicy, "approval", "a person has to approve: %s", strings.Join(slices.Compact(actions), "; ")).
		WithHint("ask the person to run in a terminal: retort approvals approve %s. Then call resume_execution with the execution_id. Do not send the program again: it goes on where it stands", waiting[0].ID)
	return o
}

// land forgets an execution that has ended, with its journal, and returns its Outcome.
func (s *Flights) land(f *flight) core.Outcome {
	s.mu.Lock()
	delete(s.flying, f.id)
	s.mu.Unlock()
	f.journal.Remove()
	return f.outcome
}

// Bounds on finished executions whose Outcome was not fetched.
const (
	maxLanded = 256
	maxAge    = time.Hour
)

// evict forgets Outcomes that were not fetched. Their journals stay.
func (s *Flights) evict() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var landed []*flight
	for _, f := range s.flying {
		if at := f.landing(); !at.IsZero() {
			landed = append(landed, f)
		}
	}
	slices.SortFunc(landed, func(a, b *flight) int { return cmp.Or(a.landing().Compare(b.landing()), strings.Compare(a.id, b.id)) })
	for i, f := range landed {
		if len(landed)-i > maxLanded || time.Since(f.landing()) > maxAge {
			delete(s.flying, f.id)
			f.journal.Leave()
		}
	}
}

// landing returns when a detached execution ended, or the zero time while it runs.
func (f *flight) landing() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.detached {
		return time.Time{}
	}
	return f.landed
}

// Resume waits for an execution that was answered as pending, until it ends or has waited for a person for patience.
// If ctx ends while the execution waits for a person, it keeps waiting; otherwise it is cancelled.
func (p *Pipeline) Resume(ctx context.Context, id string, patience time.Duration) core.Outcome {
	p.Flights.mu.Lock()
	f, ok := p.Flights.flying[id]
	p.Flights.mu.Unlock()
	if !ok || f.principal != p.Policy.Principal() {
		return p.lost(id)
	}
	f.setChannel(core.ChannelOf(ctx))
	waiting := p.Approvals.Table.Waiting(id)
	if core.ChannelOf(ctx) != nil {
		for _, a := range waiting {
			go f.ask(ctx, a)
		}
	}
	stop := context.AfterFunc(ctx, func() {
		if len(p.Approvals.Table.Waiting(id)) == 0 {
			f.cancel(context.Cause(ctx))
		}
	})
	defer stop()
	return p.follow(ctx, f, patience, func() bool { return true })
}

func (f *flight) setChannel(c core.Channel) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.channel = c
}

// Lost returns what is known of an execution whose engine has died. Its outcome is unknown, or rejected if nothing
// was noted.
func (p *Pipeline) Lost(id string) core.Outcome { return p.lost(id) }

// lost returns the Outcome for an execution that this engine does not know.
func (p *Pipeline) lost(id string) core.Outcome {
	sent, err := p.Flights.journals.Lost(id)
	switch {
	case errors.Is(err, approval.ErrAlive):
		return core.Outcome{ExecutionID: id, Status: core.StatusRejected, Error: core.Errorf(core.KindInvalidArguments, "pipeline.resume", "the execution %q belongs to another engine that still runs", id).
			WithHint("resume it where it was started")}
	case errors.Is(err, fs.ErrNotExist):
		return core.Outcome{ExecutionID: id, Status: core.StatusRejected, Error: core.Errorf(core.KindInvalidArguments, "pipeline.resume", "there is no execution %q that waits", id).
			WithHint("its outcome was already returned, or it never waited for a person")}
	case err != nil:
		return core.Outcome{ExecutionID: id, Status: core.StatusOutcomeUnknown, Error: core.Errorf(core.KindInternal, "pipeline.resume", "%w", err)}
	}
	said := "no call that may have effects was sent"
	if len(sent) > 0 {
		said = "the listed calls were sent and may have taken effect"
	}
	return core.Outcome{ExecutionID: id, Status: core.StatusOutcomeUnknown, Calls: sent, Error: core.Errorf(core.KindInternal, "pipeline.resume", "the engine ended before the outcome was returned; %s", said).
		WithHint("check what was done before you repeat anything; nothing was repeated")}
}

// Running counts a principal's executions that have not ended, including those that wait for a person.
func (s *Flights) Running(principal string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.flying {
		select {
		case <-f.ended:
		default:
			if f.principal == principal {
				n++
			}
		}
	}
	return n
}

// Close cancels all executions and waits for their end.
func (s *Flights) Close() error {
	s.mu.Lock()
	s.closed = true
	for _, f := range s.flying {
		f.cancel(nil)
	}
	s.mu.Unlock()
	s.all.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.flying {
		f.journal.Leave()
	}
	return nil
}
