// Package warmpool is the host's side of sandboxes whose guest is reached over a stream: containers and virtual
// machines. It keeps started guests ready, gives each to one program, serves it over package wire and ends the guest.
// Such backends differ only in how a guest is started, which a Kind describes.
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
	// ReadWriteCloser is the wire. Closing it ends the guest.
	io.ReadWriteCloser
	// Kill ends the guest. It is idempotent and returns at once.
	Kill()
	// Gone returns a channel that is closed when nothing of the guest is left.
	Gone() <-chan struct{}
	// Limit sets the limits of the program for a guest that has no program yet, if they differ from those that it was
	// started with.
	Limit(core.Limits)
	// Peak returns the peak memory of the guest, in bytes, or 0 if unknown.
	Peak() int64
	// Explain sets how a program ended whose guest ended by itself: it ran out of memory, was killed or crashed. It
	// is called after the wire has ended and may wait a moment to find out. The caller fills in what it leaves empty.
	Explain(end *wire.ProgramEnd, p core.CheckedProgram)
}

// GuestKind describes how guests of one runtime are started.
type GuestKind struct {
	Runtime string
	// Start starts a guest. After an error nothing may be left behind. The guest need not be ready or greeted. A
	// *core.Error reaches the caller that asked for the sandbox unchanged.
	Start func(ctx context.Context) (Guest, error)
	// Harness returns the compiled harness that a guest waits for in the first frame. It is nil if guests have their
	// own.
	Harness func() []byte
	// Within bounds the time from start to ready. Zero means 30 s.
	Within time.Duration
	// Warm sets the number of guests that wait when idle. Zero means 2; a negative number means none. MaxWarm is the
	// number that may wait under load. Zero means 8.
	Warm, MaxWarm int
	// Ahead starts guests before the first request.
	Ahead bool
	// Bounds describes what enforces the limits, for reports.
	Bounds string
	// Relayed marks guests behind a relay (confine.Relayed). They send several streams: the first is the wire, and
	// the others are connections for the Proxy that the program's Host is.
	Relayed bool
}

// Options configure a Backend.
type Options struct {
	Kind sandbox.BackendKind
	// Capabilities returns what the backend can do now. It is called often and must return at once after the first
	// time. Its Warning is added to every report.
	Capabilities func() sandbox.Capabilities
	Kinds        []GuestKind
	// Command runs a command in a sandbox of its own, with the limits of its program. It returns when nothing of the
	// command is left. It is nil if there are no commands. Its error is a *core.Error.
	Command func(ctx context.Context, c sandbox.HostCommand, l core.Limits) (sandbox.CommandResult, error)
	// Closed is called once when all guests are gone. It may be nil.
	Closed func() error
}

// Backend is a sandbox.Backend of guests. It is safe for concurrent use.
type Backend struct {
	Options
	kinds map[string]*guestPool

	ctx  context.Context // ends with the backend
	stop context.CancelFunc

	mu      sync.Mutex
	running map[*pooledSandbox]struct{}
	closed  bool
	guests  sync.WaitGroup // guests that have been started and are not gone yet
	once    func() error
}

type guestPool struct {
	GuestKind
	pool *Pool[*greetedGuest]
}

var _ sandbox.Backend = (*Backend)(nil)

// New makes a Backend, which the caller must close.
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
		k.Within = 30 * time.Second
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

// greetedGuest represents a guest that has sent its greeting.
type greetedGuest struct {
	guest Guest
	conn  *wire.Conn
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
		_ = m.conn.Send(wire.HarnessFrame(k.Harness())) // the next call reports a failure
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

// beginGuest starts a guest and counts it until it is gone.
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

// failGuest ends a guest that did not become ready and returns the reason, as the guest explains it if it can.
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
		).WithHint("`retort doctor` says what is wrong")
	}
	return core.Errorf(
		core.KindSandboxUnavailable, b.Kind().Name, "the guest did not become ready: %w: %s", err, end.Error.Message,
	).WithHint("`retort doctor` says what is wrong")
}

// Kind implements sandbox.Backend.
func (b *Backend) Kind() sandbox.BackendKind { return b.Options.Kind }

// Capabilities implements sandbox.Backend.
func (b *Backend) Capabilities() sandbox.Capabilities { return b.Options.Capabilities() }

// Prepare implements sandbox.Backend. It takes a guest that is ready, or waits for one
// to be started.
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

// haveSoon works like Capabilities with a context, for callers that may stop waiting for what it tries.
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
		WithHint("`retort doctor` says what is wrong; another sandbox may do")
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
