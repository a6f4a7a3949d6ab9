package warmpool

import (
	"context"
	"sync"

	"retort/internal/sandbox"
	"retort/internal/sandbox/wire/mux"
)

// relayed represents a guest that is reached through a relay.
type relayed struct {
	Guest
	mux   *mux.Mux
	first *mux.Lane

	mu    sync.Mutex
	serve func(*mux.Lane) // nil without a program
	all   sync.WaitGroup  // connections that are being served
}

func relay(g Guest) *relayed {
	r := &relayed{Guest: g}
	r.mux = mux.New(g, r.accept)
	r.first = r.mux.First()
	go func() { _ = r.mux.Serve() }() // it ends with the guest, and the wire with it
	return r
}

// Read reads from the wire.
func (r *relayed) Read(b []byte) (int, error) { return r.first.Read(b) }

// Write writes to the wire.
func (r *relayed) Write(b []byte) (int, error) { return r.first.Write(b) }

// accept handles a connection of the program. It closes the connection if nothing serves it.
func (r *relayed) accept(l *mux.Lane) {
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

// lead passes the connections that a program opens to h, if h is a Proxy. shut stops this and returns when no
// connection is left.
func lead(g Guest, h sandbox.Host) (shut func()) {
	r, ok := g.(*relayed)
	proxy, is := h.(sandbox.Proxy)
	if !ok || !is {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.set(func(l *mux.Lane) { proxy.ServeConn(ctx, l) })
	return func() {
		cancel()
		r.set(nil)
		r.all.Wait()
	}
}

func (r *relayed) set(serve func(*mux.Lane)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.serve = serve
}
