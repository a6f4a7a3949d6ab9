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

// pooledSandbox implements the sandbox of one program with a guest from a pool.
type pooledSandbox struct {
	backend *Backend
	kind    *guestPool
	member  *ReadyGuest
	spec    sandbox.SandboxSpec
	label   string // name of the backend for the report
	warning string // warning for the report, or ""

	mu     sync.Mutex
	used   bool
	over   bool // the program has ended, so the guest is killed soon
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
	defer s.releaseGuest()
	p.Limits = p.Limits.WithDefaults(s.spec.Limits).WithDefaults(core.DefaultLimits())
	s.member.guest.Limit(p.Limits)
	served, stop := s.member.watchProgram(p, cancel)
	shut := s.member.forwardConnections(h)
	end, err := wire.ServeProgram(ctx, s.member.conn, served, h)
	shut()
	stop()
	if errors.Is(err, wire.ErrGone) {
		s.explainExit(&end, p)
	}
	report := sandbox.RunReport{
		Status: end.Status, Value: end.Value, Error: end.Error, Output: end.Output, Warnings: end.Warnings,
		MemoryBytes: s.member.guest.Peak(), Runtime: s.kind.Runtime, Backend: s.label, Bounds: s.member.guest.Bounds(),
	}
	if s.warning != "" {
		report.Warnings = append(report.Warnings, s.warning)
	}
	return report, nil
}

// watchProgram lets the guest watch the program, if it is a ProgramWatcher. It returns the program as the wire must
// serve it: without a limit that the guest watches.
func (m *ReadyGuest) watchProgram(
	p core.CheckedProgram, cancel context.CancelCauseFunc,
) (served core.CheckedProgram, stop func()) {
	w, ok := m.guest.(ProgramWatcher)
	if !ok {
		return p, func() {}
	}
	stop = w.Watch(p.Limits, cancel)
	p.Limits.Computing = 0
	return p, stop
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

// Close implements sandbox.Sandbox. It kills the guest, unless the program has ended and the guest is killed soon
// anyway. It does not wait for the guest's end. Backend.Close does.
func (s *pooledSandbox) Close() error {
	s.mu.Lock()
	s.closed = true
	if s.cancel != nil {
		s.cancel(context.Canceled)
	}
	over := s.over
	s.mu.Unlock()
	if !over {
		s.member.Kill()
	}
	s.backend.forgetSandbox(s)
	return nil
}

// Guest returns the guest in which the program runs. It is for tests of backends.
func (s *pooledSandbox) Guest() Guest { return s.member.guest }

// releaseGuest records that the program has ended, and ends its guest after GuestKind.Linger.
func (s *pooledSandbox) releaseGuest() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	if s.kind.Linger == 0 {
		s.member.Kill()
		return
	}
	time.AfterFunc(s.kind.Linger, s.member.Kill)
}

// Start implements sandbox.CommandStarter for backends that can run commands.
func (s *pooledSandbox) Start(ctx context.Context, c sandbox.HostCommand) (sandbox.CommandResult, error) {
	if s.backend.Command == nil {
		return sandbox.CommandResult{}, sandbox.NoCommands(s.backend.Kind())
	}
	if !s.backend.Folders && c.NeedsFolders() {
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
	if err == nil && !s.backend.Folders {
		c.ExplainFailure(&ended, s.backend.Kind().Name)
	}
	return ended, err
}

// enterRunning registers a command that the program in this sandbox starts. Backend.Close then waits until the
// returned function done is called. It returns an error if the program has ended.
func (s *pooledSandbox) enterRunning() (done func(), refused *core.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.used || s.over || s.closed || !s.backend.register() {
		return nil, core.Errorf(core.KindCancelled, s.backend.Kind().Name+".command", "the program has ended")
	}
	return s.backend.guests.Done, nil
}
