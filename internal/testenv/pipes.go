package testenv

import (
	"context"
	"net"
	"sync"
)

// Pipes is a listener in memory, at 127.0.0.1:80. It lets servers and clients speak inside a bubble
// of testing/synctest, where connections of the system would keep the time from passing.
type Pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
	end      func()
}

// NewPipes makes a listener that nobody has connected to yet.
func NewPipes() *Pipes {
	closed := make(chan struct{})
	return &Pipes{accepted: make(chan net.Conn), closed: closed, end: sync.OnceFunc(func() { close(closed) })}
}

// Dial connects to the listener, whatever the address is.
func (p *Pipes) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.accepted <- atLoopback{theirs}:
		return atLoopback{ours}, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept returns the next connection.
func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and Dial. Connections that were made go on.
func (p *Pipes) Close() error { p.end(); return nil }

// Addr returns the address that clients of this machine would use.
func (p *Pipes) Addr() net.Addr { return loopback() }

func loopback() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// atLoopback is a pipe whose ends have the address of this machine.
type atLoopback struct{ net.Conn }

func (atLoopback) LocalAddr() net.Addr  { return loopback() }
func (atLoopback) RemoteAddr() net.Addr { return loopback() }
