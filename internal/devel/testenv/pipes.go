package testenv

import (
	"context"
	"net"
	"sync"
)

// PipeListener implements an in-memory listener with the address 127.0.0.1:80. Servers and clients use it inside a
// testing/synctest bubble, where real connections would keep the fake clock from advancing.
type PipeListener struct {
	accepted chan net.Conn
	closed   chan struct{}
	end      func()
}

// NewPipes returns an open listener.
func NewPipes() *PipeListener {
	closed := make(chan struct{})
	return &PipeListener{accepted: make(chan net.Conn), closed: closed, end: sync.OnceFunc(func() { close(closed) })}
}

// Dial connects to the listener. It ignores the address.
func (p *PipeListener) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
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
func (p *PipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close makes Accept and Dial fail. Open connections stay open.
func (p *PipeListener) Close() error { p.end(); return nil }

// Addr returns 127.0.0.1:80.
func (p *PipeListener) Addr() net.Addr { return loopbackAddr() }

func loopbackAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// atLoopback wraps a connection and returns 127.0.0.1:80 as its local and remote address.
type atLoopback struct{ net.Conn }

func (atLoopback) LocalAddr() net.Addr  { return loopbackAddr() }
func (atLoopback) RemoteAddr() net.Addr { return loopbackAddr() }
