package warmpool

import (
	"context"
	"sync"
	"time"

	"retort/internal/sandbox"
	"retort/internal/sandbox/wire/mux"
)

// closeTimeout bounds how long a program's connections may take to close after the program has ended. Then the guest
// is killed.
const closeTimeout = time.Second

// guestRelay represents the connection to a guest behind a relay. The relay multiplexes the protocol of package wire
// and the program's network connections over one stream.
type guestRelay struct {
	guest Guest
	mux   *mux.StreamMux
	first *mux.MuxStream

	mu    sync.Mutex
	serve func(*mux.MuxStream) // serves a connection that the program has opened; nil while no program runs
	all   sync.WaitGroup       // counts the connections that are being served
}

func relayGuest(g Guest) *guestRelay {
	r := &guestRelay{guest: g}
	r.mux = mux.New(g, r.acceptConnection)
	r.first = r.mux.FirstStream()
	go func() { _ = r.mux.ServeFrames() }() // it ends with the guest, and the wire with it
	return r
}

// Read reads from the guest's protocol stream.
func (r *guestRelay) Read(b []byte) (int, error) { return r.first.Read(b) }

// Write writes to the guest's protocol stream.
func (r *guestRelay) Write(b []byte) (int, error) { return r.first.Write(b) }

// Close closes the connection to the guest, which ends the guest.
func (r *guestRelay) Close() error { return r.guest.Close() }

// acceptConnection serves a connection that the program has opened. It closes the connection if there is no proxy to
// serve it.
func (r *guestRelay) acceptConnection(l *mux.MuxStream) {
	defer l.Close()
	r.mu.Lock()
	serve := r.serve
	if serve != nil {
		r.all.Add(1)
	}
	r.mu.Unlock()
	if serve != nil {
		defer r.all.Done()
		serve(l)
	}
}

// forwardConnections lets h serve the connections that the program opens, if h is a sandbox.ConnectionProxy. The
// returned function shut closes all connections and waits until none is left.
func (m *ReadyGuest) forwardConnections(h sandbox.ToolHost) (shut func()) {
	if m.forwarder == nil {
		return func() {}
	}
	proxy, _ := h.(sandbox.ConnectionProxy)
	return m.forwarder.ForwardConnections(proxy)
}

// ForwardConnections implements ConnectionForwarder.
func (r *guestRelay) ForwardConnections(proxy sandbox.ConnectionProxy) (shut func()) {
	if proxy == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.setHandler(func(l *mux.MuxStream) { proxy.ServeConn(ctx, l) })
	return func() {
		cancel()
		r.setHandler(nil)
		late := time.AfterFunc(closeTimeout, r.guest.Kill) // should the relay not listen to anybody
		defer late.Stop()
		r.all.Wait()
	}
}

func (r *guestRelay) setHandler(serve func(*mux.MuxStream)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.serve = serve
}
