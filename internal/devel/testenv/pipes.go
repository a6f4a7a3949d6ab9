package testenv

import (
	"context"
	"net"
	"sync"
)

// Pipes is an in-memory listener with the address 127.0.0.1:80. Servers and clients use it inside a
// testing/synctest bubble, where real connections would keep the fake clock from advancing.
type Pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
	end      func()
}

// NewPipes returns an open listener.
func NewPipes() *Pipes {
	closed := make(chan struct{})
	return &Pipes{accepted: make(chan net.Conn), closed: closed, end: sync.OnceFunc(func() { close(closed) })}
}

// Dial connects to the listener. It ignores the address.
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

// Close makes Accept and Dial fail. Open connections stay open.
func (p *Pipes) Close() error { p.end(); return nil }

// Addr returns 127.0.0.1:80.
func (p *Pipes) Addr() net.Addr { return loopback() }

func loopback() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// atLoopback is a connection whose local and remote addresses are 127.0.0.1:80.
type atLoopback struct{ net.Conn }

func (atLoopback) LocalAddr() net.Addr  { return loopback() }
func (atLoopback) RemoteAddr() net.Addr { return loopback() }
