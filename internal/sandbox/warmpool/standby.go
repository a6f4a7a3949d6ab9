// Package warmpool implements the host's side of sandboxes whose guest is reached over a stream: child processes,
// containers and virtual machines. It keeps started guests ready, gives each to one program, serves the program over
// the protocol of package wire, and ends the guest. Backends differ only in how they start a guest, which a GuestKind
// describes, and in how they limit and end it, which a Guest implements.
package warmpool

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox"
)

// Options configures a Backend.
type Options struct {
	Kind sandbox.BackendKind
	// Capabilities finds out the capabilities of the backend. It is called once, when they are first needed, and may
	// take long.
	Capabilities func() sandbox.Capabilities
	// Changing says that the capabilities can change. Capabilities is then called for every sandbox, so only its first
	// call may take long.
	Changing bool
	Kinds    []GuestKind
	// Label returns the name of the backend and the warning, or "", for the reports of programs. If Label is nil,
	// reports have the name in Kind and the Warning of the capabilities.
	Label func() (backend, warning string)
	// Command runs a command in its own sandbox, with the limits of its program. When it returns, no process or file
	// of the command is left. Its error is a *core.Error. Command is nil if programs cannot start commands.
	Command func(ctx context.Context, c sandbox.HostCommand, l core.Limits) (sandbox.CommandResult, error)
	// Folders says that Command gives commands the folders of the workspace. Otherwise a command that needs them is
	// refused.
	Folders bool
	// KeepParsed is how long a guest that has parsed a program waits for the order to run that program. Zero means two
	// seconds.
	KeepParsed time.Duration
	// Closed is called once when all guests are gone. It may be nil.
	Closed func() error
}

// Backend implements sandbox.Backend with pools of started guests. It is safe for concurrent use.
type Backend struct {
	Options
	kinds map[string]*guestPool
	known chan struct{} // closed when the capabilities are known for good; nil if they can change
	// parsed holds the guests that have parsed a program for the method Parse.
	parsed parsedGuests

	ctx  context.Context // context of all guests; it ends when the backend is closed
	stop context.CancelFunc

	mu      sync.Mutex
	running map[*pooledSandbox]struct{}
	closed  bool
	guests  sync.WaitGroup // counts the guests and commands that have been started and are not gone yet
	once    func() error
}

type guestPool struct {
	GuestKind
	pool *WarmPool[*ReadyGuest]
}

var _ sandbox.Backend = (*Backend)(nil)

// New returns a Backend, which the caller must close.
func New(o Options) *Backend {
	b := &Backend{}
	b.Open(o)
	return b
}

// Open initializes a Backend whose zero value is part of another struct, and starts guests. It is for backends whose
// functions in o use the Backend themselves, perhaps before Open returns. The caller must close b.
func (b *Backend) Open(o Options) {
	b.Options, b.kinds, b.running = o, map[string]*guestPool{}, map[*pooledSandbox]struct{}{}
	b.ctx, b.stop = context.WithCancel(context.Background())
	b.once = sync.OnceValue(b.finishClose)
	b.parsed.within = cmp.Or(o.KeepParsed, 2*time.Second)
	if !o.Changing {
		b.known = make(chan struct{})
		b.Options.Capabilities = sync.OnceValue(func() sandbox.Capabilities {
			defer close(b.known)
			return o.Capabilities()
		})
	}
	for _, k := range o.Kinds {
		b.kinds[k.Runtime] = b.openPool(k)
	}
}

func (b *Backend) openPool(k GuestKind) *guestPool {
	least, most := cmp.Or(k.Warm, 2), cmp.Or(k.MaxWarm, 8)
	if k.Once {
		least, most = min(least, 1), 1
	}
	least = max(least, 0)
	start := k.Supply
	if start == nil {
		start = func() (*ReadyGuest, error) { return b.StartGuest(k) }
	}
	return &guestPool{k, NewPool(PoolOptions[*ReadyGuest]{
		Start: start, Least: least, Most: max(least, most), Lazy: !k.Ahead, Once: k.Once, Calm: !k.Eager,
	})}
}

// Kind implements sandbox.Backend.
func (b *Backend) Kind() sandbox.BackendKind { return b.Options.Kind }

// Capabilities implements sandbox.Backend.
func (b *Backend) Capabilities() sandbox.Capabilities { return b.Options.Capabilities() }

// ReadyGuests returns the guests of a runtime that wait for programs. It is for tests of backends.
func (b *Backend) ReadyGuests(runtime string) []Guest {
	var guests []Guest
	for _, m := range b.kinds[runtime].pool.ReadyItems() {
		guests = append(guests, m.guest)
	}
	return guests
}

// Prepare implements sandbox.Backend. It takes the guest that has parsed the program, or another one that is ready, or
// waits until one has started.
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
	m := b.parsed.takeGuest(s)
	if m == nil {
		if m, err = k.pool.Take(ctx); err != nil {
			return nil, b.unavailableError(ctx, err)
		}
	}
	sandbox := &pooledSandbox{backend: b, kind: k, member: m, spec: s}
	sandbox.label, sandbox.warning = b.labelReports(have)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		m.Kill()
		return nil, b.unavailableError(ctx, ErrClosed)
	}
	b.running[sandbox] = struct{}{}
	return sandbox, nil
}

// labelReports returns the name of the backend and the warning, or "", for the reports of programs.
func (b *Backend) labelReports(have sandbox.Capabilities) (backend, warning string) {
	if b.Label != nil {
		return b.Label()
	}
	return b.Kind().Name, have.Warning
}

// haveSoon returns the capabilities of the backend, like the method Capabilities. If they are not known yet, it waits,
// but only until ctx ends, and then returns the error of ctx.
func (b *Backend) haveSoon(ctx context.Context) (sandbox.Capabilities, error) {
	select {
	case <-b.known:
		return b.Capabilities(), nil
	default:
	}
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
	for _, s := range running { // before their guests end, so that the programs are reported as cancelled
		_ = s.Close()
	}
	b.stop()
	for _, k := range b.kinds {
		k.pool.Close()
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
