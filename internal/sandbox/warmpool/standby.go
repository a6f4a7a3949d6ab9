// Package warmpool implements the host's side of sandboxes whose guest is reached over a stream: containers and
// virtual machines. It keeps started guests ready, gives each to one program, serves the program over the protocol of
// package wire, and ends the guest. Such backends differ only in how they start a guest, which a GuestKind describes.
package warmpool

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/wire"
)

// Guest represents a started guest. It runs one program and is then discarded.
type Guest interface {
	// ReadWriteCloser is the connection to the guest, in the protocol of package wire. Closing it ends the guest.
	io.ReadWriteCloser
	// Kill ends the guest. It is idempotent and returns immediately.
	Kill()
	// Gone returns a channel that is closed when all processes and files of the guest are gone.
	Gone() <-chan struct{}
	// Limit sets the limits of the program, if they differ from the limits with which the guest was started. It is
	// called before the guest gets the program.
	Limit(core.Limits)
	// Peak returns the peak memory of the guest, in bytes, or 0 if it is unknown.
	Peak() int64
	// Explain sets the status and error in the argument end for a guest that ended by itself: because it ran out of
	// memory, was killed or crashed. It is called after the connection to the guest has ended. It may wait a moment
	// for the cause. The caller fills in the fields that Explain does not set.
	Explain(end *wire.ProgramEnd, p core.CheckedProgram)
}

// GuestKind describes how to start guests of one runtime.
type GuestKind struct {
	Runtime string
	// Start starts a guest, which need not be ready yet. If it fails, it must leave nothing of the guest behind. An
	// error that is a *core.Error is returned unchanged to the caller that requested the sandbox.
	Start func(ctx context.Context) (Guest, error)
	// Harness returns the compiled harness, the code that runs programs in the guest. A guest receives it in the
	// first frame. Harness is nil if guests already contain their harness.
	Harness func() []byte
	// Within bounds how long a guest may take from its start until it is ready. Zero means one minute.
	Within time.Duration
	// Warm sets the number of guests that wait for programs under low load. Zero means 2, a negative number means
	// none. MaxWarm is the maximum number under load. Zero means 8.
	Warm, MaxWarm int
	// Ahead makes the pool start guests before the first request.
	Ahead bool
	// Bounds names, for reports, the mechanisms that enforce the limits.
	Bounds string
	// Relayed marks guests behind a relay (confine.Relayed). The relay sends several streams: the first carries the
	// protocol of package wire, the others are connections for the sandbox.ConnectionProxy of the program's ToolHost.
	Relayed bool
}

// Options configures a Backend.
type Options struct {
	Kind sandbox.BackendKind
	// Capabilities returns the current capabilities of the backend. It is called often, so only its first call may
	// take long. Its Warning is added to every report.
	Capabilities func() sandbox.Capabilities
	Kinds        []GuestKind
	// Command runs a command in its own sandbox, with the limits of its program. When it returns, no process or file
	// of the command is left. Its error is a *core.Error. Command is nil if programs cannot start commands.
	Command func(ctx context.Context, c sandbox.HostCommand, l core.Limits) (sandbox.CommandResult, error)
	// Closed is called once when all guests are gone. It may be nil.
	Closed func() error
}

// Backend implements sandbox.Backend with pools of started guests. It is safe for concurrent use.
type Backend struct {
	Options
	kinds map[string]*guestPool

	ctx  context.Context // context of all guests; it ends when the backend is closed
	stop context.CancelFunc

	mu      sync.Mutex
	running map[*pooledSandbox]struct{}
	closed  bool
	guests  sync.WaitGroup // counts the guests that have been started and are not gone yet
	once    func() error
}

type guestPool struct {
	GuestKind
	pool *WarmPool[*greetedGuest]
}

var _ sandbox.Backend = (*Backend)(nil)

// New returns a Backend, which the caller must close.
func New(o Options) *Backend {
	b := &Backend{Options: o, kinds: map[string]*guestPool{}, running: map[*pooledSandbox]struct{}{}}
	b.ctx, b.stop = context.WithCancel(context.Background())
	b.once = sync.OnceValue(b.finishClose)
	for _, k := range o.Kinds {
		b.kinds[k.Runtime] = b.openPool(k)
	}
	return b
}

func (b *Backend) openPool(k GuestKind) *guestPool {
	if k.Within == 0 {
		k.Within = time.Minute
	}
	if k.Warm == 0 {
		k.Warm = 2
	}
	if k.MaxWarm == 0 {
		k.MaxWarm = 8
	}
	least := max(k.Warm, 0)
	opened := &guestPool{GuestKind: k}
	opened.pool = NewPool(PoolOptions[*greetedGuest]{
		Start: func() (*greetedGuest, error) { return b.startGuest(k) }, Least: least, Most: max(least, k.MaxWarm),
		Lazy: !k.Ahead, Calm: true,
	})
	return opened
}

// greetedGuest represents a guest that has sent its ready frame and can receive a program.
type greetedGuest struct {
	guest Guest
	conn  *wire.FrameConn
}

// IsAlive reports whether the guest still runs.
func (m *greetedGuest) IsAlive() bool {
	select {
	case <-m.guest.Gone():
		return false
	default:
		return true
	}
}

// Kill ends the guest.
func (m *greetedGuest) Kill() {
	m.guest.Kill()
	_ = m.conn.Close()
}

// startGuest starts a guest and waits until it is ready for a program.
func (b *Backend) startGuest(k GuestKind) (*greetedGuest, error) {
	ctx, cancel := context.WithTimeout(b.ctx, k.Within)
	defer cancel()
	guest, err := b.beginGuest(ctx, k)
	if err != nil {
		return nil, err
	}
	if k.Relayed {
		guest = relayGuest(guest)
	}
	m := &greetedGuest{guest, wire.NewConn(guest)}
	release := context.AfterFunc(ctx, m.Kill)
	if k.Harness != nil {
		_ = m.conn.SendFrame(wire.HarnessFrame(k.Harness())) // the next call reports a failure
	}
	ready, err := wire.ReadGreeting(m.conn)
	inTime := release()
	switch {
	case err == nil && inTime && ready.Runtime == k.Runtime:
		return m, nil
	case err == nil && inTime:
		err = core.Errorf(core.KindInternal, b.Kind().Name, "it is a guest for %s, not for %s", ready.Runtime, k.Runtime)
	case b.ctx.Err() != nil:
		err = ErrClosed
	case !inTime:
		err = core.Errorf(core.KindSandboxUnavailable, b.Kind().Name, "it was not ready after %v", k.Within)
	}
	return nil, b.failGuest(m, err)
}

// beginGuest starts a guest and registers it, so that Backend.Close waits until the guest is gone.
func (b *Backend) beginGuest(ctx context.Context, k GuestKind) (Guest, error) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil, ErrClosed
	}
	b.guests.Add(1)
	b.mu.Unlock()
	guest, err := k.Start(ctx)
	if err != nil {
		b.guests.Done()
		if b.ctx.Err() != nil {
			return nil, ErrClosed
		}
		return nil, err
	}
	go func() {
		<-guest.Gone()
		b.guests.Done()
	}()
	return guest, nil
}

// failGuest ends a guest that did not become ready. It returns an error that contains err and, if there is one, the
// guest's own explanation of its end.
func (b *Backend) failGuest(m *greetedGuest, err error) error {
	m.Kill()
	if errors.Is(err, ErrClosed) {
		return err
	}
	var end wire.ProgramEnd
	m.guest.Explain(&end, core.CheckedProgram{Limits: core.DefaultLimits()})
	if end.Error == nil {
		return core.Errorf(
			core.KindSandboxUnavailable, b.Kind().Name, "the guest did not become ready: %w", err,
		).WithHint("run `retort doctor` to see what is wrong")
	}
	return core.Errorf(
		core.KindSandboxUnavailable, b.Kind().Name, "the guest did not become ready: %w: %s", err, end.Error.Message,
	).WithHint("run `retort doctor` to see what is wrong")
}

// Kind implements sandbox.Backend.
func (b *Backend) Kind() sandbox.BackendKind { return b.Options.Kind }

// Capabilities implements sandbox.Backend.
func (b *Backend) Capabilities() sandbox.Capabilities { return b.Options.Capabilities() }

// Prepare implements sandbox.Backend. It takes a guest that is ready, or waits until one has started.
func (b *Backend) Prepare(ctx context.Context, s sandbox.SandboxSpec) (sandbox.Sandbox, error) {
	have, err := b.haveSoon(ctx)
	if err != nil {
		return nil, b.unavailableError(ctx, err)
	}
	k := b.kinds[s.Runtime]
	switch {
	case have.Unavailable != nil && !b.isClosed():
		return nil, have.Unavailable
	case k == nil || !slices.Contains(have.Runtimes, s.Runtime) && !b.isClosed():
		return nil, core.Errorf(core.KindSandboxUnavailable, b.Kind().Name+".prepare", "%s has no runtime %q", b.Kind().Title(), s.Runtime).
			WithHint("it has %s", strings.Join(have.Runtimes, ", "))
	}
	m, err := k.pool.Take(ctx)
	if err != nil {
		return nil, b.unavailableError(ctx, err)
	}
	sandbox := &pooledSandbox{backend: b, kind: k, member: m, spec: s, warning: have.Warning}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		m.Kill()
		return nil, b.unavailableError(ctx, ErrClosed)
	}
	b.running[sandbox] = struct{}{}
	return sandbox, nil
}

// haveSoon returns the capabilities of the backend, like the method Capabilities. If they are not known yet, it waits,
// but only until ctx ends, and then returns the error of ctx.
func (b *Backend) haveSoon(ctx context.Context) (sandbox.Capabilities, error) {
	found := make(chan sandbox.Capabilities, 1)
	go func() { found <- b.Capabilities() }()
	select {
	case have := <-found:
		return have, nil
	case <-ctx.Done():
		return sandbox.Capabilities{}, ctx.Err()
	}
}

func (b *Backend) unavailableError(ctx context.Context, err error) *core.Error {
	var known *core.Error
	switch {
	case ctx.Err() != nil:
		return core.Errorf(core.KindCancelled, b.Kind().Name+".prepare", "the execution was cancelled")
	case errors.As(err, &known):
		return known
	}
	return core.Errorf(core.KindSandboxUnavailable, b.Kind().Name+".prepare", "no %s sandbox could be started: %w", b.Kind().Name, err).
		WithHint("run `retort doctor` to see what is wrong; another sandbox may work")
}

func (b *Backend) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// Close implements sandbox.Backend.
func (b *Backend) Close() error { return b.once() }

func (b *Backend) finishClose() error {
	b.mu.Lock()
	b.closed = true
	running := make([]*pooledSandbox, 0, len(b.running))
	for s := range b.running {
		running = append(running, s)
	}
	b.mu.Unlock()
	b.stop()
	for _, k := range b.kinds {
		k.pool.Close()
	}
	for _, s := range running {
		_ = s.Close()
	}
	b.guests.Wait()
	if b.Closed == nil {
		return nil
	}
	return b.Closed()
}

func (b *Backend) forgetSandbox(s *pooledSandbox) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.running, s)
}
