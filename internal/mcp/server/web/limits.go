package web

import (
	"cmp"
	"context"
	"net"
	"runtime"
	"sync"
	"time"

	"retort/internal/core"
)

// ListenerLimits bounds what clients can use of a listener. A zero field means a default, never "unlimited".
type ListenerLimits struct {
	Body        int64 // maximum number of bytes of a request body
	Header      int   // maximum number of bytes of a request's headers
	Connections int   // maximum number of concurrent connections
	// PerAddress bounds the concurrent connections from one address. An IPv6 network of 64 bits counts as one address.
	PerAddress  int
	Sessions    int           // maximum per principal; a new session ends the one that was unused for longest
	AllSessions int           // maximum number of sessions of all principals together
	Executions  int           // maximum number of a principal's executions that have not ended
	Requests    int           // maximum number of requests of a principal per minute
	Programs    int           // maximum number of programs that run concurrently; others wait for their turn
	Idle        time.Duration // time after which an unused session ends
	Read        time.Duration // maximum time that a request may take to arrive
	Write       time.Duration // maximum time that a client may take to accept one piece of an answer
	Drain       time.Duration // time that pending calls get to finish when the listener shuts down
}

func (l ListenerLimits) withDefaults() ListenerLimits {
	return ListenerLimits{
		Body: cmp.Or(l.Body, core.DefaultHTTPBody), Header: cmp.Or(l.Header, core.DefaultHTTPHeader), Connections: cmp.Or(l.Connections, core.DefaultConnections),
		PerAddress: cmp.Or(l.PerAddress, max(64, cmp.Or(l.Connections, core.DefaultConnections)/4)),
		Sessions:   cmp.Or(l.Sessions, core.DefaultSessions), AllSessions: cmp.Or(l.AllSessions, core.DefaultAllSessions),
		Executions: cmp.Or(l.Executions, core.DefaultExecutions), Requests: cmp.Or(l.Requests, core.DefaultHTTPRequests),
		Programs: cmp.Or(l.Programs, max(32, 8*runtime.NumCPU())),
		Idle:     cmp.Or(l.Idle, core.DefaultSessionIdle), Read: cmp.Or(l.Read, core.DefaultReadTimeout),
		Write: cmp.Or(l.Write, 30*time.Second), Drain: cmp.Or(l.Drain, core.DefaultDrainTimeout),
	}
}

const (
	maxHeaderTime  = 10 * time.Second
	idleConnection = 2 * time.Minute
)

// limitedListener accepts a bounded number of connections; others wait. It closes further connections from an address
// that has used up its share, so that one client cannot keep out all others.
type limitedListener struct {
	net.Listener
	free chan struct{}
	done chan struct{}
	end  sync.Once
	most int // maximum number of connections from one address

	mu   sync.Mutex
	from map[string]int
}

func limitConnections(l net.Listener, n, most int) net.Listener {
	return &limitedListener{Listener: l, free: make(chan struct{}, n), done: make(chan struct{}), most: most, from: map[string]int{}}
}

func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.free <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			<-l.free
			return nil, err
		}
		from := networkOf(c.RemoteAddr().String())
		if !l.enterConnection(from) {
			_ = c.Close()
			continue
		}
		return &countedConn{Conn: c, done: sync.OnceFunc(func() { l.leaveConnection(from); <-l.free })}, nil
	}
}

func (l *limitedListener) enterConnection(from string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.from[from] >= l.most {
		return false
	}
	l.from[from]++
	return true
}

func (l *limitedListener) leaveConnection(from string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.from[from]--; l.from[from] == 0 {
		delete(l.from, from)
	}
}

func (l *limitedListener) Close() error {
	l.end.Do(func() { close(l.done) })
	return l.Listener.Close()
}

type countedConn struct {
	net.Conn
	done func()
}

// Close releases the connection's place in the limits before it closes the connection. A client that
// sees the close can therefore connect again without being refused.
func (c *countedConn) Close() error {
	c.done()
	return c.Conn.Close()
}

// gatedEngine wraps an Engine and bounds the number of programs that run at the same time. While a program waits for
// an approval, another one may run in its place.
type gatedEngine struct {
	Engine
	slots chan struct{}
}

func (g gatedEngine) Execute(ctx context.Context, r core.ExecutionRequest) core.Outcome {
	if !g.takeSlot(ctx) {
		return core.Outcome{
			Status: core.StatusCancelled,
			Error:  core.Errorf(core.KindCancelled, "http", "the request ended before the program could run"),
		}
	}
	defer g.releaseSlot()
	return g.Engine.Execute(g.releaseSlotDuringApproval(ctx), r)
}

func (g gatedEngine) takeSlot(ctx context.Context) bool {
	select {
	case g.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (g gatedEngine) releaseSlot() { <-g.slots }

func (g gatedEngine) releaseSlotDuringApproval(ctx context.Context) context.Context {
	ask := core.ChannelOf(ctx)
	if ask == nil {
		return ctx
	}
	return core.WithChannel(ctx, func(ctx context.Context, a core.Approval) (core.ApprovalAnswer, bool) {
		g.releaseSlot()
		defer func() { g.slots <- struct{}{} }()
		return ask(ctx, a)
	})
}
