package process

import (
	"context"
	"errors"
	"sync"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/wire"
)

// childSandbox implements the sandbox of one program with a child process and its limits.
type childSandbox struct {
	backend *Backend
	kind    *childKind
	child   *guestChild
	limits  core.Limits

	mu     sync.Mutex
	used   bool
	closed bool
	over   bool                    // the program has ended, so the child will exit by itself
	cancel context.CancelCauseFunc // cancels the running program; nil while no program runs
}

// Run implements sandbox.Sandbox.
func (s *childSandbox) Run(ctx context.Context, p core.CheckedProgram, h sandbox.ToolHost) (sandbox.RunReport, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := s.beginRun(cancel); err != nil {
		return sandbox.RunReport{}, err
	}
	defer s.backend.forgetSandbox(s)
	p.Limits = p.Limits.WithDefaults(s.limits).WithDefaults(core.DefaultLimits())
	s.child.setLimits(p.Limits, s.kind.plan.Processes)
	s.child.began = time.Now()
	s.child.peak.Note(s.child.residentBefore())
	stop := s.child.watchLimits(p.Limits, s.kind.plan.Processes, cancel)
	shut := s.child.forwardConnections(h)
	served := p
	if measures {
		served.Limits.Computing = 0
	}
	end, err := wire.ServeProgram(ctx, s.child.conn, served, h)
	shut()
	stop()
	s.releaseChild()
	if errors.Is(err, wire.ErrGone) {
		s.explainExit(&end, p)
	}
	report := sandbox.RunReport{
		Status: end.Status, Value: end.Value, Error: end.Error, Output: end.Output, Warnings: end.Warnings,
		MemoryBytes: s.child.peak.Bytes(), Runtime: s.kind.runtime, Backend: name, Bounds: s.child.group.DescribeLimits(),
	}
	if s.backend.check().weak {
		report.Backend = weakly
		report.Warnings = append(report.Warnings, "the sandbox was weak: this machine refuses namespaces; run `retort doctor` to see why")
	}
	return report, nil
}

func (s *childSandbox) beginRun(cancel context.CancelCauseFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used {
		return core.Errorf(core.KindInternal, "process.run", "a sandbox can run only one program")
	}
	s.used, s.cancel = true, cancel
	if s.closed {
		cancel(context.Canceled)
	}
	return nil
}

// idleExitDelay is how long a child whose program has ended lives on before it is killed. Killing it immediately would
// take a processor from the process that reads the result. The delay is shorter than the pause after which the pool
// starts another child, so that the old child is gone before the new one starts.
const idleExitDelay = 5 * time.Millisecond

// releaseChild ends the child, whose program has ended, after idleExitDelay. It is idempotent.
func (s *childSandbox) releaseChild() {
	s.child.measureMemory()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	time.AfterFunc(idleExitDelay, s.child.Kill)
}

// Close implements sandbox.Sandbox. It kills the child, unless the program has ended and the child ends soon anyway.
// It does not wait for the child's end. Backend.Close waits until all children have ended.
func (s *childSandbox) Close() error {
	s.mu.Lock()
	s.closed = true
	if s.cancel != nil {
		s.cancel(context.Canceled)
	}
	over := s.over
	s.mu.Unlock()
	if !over {
		s.child.Kill()
	}
	s.backend.forgetSandbox(s)
	return nil
}
