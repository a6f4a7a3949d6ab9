package egress

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"retort/internal/core"
)

const (
	maxHead     = 64 << 10
	headTimeout = 30 * time.Second
	idleTimeout = 2 * time.Minute // maximum pause between two requests on a connection
)

// ServeConn acts as an HTTP proxy for a program that has opened the connection conn. It answers CONNECT requests and
// requests with an absolute http URL. It returns after conn has been closed or ctx is done, and closes conn.
func (s *Session) ServeConn(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	if !s.beginUse() {
		return
	}
	defer s.open.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	free, ok := s.takeSlot(ctx)
	if !ok {
		return
	}
	defer free()
	p := &proxyConn{Session: s, ctx: ctx, conn: conn, in: bufio.NewReaderSize(conn, maxHead)}
	for p.serveRequest() {
	}
}

// proxyConn holds the state of one connection between a program and the proxy.
type proxyConn struct {
	*Session
	ctx    context.Context
	conn   net.Conn
	in     *bufio.Reader
	origin Target // target of requests that name no host, in a tunnel for plain http
}

// serveRequest answers one request, and reports whether another request may follow on the same connection.
func (p *proxyConn) serveRequest() bool {
	_ = p.conn.SetReadDeadline(time.Now().Add(idleTimeout))
	raw, err := peekHead(p.in, func() { _ = p.conn.SetReadDeadline(time.Now().Add(headTimeout)) })
	if err != nil {
		if refused, ok := err.(*core.Error); ok {
			p.replyError(p.noteRefusal(Target{}, refused))
		}
		return false
	}
	h, refused := readHead(raw)
	if refused != nil {
		p.replyError(p.noteRefusal(Target{Host: authorityOf(h.target)}, refused))
		return false
	}
	if h.method != http.MethodConnect {
		return p.forwardRequest(h)
	}
	_, _ = p.in.Discard(len(raw))
	_ = p.conn.SetReadDeadline(time.Time{})
	return p.openTunnel(h)
}

// replyError sends an error response. Its status line repeats the message, because some clients show nothing else.
func (p *proxyConn) replyError(e *core.Error) {
	status := http.StatusForbidden
	switch e.Kind {
	case core.KindLimit:
		status = http.StatusTooManyRequests
	case core.KindUpstreamTimeout:
		status = http.StatusGatewayTimeout
	case core.KindUpstreamGone, core.KindInternal, core.KindCancelled:
		status = http.StatusBadGateway
	}
	body, err := json.Marshal(map[string]any{"error": e})
	if err != nil {
		body = []byte("{}")
	}
	_ = p.conn.SetWriteDeadline(time.Now().Add(headTimeout))
	_, _ = fmt.Fprintf(
		p.conn, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		status, StatusPhrase(e.Message), len(body), body,
	)
}

// StatusPhrase converts a message to a form that fits into an HTTP status line: printable ASCII, at most 300 bytes.
func StatusPhrase(message string) string {
	const most = 300
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, message[:min(len(message), most)])
}

// peekHead returns the head of the next request, including the empty line at its end, without consuming it. It calls
// begun when the first byte has arrived. If the head is invalid or too long, it returns a typed error. It returns read
// errors unchanged.
func peekHead(in *bufio.Reader, begun func()) ([]byte, error) {
	if _, err := in.Peek(1); err != nil {
		return nil, err
	}
	begun()
	for {
		some, _ := in.Peek(in.Buffered())
		if end := bytes.Index(some, []byte("\r\n\r\n")); end >= 0 {
			return some[:end+4], nil
		}
		if bytes.Contains(some, []byte("\n\n")) || some[0] < 'A' || some[0] > 'Z' {
			return nil, policyErrorf("this is not an HTTP request")
		}
		if len(some) >= maxHead {
			return nil, core.Errorf(core.KindLimit, "egress", "the head of the request has more than %d bytes", maxHead)
		}
		if _, err := in.Peek(len(some) + 1); err != nil {
			return nil, err
		}
	}
}

// requestHead holds those parts of a request's head that are checked.
type requestHead struct {
	method, target, version string
	host                    string // value of the Host header, or ""
	length                  string // value of the Content-Length header
	chunked, upgrade        bool
}

// readHead parses the head of a request strictly. It refuses a head that two parsers could
// understand differently.
func readHead(raw []byte) (h requestHead, refused *core.Error) {
	lines := strings.Split(strings.TrimSuffix(string(raw), "\r\n\r\n"), "\r\n")
	first := strings.Split(lines[0], " ")
	if len(first) != 3 || !isHeaderName(first[0]) || first[0] != strings.ToUpper(first[0]) || first[1] == "" || !isPlain(lines[0]) {
		return h, policyErrorf("the first line of the request is not valid HTTP/1")
	}
	h.method, h.target, h.version = first[0], first[1], first[2]
	if h.version != "HTTP/1.1" && h.version != "HTTP/1.0" {
		return h, policyErrorf("the request uses %s instead of HTTP/1.1", quoteShort(h.version))
	}
	seen := map[string]bool{}
	for _, line := range lines[1:] {
		name, value, ok := strings.Cut(line, ":")
		if !ok || !isHeaderName(name) || !isHeaderValue(value) {
			return h, policyErrorf("the request has an invalid header: %s", quoteShort(line))
		}
		name, value = strings.ToLower(name), strings.Trim(value, " \t")
		if seen[name] && slices.Contains([]string{"host", "content-length", "transfer-encoding"}, name) {
			return h, policyErrorf("the request has %s more than once", name)
		}
		seen[name] = true
		if refused := h.parseHeader(name, value); refused != nil {
			return h, refused
		}
	}
	if h.chunked && h.length != "" {
		return h, policyErrorf("the request has both a content length and chunked encoding")
	}
	return h, nil
}

func (h *requestHead) parseHeader(name, value string) *core.Error {
	switch name {
	case "host":
		if h.host = value; value == "" {
			return policyErrorf("the request has an empty host")
		}
	case "content-length":
		if h.length = value; value == "" || strings.Trim(value, "0123456789") != "" || len(value) > 15 {
			return policyErrorf("the request has an invalid length: %s", quoteShort(value))
		}
	case "transfer-encoding":
		if h.chunked = true; !strings.EqualFold(value, "chunked") {
			return policyErrorf("the request has an unsupported transfer encoding: %s", quoteShort(value))
		}
	case "upgrade":
		h.upgrade = true
	case "connection":
		h.upgrade = h.upgrade || strings.Contains(strings.ToLower(value), "upgrade")
	}
	return nil
}

func isPlain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

// sameHost reports whether the Host header names the same host and port as the request line. It returns true if there
// is no Host header.
func (h *requestHead) sameHost(t Target) bool {
	if h.host == "" {
		return true
	}
	host, port := h.host, t.Port
	if at := strings.LastIndexByte(h.host, ':'); at >= 0 {
		n, refused := ParsePort(h.host[at+1:])
		if refused != nil {
			return false
		}
		host, port = h.host[:at], n
	}
	name, refused := ParseHost(host)
	return refused == nil && name == t.Host && port == t.Port
}

// forwardRequest makes a request with an absolute URL, and reports whether another request may follow on the same
// connection.
func (p *proxyConn) forwardRequest(h requestHead) bool {
	t, req, refused := p.buildRequest(h)
	if refused != nil {
		p.replyError(refused)
		return false
	}
	if strings.EqualFold(req.Header.Get("Expect"), "100-continue") {
		_, _ = io.WriteString(p.conn, "HTTP/1.1 100 Continue\r\n\r\n")
	}
	began := time.Now()
	resp, failed := p.roundTrip(cloneForUpstream(p.ctx, req), t)
	if failed != nil {
		p.noteEnd(t, began, 0, 0, failed)
		p.replyError(failed)
		return false
	}
	defer resp.Body.Close()
	again := !req.Close && req.ContentLength == 0 && h.version == "HTTP/1.1"
	received, failed := p.writeAnswer(resp, t, again)
	p.noteEnd(t, began, max(req.ContentLength, 0), received, failed)
	return again && failed == nil
}

// buildRequest checks the head of a request, asks admitRequest to decide about it, and reads the request.
func (p *proxyConn) buildRequest(h requestHead) (t Target, req *http.Request, refused *core.Error) {
	u, t, refused := p.requestURL(h)
	switch {
	case refused != nil:
		return t, nil, p.noteRefusal(t, refused)
	case t.Protocol != http1:
		return t, nil, p.noteRefusal(t, policyErrorf("https requests must use a tunnel (CONNECT)"))
	case !h.sameHost(t):
		return t, nil, p.noteRefusal(t, policyErrorf("the request is for %s, but its Host header is %s", t, quoteShort(h.host)))
	case h.upgrade:
		return t, nil, p.noteRefusal(t, policyErrorf("a request to %s asks to switch to another protocol, which is not supported", t.Host))
	}
	if t = p.upgradeToHTTPS(t); t.Protocol == https {
		u.Scheme, u.Host = https, t.Host
	}
	if refused := p.checkDryRun(t, h.method); refused != nil {
		return t, nil, refused
	}
	if _, refused := p.admitRequest(t, t.Protocol); refused != nil {
		return t, nil, refused
	}
	req, err := http.ReadRequest(p.in)
	if err != nil {
		return t, nil, p.noteRefusal(t, policyErrorf("the request to %s is not valid HTTP/1.1", t.Host))
	}
	_ = p.conn.SetReadDeadline(time.Time{})
	req.URL = u
	return t, req, nil
}

// requestURL returns the URL of a proxied request, and the host and port to connect to.
func (p *proxyConn) requestURL(h requestHead) (*url.URL, Target, *core.Error) {
	if !strings.HasPrefix(h.target, "/") {
		return parseURL(h.target)
	}
	if p.origin.Host == "" {
		return nil, Target{Host: h.host}, policyErrorf("this is a proxy: a request must contain the full URL")
	}
	return parseURL("http://" + p.origin.String() + h.target)
}

// upgradeToHTTPS changes the target of an http request to https if the settings add a secret header for the host,
// unless they also allow http there. A program sends plain http to such a host, because the proxy cannot add a header
// to encrypted requests.
func (p *proxyConn) upgradeToHTTPS(t Target) Target {
	if len(p.n.secretsOf(t.Host)) == 0 || t.Port != defaultPorts[http1] {
		return t
	}
	if _, _, refused := p.n.checkTarget(t, http1); refused == nil {
		return t
	}
	return Target{Host: t.Host, Port: defaultPorts[https], Protocol: https}
}

// cloneForUpstream returns a copy of the request for the target. It drops headers that concern only the connection
// between the program and the proxy, and lets the transport choose the framing.
func cloneForUpstream(ctx context.Context, req *http.Request) *http.Request {
	out := req.Clone(ctx)
	for _, name := range req.Header.Values("Connection") {
		for _, n := range strings.Split(name, ",") {
			out.Header.Del(strings.TrimSpace(n))
		}
	}
	for name := range out.Header {
		if isReservedHeader(name) {
			delete(out.Header, name)
		}
	}
	out.RequestURI, out.Host, out.Close, out.TransferEncoding, out.Trailer = "", req.URL.Host, false, nil, nil
	if req.ContentLength == 0 {
		out.Body = nil
	}
	return out
}

// writeAnswer sends a response to the program, and returns the length of its body.
func (p *proxyConn) writeAnswer(resp *http.Response, t Target, again bool) (received int64, failed *core.Error) {
	for _, name := range resp.Header.Values("Connection") {
		for _, n := range strings.Split(name, ",") {
			resp.Header.Del(strings.TrimSpace(n))
		}
	}
	for _, name := range []string{
		"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding",
		"Upgrade", "Alt-Svc",
	} {
		resp.Header.Del(name)
	}
	if len(p.n.secretsOf(t.Host)) > 0 {
		if failed := p.maskResponse(resp, t); failed != nil {
			p.replyError(failed)
			return 0, failed
		}
	}
	counted := &countingReader{ReadCloser: resp.Body}
	resp.Body, resp.Proto, resp.ProtoMajor, resp.ProtoMinor, resp.Close, resp.Trailer = counted, "HTTP/1.1", 1, 1, !again, nil
	if resp.TransferEncoding = nil; resp.ContentLength < 0 && again {
		resp.TransferEncoding = []string{"chunked"}
	}
	if err := resp.Write(p.conn); err != nil {
		return counted.n, p.requestError(p.ctx, t, err)
	}
	return counted.n, nil
}

// maskResponse masks secrets in the headers and the body of a response.
func (p *proxyConn) maskResponse(resp *http.Response, t Target) *core.Error {
	for _, values := range resp.Header {
		for i := range values {
			values[i] = p.maskText(values[i])
		}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, p.n.o.Body+1))
	if err != nil {
		return p.requestError(p.ctx, t, err)
	}
	if int64(len(body)) > p.n.o.Body {
		return core.Errorf(core.KindLimit, "egress", "the response of %s has more than %d bytes", t.Host, p.n.o.Body)
	}
	body = []byte(p.maskText(string(body)))
	_ = resp.Body.Close()
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

type countingReader struct {
	io.ReadCloser
	n int64
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	c.n += int64(n)
	return n, err
}
