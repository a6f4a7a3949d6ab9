package warmpool

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/wire"
)

// parting bounds the time that the connections of a program that has ended may take to close.
const parting = time.Second

// pooledSandbox is one guest with its limits. It runs one program.
type pooledSandbox struct {
	backend *Backend
	kind    *kind
	member  *member
	spec    sandbox.Spec
	warning string

	mu     sync.Mutex
	used   bool
	over   bool // its program has ended
	closed bool
	cancel context.CancelCauseFunc // while a program runs
}

// Run implements sandbox.Sandbox.
func (s *pooledSandbox) Run(ctx context.Context, p core.Program, h sandbox.Host) (sandbox.Report, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := s.begin(cancel); err != nil {
		return sandbox.Report{}, err
	}
	defer s.backend.forget(s)
	defer s.kind.pool.Refill()
	defer s.leave()
	p.Limits = p.Limits.Or(s.spec.Limits).Or(core.DefaultLimits())
	s.member.guest.Limit(p.Limits)
	shut := lead(s.member.guest, h)
	end, err := wire.Serve(ctx, s.member.conn, p, h)
	late := time.AfterFunc(parting, s.member.guest.Kill) // should its relay not listen to anybody
	shut()
	late.Stop()
	if errors.Is(err, wire.ErrGone) {
		s.explain(&end, p)
	}
	report := sandbox.Report{
		Status: end.Status, Value: end.Value, Error: end.Error, Output: end.Output, Warnings: end.Warnings, MemoryBytes: s.member.guest.Peak(),
		Runtime: s.kind.Runtime, Backend: s.backend.Name, Bounds: s.kind.Bounds,
	}
	if s.warning != "" {
		report.Warnings = append(report.Warnings, s.warning)
	}
	s.member.Kill()
	return report, nil
}

// explain asks the guest why it ended.
func (s *pooledSandbox) explain(end *wire.End, p core.Program) {
	s.member.guest.Explain(end, p)
	end.Status = cmp.Or(end.Status, core.StatusError)
	if end.Error == nil {
		end.Error = core.Errorf(core.KindRuntime, s.backend.Name+".run", "the sandbox ended unexpectedly").
			WithHint("calls that the program made before may have taken effect; run it again, in smaller steps")
	}
}

func (s *pooledSandbox) begin(cancel context.CancelCauseFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used {
		return core.Errorf(core.KindInternal, s.backend.Name+".run", "a sandbox runs one program only")
	}
	s.used, s.cancel = true, cancel
	if s.closed {
		cancel(context.Canceled)
	}
	return nil
}

// Close implements sandbox.Sandbox.
func (s *pooledSandbox) Close() error {
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

// leave marks that the program has ended.
func (s *pooledSandbox) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

// Start implements sandbox.Commander, for backends that have commands.
func (s *pooledSandbox) Start(ctx context.Context, c sandbox.Command) (sandbox.Ended, error) {
	if s.backend.Command == nil {
		return sandbox.Ended{}, sandbox.NoCommands(s.backend.Name)
	}
	done, refused := s.enter()
	if refused != nil {
		return sandbox.Ended{}, refused
	}
	defer done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.backend.ctx, cancel)()
	return s.backend.Command(ctx, c, s.spec.Limits.Or(core.DefaultLimits()))
}

// enter registers work that Close of the backend must wait for. It returns an error if the program no longer runs.
func (s *pooledSandbox) enter() (done func(), refused *core.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backend.mu.Lock()
	defer s.backend.mu.Unlock()
	if !s.used || s.over || s.closed || s.backend.closed {
		return nil, core.Errorf(core.KindCancelled, s.backend.Name+".command", "the program has ended")
	}
	s.backend.guests.Add(1)
	return s.backend.guests.Done, nil
}
