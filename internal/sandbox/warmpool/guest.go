package warmpool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/wire"
)

// Guest represents a started guest. It runs one program and is then discarded. A Guest may also implement
// ProgramWatcher and ConnectionForwarder.
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
	// Bounds names, for reports, the mechanisms that enforce the limits.
	Bounds() string
	// Explain sets the status and error in the argument end for a guest that ended by itself: because it ran out of
	// memory, was killed or crashed. It is called after the connection to the guest has ended. It may wait a moment
	// for the cause. The caller fills in the fields that Explain does not set. Explain is also called for a guest that
	// has not become ready, and then p has no code.
	Explain(end *wire.ProgramEnd, p core.CheckedProgram)
}

// ProgramWatcher is an optional interface of a Guest. It is for guests that can give the reason why they end a program
// and that measure its computing time, which the wire can only estimate from the program's waiting.
type ProgramWatcher interface {
	// Watch enforces the limits of the program, including core.Limits.Computing. It is called after Limit and before
	// the guest gets the program. If the program exceeds a limit, Watch calls cancel with a *wire.StopReason. The
	// returned function stop ends the watching and waits until that has happened.
	Watch(l core.Limits, cancel context.CancelCauseFunc) (stop func())
}

// ConnectionForwarder is an optional interface of a Guest whose programs can open network connections without a relay
// (GuestKind.Relayed).
type ConnectionForwarder interface {
	// ForwardConnections lets the proxy serve the connections that the program opens. If proxy is nil, the program's
	// connections are refused. ForwardConnections is called before the guest gets its program. The returned function
	// shut closes all connections and waits until none is left.
	ForwardConnections(proxy sandbox.ConnectionProxy) (shut func())
}

// GuestKind describes how to start guests of one runtime.
type GuestKind struct {
	Runtime string
	// Start starts a guest, which need not be ready yet. If it fails, it must leave nothing of the guest behind. An
	// error that is a *core.Error is returned unchanged to the caller that requested the sandbox.
	Start func(ctx context.Context) (Guest, error)
	// Supply returns a ready guest for the pool, instead of Start. It is for backends that already have such a guest
	// or try several ways to start one. It gets the guest from Backend.StartGuest. Its errors are like those of Start.
	Supply func() (*ReadyGuest, error)
	// Harness holds the compiled harness, the code that runs programs in the guest. A guest receives it in the first
	// frame. Harness is nil if the guest already contains its harness.
	Harness []byte
	// Within bounds how long a guest may take from its start until it is ready. Zero means one minute.
	Within time.Duration
	// Warm sets the number of guests that wait for programs under low load. Zero means 2, a negative number means
	// none. MaxWarm is the maximum number under load. Zero means 8.
	Warm, MaxWarm int
	// Ahead makes the pool start guests before the first request.
	Ahead bool
	// Once says that only one program is expected. At most one guest waits for it, and no other replaces it.
	Once bool
	// Eager makes the pool replace a guest shortly after a program has got it. Otherwise the pool waits for the end of
	// the program, as long as other guests are ready. Eager is for guests whose start takes little processor time.
	Eager bool
	// Linger is how long a guest whose program has ended lives on before it is killed. It keeps the kernel's work of
	// ending a process from delaying the process that reads the result. Zero means to kill the guest immediately.
	Linger time.Duration
	// Relayed marks guests behind a relay (confine.Relayed). The relay sends several streams: the first carries the
	// protocol of package wire, the others are connections for the sandbox.ConnectionProxy of the program's ToolHost.
	Relayed bool
}

// ReadyGuest represents a guest that has sent its ready frame and can receive a program.
type ReadyGuest struct {
	guest     Guest
	conn      *wire.FrameConn
	forwarder ConnectionForwarder // nil if the program cannot open network connections
}

// newReady returns a ReadyGuest for a guest that is not ready yet.
func newReady(g Guest, k GuestKind) *ReadyGuest {
	if k.Relayed {
		r := relayGuest(g)
		return &ReadyGuest{g, wire.NewConn(r), r}
	}
	m := &ReadyGuest{guest: g, conn: wire.NewConn(g)}
	m.forwarder, _ = g.(ConnectionForwarder)
	return m
}

// IsAlive reports whether the guest still runs.
func (m *ReadyGuest) IsAlive() bool {
	select {
	case <-m.guest.Gone():
		return false
	default:
		return true
	}
}

// Kill ends the guest.
func (m *ReadyGuest) Kill() {
	m.guest.Kill()
	_ = m.conn.Close()
}

// StartGuest starts a guest with k.Start and waits until it is ready for a program. Closing the backend ends the guest.
// The error names the reason if the guest itself gave one.
func (b *Backend) StartGuest(k GuestKind) (*ReadyGuest, error) {
	k.Within = cmp.Or(k.Within, time.Minute)
	ctx, cancel := context.WithTimeout(b.ctx, k.Within)
	defer cancel()
	m, err := b.beginGuest(ctx, k)
	if err != nil {
		return nil, err
	}
	release := context.AfterFunc(ctx, m.Kill)
	if k.Harness != nil {
		_ = m.conn.SendFrame(wire.HarnessFrame(k.Harness)) // the next call reports a failure
	}
	ready, err := wire.ReadGreeting(m.conn)
	inTime := release()
	switch {
	case err == nil && inTime && ready.Runtime == k.Runtime:
		return m, nil
	case err == nil && inTime:
		err = fmt.Errorf("it is a guest for %s, not for %s", ready.Runtime, k.Runtime)
	case b.ctx.Err() != nil:
		err = ErrClosed
	case !inTime:
		err = fmt.Errorf("it was not ready after %v", k.Within)
	}
	return nil, b.failGuest(m, err)
}

// beginGuest starts a guest and registers it, so that Backend.Close ends it and waits until it is gone.
func (b *Backend) beginGuest(ctx context.Context, k GuestKind) (*ReadyGuest, error) {
	if !b.register() {
		return nil, ErrClosed
	}
	guest, err := k.Start(ctx)
	if err != nil {
		b.guests.Done()
		if b.ctx.Err() != nil {
			return nil, ErrClosed
		}
		return nil, err
	}
	m := newReady(guest, k)
	go func() {
		defer b.guests.Done()
		defer context.AfterFunc(b.ctx, m.Kill)()
		<-guest.Gone()
	}()
	return m, nil
}

// register adds a guest or a command that Backend.Close waits for. The caller must call b.guests.Done when it is gone.
// register reports false if the backend is closed.
func (b *Backend) register() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.guests.Add(1)
	}
	return !b.closed
}

// failGuest ends a guest that did not become ready. It returns an error that contains err and, if there is one, the
// guest's own explanation of its end.
func (b *Backend) failGuest(m *ReadyGuest, err error) error {
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
