package egress

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"retort/internal/core"
)

// Decision says whether an attempt to connect was allowed or refused, or that it has ended.
type Decision string

// Decisions about an attempt. Allowed is followed by Ended, or by Refused if a later check denies the attempt.
const (
	Allowed Decision = "allowed"
	Refused Decision = "refused"
	Ended   Decision = "ended"
)

// ConnectionAttempt describes one request or tunnel of a program for the audit log. It contains no path, header or
// body.
type ConnectionAttempt struct {
	Decision       Decision
	Host           string // host name in normal form, or as the program wrote it if it is invalid
	Port           int    // port number; 0 if unknown
	Protocol       string
	Reason         *core.Error // why the attempt was refused or failed; nil otherwise
	Blacklisted    bool        // whether the blacklist names the host or an address that it resolves to
	Sent, Received int64       // number of bytes in bodies or tunnels; set when the attempt has ended
	Took           time.Duration
}

// ExecutionHooks connects a Session to the execution that it serves. Every field is optional.
type ExecutionHooks struct {
	// Note is called with every attempt. An allowed request is sent only after Note has returned nil. Note must be
	// safe for concurrent use. A nil Note is not called.
	Note func(ConnectionAttempt) *core.Error
	// Rehearses marks a dry run. A dry run sends only requests whose method does not change data.
	Rehearses bool
	// Mask replaces secrets in responses. If nil, responses are not changed.
	Mask func([]byte) []byte
	// InForce returns the Network whose rules apply now: the one on which Open was called, or one that WithScopes
	// made from it. It returns the same Network until the rules change. It is called before each attempt and for
	// every read and write on open connections, and must be safe for concurrent use. If nil, the rules never change.
	InForce func() *Network
}

const (
	maxAttempts     = 10_000 // maximum number of attempts per execution
	maxOpenRequests = 64     // maximum number of connections and requests that are open at the same time
)

// Session serves the network requests of one execution, which is one run of a program. It is safe for concurrent use.
type Session struct {
	n         *Network
	x         ExecutionHooks
	ctx       context.Context
	end       context.CancelFunc
	transport *http.Transport
	slots     chan struct{}
	attempts  atomic.Int64
	// number of bytes that the session may still send or receive; negative after the limit was exceeded
	bytes atomic.Int64

	mu       sync.Mutex
	closed   bool
	open     sync.WaitGroup
	aborts   map[string]context.CancelFunc // cancel functions of running requests, by request id
	refusals []*core.Error                 // errors of the first refused attempts, at most eight
}

// Open returns a Session for an execution. The caller must close it.
func (n *Network) Open(x ExecutionHooks) *Session {
	s := &Session{n: n, x: x, slots: make(chan struct{}, maxOpenRequests), aborts: map[string]context.CancelFunc{}}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.bytes.Store(n.o.Bytes)
	s.transport = &http.Transport{
		DialContext: s.dialHTTP, TLSClientConfig: &tls.Config{RootCAs: n.o.Roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: dialTimeout, MaxIdleConns: 32, MaxIdleConnsPerHost: 4, MaxConnsPerHost: 16, IdleConnTimeout: 30 * time.Second,
		MaxResponseHeaderBytes: maxHead, ExpectContinueTimeout: time.Second,
	}
	return s
}

// Close cancels all requests and connections, and returns after all of them have ended.
func (s *Session) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	s.open.Wait()
	s.transport.CloseIdleConnections()
}

// currentNetwork returns the Network whose rules apply now.
func (s *Session) currentNetwork() *Network {
	if s.x.InForce == nil {
		return s.n
	}
	return s.x.InForce()
}

// Refusals returns the errors of the first refused attempts, at most eight.
func (s *Session) Refusals() []*core.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*core.Error(nil), s.refusals...)
}

// beginUse begins an operation. Close waits until the operation has ended. beginUse returns false if the session is
// closed.
func (s *Session) beginUse() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.open.Add(1)
	return true
}

// noteRefusal notes that an attempt to reach the target was refused. It returns why, which is the error with the
// reason.
func (s *Session) noteRefusal(t Target, why *core.Error) *core.Error {
	const most = 8
	s.mu.Lock()
	if len(s.refusals) < most {
		s.refusals = append(s.refusals, why)
	}
	s.mu.Unlock()
	_ = s.noteAttempt(ConnectionAttempt{
		Decision: Refused, Host: t.Host, Port: t.Port, Protocol: t.Protocol, Reason: why,
		Blacklisted: why.Op == opBlacklist || s.n.IsBlacklisted(t.Host),
	}) // it is refused all the same
	return why
}

func (s *Session) noteAttempt(a ConnectionAttempt) *core.Error {
	if s.x.Note == nil {
		return nil
	}
	return s.x.Note(a)
}

// admitRequest decides whether an attempt is allowed, and reports the decision to ExecutionHooks.Note. refused is nil
// if the attempt is allowed.
func (s *Session) admitRequest(t Target, protocols ...string) (allowed []string, refused *core.Error) {
	allowed, key, refused := s.currentNetwork().checkTarget(t, protocols...)
	if refused != nil {
		return nil, s.noteRefusal(t, refused)
	}
	if s.attempts.Add(1) > maxAttempts {
		return nil, s.noteRefusal(t, core.Errorf(core.KindLimit, "egress", "the program made more than %d requests", maxAttempts))
	}
	if wait := s.n.rates.takeToken(key, s.n.o.Now()); wait > 0 {
		return nil, s.noteRefusal(t, core.Errorf(core.KindLimit, "egress", "too many requests to %s: at most %d in %v", key, s.n.o.Rate, s.n.o.Per).
			WithHint("wait %v, or request more data at once (network.rateLimitPerDomain)", wait.Round(time.Millisecond)))
	}
	return allowed, s.noteAttempt(ConnectionAttempt{Decision: Allowed, Host: t.Host, Port: t.Port, Protocol: t.Protocol})
}

// noteEnd reports the end of an attempt that admitRequest has allowed.
func (s *Session) noteEnd(t Target, began time.Time, sent, received int64, failed *core.Error) {
	if failed != nil && failed.IsDenial() {
		_ = s.noteRefusal(t, failed)
		return
	}
	_ = s.noteAttempt(ConnectionAttempt{
		Decision: Ended, Host: t.Host, Port: t.Port, Protocol: t.Protocol, Reason: failed, Sent: sent,
		Received: received, Took: time.Since(began),
	})
}

// takeSlot waits until fewer than maxOpenRequests requests and connections are open. The caller must call free to give
// the slot back. ok is false if ctx or the session ends first.
func (s *Session) takeSlot(ctx context.Context) (free func(), ok bool) {
	select {
	case s.slots <- struct{}{}:
		return func() { <-s.slots }, true
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
	return nil, false
}

// connectTo dials a target that admitRequest has allowed. The bytes of the connection count towards Options.Bytes.
func (s *Session) connectTo(ctx context.Context, t Target) (*meteredConn, *core.Error) {
	if s.bytes.Load() <= 0 {
		return nil, s.bytesSpentError()
	}
	by := s.currentNetwork()
	conn, at, failed := by.dialTarget(ctx, t)
	if failed != nil {
		return nil, failed
	}
	m := &meteredConn{Conn: conn, session: s, host: t.Host, at: at}
	m.by.Store(by)
	return m, nil
}

// dialHTTP connects the HTTP transport to the hosts of requests that admitRequest has allowed.
func (s *Session) dialHTTP(ctx context.Context, _, address string) (net.Conn, error) {
	host, port, refused := parseAuthority(address)
	if refused != nil {
		return nil, refused
	}
	conn, failed := s.connectTo(ctx, Target{Host: host, Port: port})
	if failed != nil {
		return nil, failed
	}
	return conn, nil
}

func (s *Session) bytesSpentError() *core.Error {
	return core.Errorf(core.KindLimit, "egress", "the program has sent and received more than %d bytes (network.bytesPerRun)", s.n.o.Bytes)
}

// meteredConn counts the bytes of a connection. Reading and writing fail when the session has used up its bytes, or
// when the rules no longer allow the connection.
type meteredConn struct {
	net.Conn
	session        *Session
	host           string
	at             netip.Addr
	by             atomic.Pointer[Network] // Network whose rules last allowed the connection
	sent, received atomic.Int64
}

func (m *meteredConn) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	m.received.Add(int64(n))
	return n, m.countBytes(n, err)
}

func (m *meteredConn) Write(b []byte) (int, error) {
	if err := m.countBytes(len(b), nil); err != nil {
		return 0, err
	}
	n, err := m.Conn.Write(b)
	m.sent.Add(int64(n))
	return n, err
}

func (m *meteredConn) countBytes(n int, err error) error {
	if now := m.session.currentNetwork(); now != m.by.Load() {
		if refused := now.checkStillAllowed(m.host, m.at); refused != nil {
			return refused
		}
		m.by.Store(now)
	}
	if m.session.bytes.Add(-int64(n)) < 0 {
		return m.session.bytesSpentError()
	}
	return err
}

// CloseWrite closes the sending half of the connection.
func (m *meteredConn) CloseWrite() error { return closeWrite(m.Conn) }

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
