package warmpool

import (
	"context"
	"sync"

	"retort/internal/sandbox"
	"retort/internal/sandbox/wire/mux"
)

// relayedGuest represents a guest behind a relay. The relay multiplexes the protocol of package wire and the
// program's network connections over one stream.
type relayedGuest struct {
	Guest
	mux   *mux.StreamMux
	first *mux.MuxStream

	mu    sync.Mutex
	serve func(*mux.MuxStream) // serves a connection that the program has opened; nil while no program runs
	all   sync.WaitGroup       // counts the connections that are being served
}

func relayGuest(g Guest) *relayedGuest {
	r := &relayedGuest{Guest: g}
	r.mux = mux.New(g, r.acceptConnection)
	r.first = r.mux.FirstStream()
	go func() { _ = r.mux.ServeFrames() }() // it ends with the guest, and the wire with it
	return r
}

// Read reads from the guest's protocol stream.
func (r *relayedGuest) Read(b []byte) (int, error) { return r.first.Read(b) }

// Write writes to the guest's protocol stream.
func (r *relayedGuest) Write(b []byte) (int, error) { return r.first.Write(b) }

// acceptConnection serves a connection that the program has opened. It closes the connection if there is no proxy to
// serve it.
func (r *relayedGuest) acceptConnection(l *mux.MuxStream) {
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

// forwardConnections lets the proxy serve the connections that a program opens. The proxy is h, if h is a
// sandbox.ConnectionProxy. The returned function shut closes all connections and waits until none is left.
func forwardConnections(g Guest, h sandbox.ToolHost) (shut func()) {
	r, ok := g.(*relayedGuest)
	proxy, is := h.(sandbox.ConnectionProxy)
	if !ok || !is {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.setHandler(func(l *mux.MuxStream) { proxy.ServeConn(ctx, l) })
	return func() {
		cancel()
		r.setHandler(nil)
		r.all.Wait()
	}
}

func (r *relayedGuest) setHandler(serve func(*mux.MuxStream)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.serve = serve
}
