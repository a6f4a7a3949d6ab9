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

// tunnel answers CONNECT, and reports whether requests follow on the same connection. A tunnel must carry TLS for the
// requested host, unless a rule allows tcp or only ssh there. If only http is allowed there, the tunnel carries
// requests, and each of them is decided separately.
func (p *proxied) tunnel(h head) (requests bool) {
	t := Target{Host: authorityOf("tunnel://" + h.target), Protocol: https}
	host, port, refused := parseAuthority(h.target)
	if refused == nil {
		t.Host, t.Port = host, port
		refused = p.tunnels(h, t)
	}
	if refused != nil {
		p.reply(p.refused(t, refused))
		return false
	}
	if p.speaksHTTP(t) {
		p.origin = Target{Host: host, Port: port, Protocol: http1}
		_, err := io.WriteString(p.conn, established)
		return err == nil
	}
	if p.speaksSSH(t) {
		t.Protocol = ssh
	}
	allowed, refused := p.admit(t, https, wss, tcp, ssh)
	if refused != nil {
		p.reply(refused)
		return false
	}
	begins := beginsTLS
	switch {
	case slices.Contains(allowed, tcp):
		begins = beginsAnyhow
	case t.Protocol == ssh:
		begins = beginsSSH
	}
	p.open(t, begins)
	return false
}

// beginning selects the protocol with which a program must begin a tunnel.
type beginning int

const (
	beginsTLS beginning = iota // for the host that was asked for
	beginsSSH
	beginsAnyhow
)

// speaksSSH reports whether ssh is the only protocol allowed for a target.
func (p *proxied) speaksSSH(t Target) bool {
	if _, _, refused := p.network().permit(t, https, wss, tcp); refused == nil {
		return false
	}
	_, _, refused := p.network().permit(t, ssh)
	return refused == nil
}

const established = "HTTP/1.1 200 Connection established\r\n\r\n"

// speaksHTTP reports whether http is the only protocol allowed for a target. It is false inside of a tunnel.
func (p *proxied) speaksHTTP(t Target) bool {
	if _, _, refused := p.network().permit(t, https, wss, tcp); refused == nil || p.origin.Host != "" {
		return false
	}
	_, _, refused := p.network().permit(Target{t.Host, t.Port, http1}, http1)
	return refused == nil || p.sealed(Target{t.Host, t.Port, http1}).Protocol == https
}

// open connects to a target that was admitted, and serves the tunnel until it ends.
func (p *proxied) open(t Target, begins beginning) {
	began := time.Now()
	conn, failed := p.connect(p.ctx, t)
	if failed != nil {
		p.ended(t, began, 0, 0, failed)
		p.reply(failed)
		return
	}
	defer conn.Close()
	failed = p.through(conn, t, begins)
	p.ended(t, began, conn.sent.Load(), conn.received.Load(), failed)
}

// tunnels returns an error if a CONNECT is refused for a reason other than the lists, else nil.
func (p *proxied) tunnels(h head, t Target) *core.Error {
	switch {
	case !h.sameHost(t):
		return refuse("the tunnel is to %s, and its header Host says %s", t, shown(h.host))
	case h.chunked || h.length != "" && h.length != "0":
		return refuse("a CONNECT has no body")
	case p.x.Rehearses:
		return refuse("a dry run sends nothing: a tunnel to %s was not opened", t.Host).WithHint("run the program without dry_run")
	case len(p.n.secretsOf(t.Host)) > 0 && t.Port != ports[http1]:
		return refuse("%s gets a header that programs do not see (network.secrets), which cannot be added inside of a tunnel", t.Host).
			WithHint(
				"ask for http://%s/… : the proxy goes on with https, and adds the header. In JavaScript and TypeScript fetch does it by itself",
				t.Host,
			)
	}
	return nil
}

// through checks what the program sends first, and then copies in both directions.
func (p *proxied) through(conn *metered, t Target, begins beginning) *core.Error {
	if _, err := io.WriteString(p.conn, established); err != nil {
		return nil
	}
	switch begins {
	case beginsSSH:
		return p.splice(conn, t, &greeted{in: p.in, host: t.Host})
	case beginsTLS:
		_ = p.conn.SetReadDeadline(time.Now().Add(helloTimeout))
		hello, refused := readHello(p.in, t.Host)
		if refused != nil {
			return refused
		}
		_ = p.conn.SetReadDeadline(time.Time{})
		if _, err := conn.Write(hello); err != nil {
			return p.failure(p.ctx, t, err)
		}
	}
	return p.splice(conn, t, p.in)
}

// greeted reads what a program sends in a tunnel for SSH. It fails unless that begins with the SSH greeting. The
// server may speak first, so the tunnel does not wait for the greeting.
type greeted struct {
	in   *bufio.Reader // not embedded: io.Copy would take its WriteTo
	host string
	seen bool
}

func (g *greeted) Read(b []byte) (int, error) {
	if !g.seen {
		const greeting = "SSH-"
		begun, err := g.in.Peek(len(greeting))
		switch {
		case string(begun) == greeting:
		case err != nil && strings.HasPrefix(greeting, string(begun)):
			return 0, err
		default:
			return 0, refuse("the tunnel to %s does not carry SSH", g.host)
		}
		g.seen = true
	}
	return g.in.Read(b)
}

func (p *proxied) splice(conn *metered, t Target, from io.Reader) *core.Error {
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
		return p.failure(p.ctx, t, p.ctx.Err())
	}
	return nil
}

// plainWriter hides the other methods of a writer, so that io.Copy cannot bypass the connection that counts the
// bytes.
type plainWriter struct{ io.Writer }

var errSeen = errors.New("seen")

// readHello reads the beginning of a program's tunnel, which must be a TLS ClientHello that names host (SNI) and only
// HTTP protocols (ALPN). It returns all bytes that it read.
func readHello(in *bufio.Reader, host string) ([]byte, *core.Error) {
	first, err := in.Peek(1)
	if err != nil {
		return nil, refuse("the tunnel to %s ended before it began", host)
	}
	if first[0] != 0x16 {
		return nil, refuse("the tunnel to %s does not carry TLS", host).WithHint(
			"a rule with protocols: [tcp] and its ports allows anything there",
		)
	}
	read := &recorded{in: io.LimitReader(in, maxHello)}
	var hello *tls.ClientHelloInfo
	_ = tls.Server(read, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		hello = h
		return nil, errSeen
	}}).Handshake()
	switch {
	case hello == nil:
		return nil, refuse("the tunnel to %s does not begin with a valid TLS ClientHello", host)
	case hello.ServerName == "":
		return nil, refuse("TLS in the tunnel to %s names no host (SNI)", host)
	case slices.Contains(hello.Extensions, extensionECH):
		return nil, refuse("TLS in the tunnel to %s hides the host that it is for (ECH)", host)
	}
	if name, refused := ParseHost(hello.ServerName); refused != nil || name != host {
		return nil, refuse("the tunnel is to %s, and TLS in it is for %s (SNI)", host, shown(hello.ServerName))
	}
	for _, protocol := range hello.SupportedProtos {
		if !slices.Contains([]string{"http/1.1", "http/1.0", "h2"}, protocol) {
			return nil, refuse("the tunnel to %s is for the protocol %s (ALPN)", host, shown(protocol))
		}
	}
	return read.all.Bytes(), nil
}

// recorded implements a connection that only reads, and keeps all bytes that were read.
type recorded struct {
	net.Conn
	in  io.Reader
	all bytes.Buffer
}

func (r *recorded) Read(b []byte) (int, error) {
	n, err := r.in.Read(b)
	r.all.Write(b[:n])
	return n, err
}

func (r *recorded) Write(b []byte) (int, error)      { return len(b), nil }
func (r *recorded) Close() error                     { return nil }
func (r *recorded) SetDeadline(time.Time) error      { return nil }
func (r *recorded) SetReadDeadline(time.Time) error  { return nil }
func (r *recorded) SetWriteDeadline(time.Time) error { return nil }
func (r *recorded) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (r *recorded) LocalAddr() net.Addr              { return &net.TCPAddr{} }
