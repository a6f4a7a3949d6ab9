package egress

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"retort/internal/core"
)

const (
	maxHello     = 128 << 10
	helloTimeout = 30 * time.Second
	extensionECH = 0xfe0d
)

// openTunnel answers a CONNECT request. By default the tunnel must carry TLS for the requested host. It may carry
// other data if a rule allows tcp for the target, and must carry SSH if ssh is the only protocol allowed. If only
// http is allowed, the tunnel carries plain requests, and each of them is decided separately. In that case openTunnel
// returns true, because requests follow on the same connection.
func (p *proxyConn) openTunnel(h requestHead) (requests bool) {
	t := Target{Host: authorityOf("tunnel://" + h.target), Protocol: https}
	host, port, refused := parseAuthority(h.target)
	if refused == nil {
		t.Host, t.Port = host, port
		refused = p.checkTunnel(h, t)
	}
	if refused != nil {
		p.replyError(p.noteRefusal(t, refused))
		return false
	}
	if p.speaksHTTP(t) {
		p.origin = Target{Host: host, Port: port, Protocol: http1}
		_, err := io.WriteString(p.conn, establishedReply)
		return err == nil
	}
	if p.speaksSSH(t) {
		t.Protocol = ssh
	}
	allowed, refused := p.admitRequest(t, https, wss, tcp, ssh)
	if refused != nil {
		p.replyError(refused)
		return false
	}
	begins := beginsTLS
	switch {
	case slices.Contains(allowed, tcp):
		begins = beginsAnyhow
	case t.Protocol == ssh:
		begins = beginsSSH
	}
	p.relayTunnel(t, begins)
	return false
}

// tunnelProtocol names the protocol that the program must speak first in a tunnel.
type tunnelProtocol int

const (
	beginsTLS tunnelProtocol = iota // TLS for the host named in the CONNECT request
	beginsSSH
	beginsAnyhow
)

// speaksSSH reports whether ssh is the only protocol allowed for a target.
func (p *proxyConn) speaksSSH(t Target) bool {
	if _, _, refused := p.currentNetwork().checkTarget(t, https, wss, tcp); refused == nil {
		return false
	}
	_, _, refused := p.currentNetwork().checkTarget(t, ssh)
	return refused == nil
}

const establishedReply = "HTTP/1.1 200 Connection established\r\n\r\n"

// speaksHTTP reports whether a tunnel to the target may carry nothing but plain http requests. Inside a tunnel it
// returns false.
func (p *proxyConn) speaksHTTP(t Target) bool {
	if _, _, refused := p.currentNetwork().checkTarget(t, https, wss, tcp); refused == nil || p.origin.Host != "" {
		return false
	}
	_, _, refused := p.currentNetwork().checkTarget(Target{t.Host, t.Port, http1}, http1)
	return refused == nil || p.upgradeToHTTPS(Target{t.Host, t.Port, http1}).Protocol == https
}

// relayTunnel connects to a target that admitRequest has allowed, and serves the tunnel until it ends.
func (p *proxyConn) relayTunnel(t Target, begins tunnelProtocol) {
	began := time.Now()
	conn, failed := p.connectTo(p.ctx, t)
	if failed != nil {
		p.noteEnd(t, began, 0, 0, failed)
		p.replyError(failed)
		return
	}
	defer conn.Close()
	failed = p.relayProtocol(conn, t, begins)
	p.noteEnd(t, began, conn.sent.Load(), conn.received.Load(), failed)
}

// checkTunnel returns an error if a CONNECT request is refused for a reason other than its host, such as a body or a
// dry run. Otherwise it returns nil.
func (p *proxyConn) checkTunnel(h requestHead, t Target) *core.Error {
	switch {
	case !h.sameHost(t):
		return policyErrorf("the tunnel is to %s, but its Host header is %s", t, quoteShort(h.host))
	case h.chunked || h.length != "" && h.length != "0":
		return policyErrorf("a CONNECT request may not have a body")
	case p.x.Rehearses:
		return policyErrorf("a dry run sends nothing: a tunnel to %s was not opened", t.Host).WithHint("run the program without dry_run")
	case len(p.n.secretsOf(t.Host)) > 0 && t.Port != defaultPorts[http1]:
		return policyErrorf("requests to %s need a secret header (network.secrets), which cannot be added inside a tunnel", t.Host).
			WithHint(
				"request http://%s/… instead: the proxy continues with https and adds the header. In JavaScript and TypeScript, fetch does this by itself",
				t.Host,
			)
	}
	return nil
}

// relayProtocol tells the program that its tunnel is open and checks what the program sends first. It then copies
// data in both directions.
func (p *proxyConn) relayProtocol(conn *meteredConn, t Target, begins tunnelProtocol) *core.Error {
	if _, err := io.WriteString(p.conn, establishedReply); err != nil {
		return nil
	}
	switch begins {
	case beginsSSH:
		return p.copyBoth(conn, t, &sshGreetingReader{in: p.in, host: t.Host})
	case beginsTLS:
		_ = p.conn.SetReadDeadline(time.Now().Add(helloTimeout))
		hello, refused := readHello(p.in, t.Host)
		if refused != nil {
			return refused
		}
		_ = p.conn.SetReadDeadline(time.Time{})
		if _, err := conn.Write(hello); err != nil {
			return p.requestError(p.ctx, t, err)
		}
	}
	return p.copyBoth(conn, t, p.in)
}

// sshGreetingReader reads what a program sends in a tunnel for SSH. It fails unless the data begins with the SSH
// greeting. The tunnel does not wait for the greeting, because the server may send first.
type sshGreetingReader struct {
	in   *bufio.Reader // not embedded, because io.Copy would then call its WriteTo method
	host string
	seen bool
}

func (g *sshGreetingReader) Read(b []byte) (int, error) {
	if !g.seen {
		const greeting = "SSH-"
		begun, err := g.in.Peek(len(greeting))
		switch {
		case string(begun) == greeting:
		case err != nil && strings.HasPrefix(greeting, string(begun)):
			return 0, err
		default:
			return 0, policyErrorf("the tunnel to %s does not carry SSH", g.host)
		}
		g.seen = true
	}
	return g.in.Read(b)
}

func (p *proxyConn) copyBoth(conn *meteredConn, t Target, from io.Reader) *core.Error {
	var both sync.WaitGroup
	var failed [2]error
	copying := func(i int, to net.Conn, from io.Reader) {
		if _, failed[i] = io.Copy(plainWriter{to}, from); failed[i] != nil {
			_, _ = conn.Close(), p.conn.Close()
			return
		}
		_ = closeWrite(to)
	}
	both.Go(func() { copying(0, conn, from) })
	both.Go(func() { copying(1, p.conn, conn) })
	both.Wait()
	for _, err := range failed {
		var typed *core.Error
		if errors.As(err, &typed) {
			return typed
		}
	}
	if p.ctx.Err() != nil {
		return p.requestError(p.ctx, t, p.ctx.Err())
	}
	return nil
}

// plainWriter hides all methods of a writer except Write. Otherwise io.Copy could use another method and bypass the
// connection that counts the bytes.
type plainWriter struct{ io.Writer }

var errSeen = errors.New("seen")

// readHello reads the beginning of a program's tunnel. That must be a TLS ClientHello that names host in its SNI and
// only HTTP protocols in its ALPN. readHello returns all bytes that it read.
func readHello(in *bufio.Reader, host string) ([]byte, *core.Error) {
	first, err := in.Peek(1)
	if err != nil {
		return nil, policyErrorf("the tunnel to %s ended before any data was sent", host)
	}
	if first[0] != 0x16 {
		return nil, policyErrorf("the tunnel to %s does not carry TLS", host).WithHint(
			"a rule with protocols: [tcp] and ports allows other protocols",
		)
	}
	read := &recordingConn{in: io.LimitReader(in, maxHello)}
	var hello *tls.ClientHelloInfo
	_ = tls.Server(read, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		hello = h
		return nil, errSeen
	}}).Handshake()
	switch {
	case hello == nil:
		return nil, policyErrorf("the tunnel to %s does not begin with a valid TLS ClientHello", host)
	case hello.ServerName == "":
		return nil, policyErrorf("TLS in the tunnel to %s does not name a host (SNI)", host)
	case slices.Contains(hello.Extensions, extensionECH):
		return nil, policyErrorf("TLS in the tunnel to %s hides its host (ECH)", host)
	}
	if name, refused := ParseHost(hello.ServerName); refused != nil || name != host {
		return nil, policyErrorf("the tunnel is to %s, but TLS in it is for %s (SNI)", host, quoteShort(hello.ServerName))
	}
	for _, protocol := range hello.SupportedProtos {
		if !slices.Contains([]string{"http/1.1", "http/1.0", "h2"}, protocol) {
			return nil, policyErrorf("the tunnel to %s is for the protocol %s (ALPN)", host, quoteShort(protocol))
		}
	}
	return read.all.Bytes(), nil
}

// recordingConn implements a read-only connection that keeps all bytes that were read from it.
type recordingConn struct {
	net.Conn
	in  io.Reader
	all bytes.Buffer
}

func (r *recordingConn) Read(b []byte) (int, error) {
	n, err := r.in.Read(b)
	r.all.Write(b[:n])
	return n, err
}

func (r *recordingConn) Write(b []byte) (int, error)      { return len(b), nil }
func (r *recordingConn) Close() error                     { return nil }
func (r *recordingConn) SetDeadline(time.Time) error      { return nil }
func (r *recordingConn) SetReadDeadline(time.Time) error  { return nil }
func (r *recordingConn) SetWriteDeadline(time.Time) error { return nil }
func (r *recordingConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (r *recordingConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
