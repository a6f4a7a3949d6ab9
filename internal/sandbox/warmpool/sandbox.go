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

// closeTimeout bounds how long a program's connections may take to close after the program has ended. Then the guest
// is killed.
const closeTimeout = time.Second

// pooledSandbox implements the sandbox of one program with a guest from a pool.
type pooledSandbox struct {
	backend *Backend
	kind    *guestPool
	member  *greetedGuest
	spec    sandbox.SandboxSpec
	warning string

	mu     sync.Mutex
	used   bool
	over   bool // the program has ended
	closed bool
	cancel context.CancelCauseFunc // cancels the running program; nil while no program runs
}

// Run implements sandbox.Sandbox.
func (s *pooledSandbox) Run(ctx context.Context, p core.CheckedProgram, h sandbox.ToolHost) (sandbox.RunReport, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := s.beginRun(cancel); err != nil {
		return sandbox.RunReport{}, err
	}
	defer s.backend.forgetSandbox(s)
	defer s.kind.pool.AllowRefill()
	defer s.finishRun()
	p.Limits = p.Limits.WithDefaults(s.spec.Limits).WithDefaults(core.DefaultLimits())
	s.member.guest.Limit(p.Limits)
	shut := forwardConnections(s.member.guest, h)
	end, err := wire.ServeProgram(ctx, s.member.conn, p, h)
	late := time.AfterFunc(closeTimeout, s.member.guest.Kill) // should its relay not listen to anybody
	shut()
	late.Stop()
	if errors.Is(err, wire.ErrGone) {
		s.explainExit(&end, p)
	}
	report := sandbox.RunReport{
		Status: end.Status, Value: end.Value, Error: end.Error, Output: end.Output, Warnings: end.Warnings, MemoryBytes: s.member.guest.Peak(),
		Runtime: s.kind.Runtime, Backend: s.backend.Kind().Name, Bounds: s.kind.Bounds,
	}
	if s.warning != "" {
		report.Warnings = append(report.Warnings, s.warning)
	}
	s.member.Kill()
	return report, nil
}

// explainExit lets the guest explain why it ended, and fills in what the guest leaves out.
func (s *pooledSandbox) explainExit(end *wire.ProgramEnd, p core.CheckedProgram) {
	s.member.guest.Explain(end, p)
	end.Status = cmp.Or(end.Status, core.StatusError)
	if end.Error == nil {
		end.Error = core.Errorf(core.KindRuntime, s.backend.Kind().Name+".run", "the sandbox ended unexpectedly").
			WithHint("calls that the program made before may have taken effect; run it again in smaller steps")
	}
}

func (s *pooledSandbox) beginRun(cancel context.CancelCauseFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used {
		return core.Errorf(core.KindInternal, s.backend.Kind().Name+".run", "a sandbox can run only one program")
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
	s.backend.forgetSandbox(s)
	return nil
}

// finishRun records that the program has ended.
func (s *pooledSandbox) finishRun() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

// Start implements sandbox.CommandStarter for backends that can run commands.
func (s *pooledSandbox) Start(ctx context.Context, c sandbox.HostCommand) (sandbox.CommandResult, error) {
	if s.backend.Command == nil {
		return sandbox.CommandResult{}, sandbox.NoCommands(s.backend.Kind())
	}
	if c.NeedsFolders() {
		return sandbox.CommandResult{}, sandbox.NoFolders(c.Name, s.backend.Kind().Name)
	}
	done, refused := s.enterRunning()
	if refused != nil {
		return sandbox.CommandResult{}, refused
	}
	defer done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.backend.ctx, cancel)()
	ended, err := s.backend.Command(ctx, c, s.spec.Limits.WithDefaults(core.DefaultLimits()))
	if err == nil {
		c.ExplainFailure(&ended, s.backend.Kind().Name)
	}
	return ended, err
}

// enterRunning registers a command that the program in this sandbox starts. Backend.Close then waits until the
// returned function done is called. It returns an error if the program has ended.
func (s *pooledSandbox) enterRunning() (done func(), refused *core.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backend.mu.Lock()
	defer s.backend.mu.Unlock()
	if !s.used || s.over || s.closed || s.backend.closed {
		return nil, core.Errorf(core.KindCancelled, s.backend.Kind().Name+".command", "the program has ended")
	}
	s.backend.guests.Add(1)
	return s.backend.guests.Done, nil
}
