package standby

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"retort/internal/pipeline/isolate"
	"retort/internal/run"
	"retort/internal/wire"
)

// parting is how long the connections of a program that has ended may take to end.
const parting = time.Second

// sandbox is one guest with its limits. It runs one program.
type sandbox struct {
	backend *Backend
	kind    *kind
	member  *member
	spec    isolate.Spec
	warning string

	mu     sync.Mutex
	used   bool
	over   bool // its program has ended
	closed bool
	cancel context.CancelCauseFunc // while a program runs
}

// Run implements isolate.Sandbox.
func (s *sandbox) Run(ctx context.Context, p run.Program, h isolate.Host) (isolate.Report, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := s.begin(cancel); err != nil {
		return isolate.Report{}, err
	}
	defer s.backend.forget(s)
	defer s.kind.pool.Refill()
	defer s.leave()
	p.Limits = p.Limits.Or(s.spec.Limits).Or(run.DefaultLimits())
	s.member.guest.Limit(p.Limits)
	shut := lead(s.member.guest, h)
	end, err := wire.Serve(ctx, s.member.conn, p, h)
	late := time.AfterFunc(parting, s.member.guest.Kill) // should its relay not listen to anybody
	shut()
	late.Stop()
	if errors.Is(err, wire.ErrGone) {
		s.explain(&end, p)
	}
	report := isolate.Report{
		Status: end.Status, Value: end.Value, Error: end.Error, Output: end.Output, Warnings: end.Warnings, MemoryBytes: s.member.guest.Peak(),
		Runtime: s.kind.Runtime, Backend: s.backend.Name, Bounds: s.kind.Bounds,
	}
	if s.warning != "" {
		report.Warnings = append(report.Warnings, s.warning)
	}
	s.member.Kill()
	return report, nil
}

// explain has the guest say why it went away.
func (s *sandbox) explain(end *wire.End, p run.Program) {
	s.member.guest.Explain(end, p)
	end.Status = cmp.Or(end.Status, run.StatusError)
	if end.Error == nil {
		end.Error = run.Errorf(run.KindRuntime, s.backend.Name+".run", "the sandbox ended unexpectedly").
			WithHint("calls that the program had made before may have had their effects; run it again, in smaller steps")
	}
}

func (s *sandbox) begin(cancel context.CancelCauseFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used {
		return run.Errorf(run.KindInternal, s.backend.Name+".run", "a sandbox runs one program only")
	}
	s.used, s.cancel = true, cancel
	if s.closed {
		cancel(context.Canceled)
	}
	return nil
}

// Close implements isolate.Sandbox.
func (s *sandbox) Close() error {
	s.mu.Lock()
	s.closed = true
	if s.cancel != nil {
		s.cancel(context.Canceled)
	}
	s.mu.Unlock()
	s.member.Kill()
	s.backend.forget(s)
	return nil
}

// leave says that the program has ended.
func (s *sandbox) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

// Start implements isolate.Commander, for backends that have commands.
func (s *sandbox) Start(ctx context.Context, c isolate.Command) (isolate.Ended, error) {
	if s.backend.Command == nil {
		return isolate.Ended{}, isolate.NoCommands(s.backend.Name)
	}
	done, refused := s.enter()
	if refused != nil {
		return isolate.Ended{}, refused
	}
	defer done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.backend.ctx, cancel)()
	return s.backend.Command(ctx, c, s.spec.Limits.Or(run.DefaultLimits()))
}

// enter begins something that Close of the backend waits for, if the program still runs.
func (s *sandbox) enter() (done func(), refused *run.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backend.mu.Lock()
	defer s.backend.mu.Unlock()
	if !s.used || s.over || s.closed || s.backend.closed {
		return nil, run.Errorf(run.KindCancelled, s.backend.Name+".command", "the program has ended")
	}
	s.backend.guests.Add(1)
	return s.backend.guests.Done, nil
}
