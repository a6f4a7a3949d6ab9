package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/egress/egresstest"
)

// hosts lists the hosts of the test site. Its certificate is valid for all of them.
var hosts = []string{"api.example.com", "other.example.com", "www.example.com", "plain.example.com", "raw.example.com", "key.example.com", "evil.test", "down.example.com", "deep.sub.example.com", "xn--bcher-kva.example.com"}

// world holds a test site, a Network that allows some of the site's hosts, a Session of that Network, and the
// connection attempts that the session has reported.
type world struct {
	*egresstest.Site
	net *Network
	*Session

	mu    sync.Mutex
	notes []ConnectionAttempt
	seen  []*http.Request
}

func (w *world) note(a ConnectionAttempt) *core.Error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, a)
	return nil
}

func (w *world) refusedNotes() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.notes {
		if a.Decision == Refused && a.Reason != nil {
			n++
		}
	}
	return n
}

func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	w.mu.Lock()
	w.seen = append(w.seen, r)
	w.mu.Unlock()
	switch r.URL.Path {
	case "/to":
		code := http.StatusFound
		if c := r.URL.Query().Get("code"); c != "" {
			_, _ = fmt.Sscan(c, &code)
		}
		rw.Header().Set("Location", r.URL.Query().Get("u"))
		rw.WriteHeader(code)
	case "/loop":
		http.Redirect(rw, r, "/loop", http.StatusFound)
	case "/large":
		_, _ = rw.Write(make([]byte, 1<<20))
	case "/bytes":
		_, _ = rw.Write([]byte{0xff, 0, 1})
	case "/slow":
		<-r.Context().Done()
	case "/echo":
		_ = json.NewEncoder(rw).Encode(r.Header)
	default:
		_, _ = fmt.Fprintf(rw, "%s %s %s %s", r.Method, r.Host, r.URL.Path, body)
	}
}

func newWorld(t *testing.T, change func(*Options, *ExecutionHooks)) *world {
	t.Helper()
	w := &world{}
	w.Site = egresstest.New(t, w, hosts...)
	o := Options{
		Allow: []Rule{{Domain: "api.example.com"}, {Domain: "other.example.com"}, {Domain: "*.sub.example.com"}, {Domain: "plain.example.com", Protocols: []string{http1}}, {Domain: "bücher.example.com"},
			{Domain: "raw.example.com", Ports: []int{5432}, Protocols: []string{tcp}}, {Domain: "key.example.com"}, {Domain: "banned.example.com"}, {Domain: "down.example.com", Ports: []int{9}}},
		Deny: []string{"banned.example.com", "93.184.216.0/24"}, Secrets: []Secret{{"key.example.com", "Authorization", "Bearer hush-hush"}},
		Roots: w.Roots, Resolver: w.Site, Dialer: w.Site, Own: func() []netip.Addr { return []netip.Addr{netip.MustParseAddr("93.184.217.1")} },
	}
	x := ExecutionHooks{Note: w.note, Mask: func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("hush-hush"), []byte("[SECRET]")) }}
	if change != nil {
		change(&o, &x)
	}
	var err error
	if w.net, err = New(o); err != nil {
		t.Fatal(err)
	}
	w.Session = w.net.Open(x)
	t.Cleanup(w.Session.Close)
	return w
}

func get(t *testing.T, w *world, r Request) Response {
	t.Helper()
	answer, failed := w.FetchURL(t.Context(), r)
	if failed != nil {
		t.Fatalf("%s: %v (%s)", r.URL, failed, failed.Hint)
	}
	return answer
}

func TestFetch(t *testing.T) {
	w := newWorld(t, nil)
	text := "hello"
	for _, c := range []struct {
		r    Request
		want string
	}{
		{Request{URL: "https://api.example.com/a?b=c#d"}, "GET api.example.com /a "},
		{Request{URL: "HTTPS://API.Example.COM./a"}, "GET api.example.com /a "},
		{Request{URL: "https://api.example.com:443/a"}, "GET api.example.com /a "},
		{Request{URL: "https://api.example.com#@evil.test:443@/x@"}, "GET api.example.com / "},
		{Request{URL: "https://deep.sub.example.com/"}, "GET deep.sub.example.com / "},
		{Request{URL: "http://plain.example.com/"}, "GET plain.example.com / "},
		{Request{URL: "https://bücher.example.com/ä"}, "GET xn--bcher-kva.example.com /ä "},
		{Request{URL: "https://api.example.com/p", Method: "post", Text: &text}, "POST api.example.com /p hello"},
		{Request{URL: "https://api.example.com/to?u=/b"}, "GET api.example.com /b "},
		{Request{URL: "https://api.example.com/to?u=" + url.QueryEscape("https://other.example.com/c")}, "GET other.example.com /c "},
		{Request{URL: "https://api.example.com/to?code=303&u=/d", Method: "POST", Text: &text}, "GET api.example.com /d "},
		{Request{URL: "https://api.example.com/to?code=307&u=/d", Method: "POST", Text: &text}, "POST api.example.com /d hello"},
	} {
		if got := get(t, w, c.r); got.Text != c.want || got.Status != 200 {
			t.Errorf("%s: %+v, not %q", c.r.URL, got, c.want)
		}
	}
	if got := get(t, w, Request{URL: "https://api.example.com/bytes"}); got.Base64 != "/wAB" {
		t.Error(got)
	}
	if got := get(t, w, Request{URL: "https://api.example.com/to?u=/b", Redirect: "manual"}); got.Status != 302 {
		t.Error(got)
	}
	if s := w.Strangers(); s != nil {
		t.Error(s)
	}
	if w.refusedNotes() != 0 {
		t.Error(w.notes)
	}
}

// TestCredentials checks that headers which may hold credentials are not sent to another origin after a redirect.
func TestCredentials(t *testing.T) {
	w := newWorld(t, nil)
	headers := [][2]string{{"Authorization", "mine"}, {"Cookie", "mine"}, {"X-Whatever-Token", "mine"}, {"Accept", "text/plain"}, {"Host", "evil.test"}, {"Proxy-Authorization", "mine"}, {"Content-Length", "7"}}
	get(t, w, Request{URL: "https://api.example.com/to?u=" + url.QueryEscape("https://other.example.com/echo"), Headers: headers})
	first, second := w.seen[0].Header, w.seen[1].Header
	if first.Get("Authorization") != "mine" || first.Get("X-Whatever-Token") != "mine" || w.seen[0].Host != "api.example.com" || first.Get("Proxy-Authorization") != "" {
		t.Error(first, w.seen[0].Host)
	}
	for _, name := range []string{"Authorization", "Cookie", "X-Whatever-Token", "Referer"} {
		if second.Get(name) != "" {
			t.Errorf("%s followed: %v", name, second)
		}
	}
	if second.Get("Accept") != "text/plain" {
		t.Error(second)
	}
}

func TestSecrets(t *testing.T) {
	w := newWorld(t, nil)
	got := get(t, w, Request{URL: "https://key.example.com/echo", Headers: [][2]string{{"authorization", "Bearer of the program"}}})
	if w.seen[0].Header.Get("Authorization") != "Bearer hush-hush" || strings.Contains(got.Text, "hush-hush") || !strings.Contains(got.Text, "[SECRET]") {
		t.Error(w.seen[0].Header, got.Text)
	}
	get(t, w, Request{URL: "https://key.example.com/to?u=" + url.QueryEscape("https://other.example.com/echo")})
	if last := w.seen[len(w.seen)-1]; last.Host != "other.example.com" || last.Header.Get("Authorization") != "" {
		t.Error(last.Host, last.Header)
	}
	answer := w.proxy(t, "GET http://key.example.com/echo HTTP/1.1\r\nHost: key.example.com\r\n\r\n")
	if !strings.Contains(answer, "200 OK") || !strings.Contains(answer, "[SECRET]") || strings.Contains(answer, "hush-hush") {
		t.Error(answer)
	}
	if last := w.seen[len(w.seen)-1]; last.TLS == nil || last.Header.Get("Authorization") != "Bearer hush-hush" {
		t.Error("over http", last.Header)
	}
	if _, err := New(Options{Secrets: []Secret{{"key.example.com", "Host", "x"}}}); err == nil {
		t.Error("a secret in a header that is not sent")
	}
}

// proxy sends raw bytes to the session's proxy and returns everything that the proxy answers.
func (w *world) proxy(t *testing.T, raw string) string {
	t.Helper()
	near, far := tcpPair(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.ServeConn(context.Background(), far)
	}()
	stop := context.AfterFunc(testenv.Context(t), func() { _ = near.Close() })
	defer stop()
	_, _ = io.WriteString(near, raw)
	_ = near.(*net.TCPConn).CloseWrite()
	answer, err := io.ReadAll(near)
	if err != nil && !errors.Is(err, net.ErrClosed) && len(answer) == 0 {
		t.Log(err)
	}
	_ = near.Close()
	<-done
	return string(answer)
}

func tcpPair(t *testing.T) (near, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if near, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return near, far
}

// client returns an HTTP client that sends all requests through the proxy, as programs do.
func (w *world) client(t *testing.T) *http.Client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go w.ServeConn(context.Background(), c)
		}
	}()
	proxy := &url.URL{Scheme: "http", Host: l.Addr().String()}
	transport := &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: w.Roots}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestProxy(t *testing.T) {
	w := newWorld(t, nil)
	c := w.client(t)
	for range 3 {
		for _, u := range []string{"https://api.example.com/a", "http://plain.example.com/a", "https://deep.sub.example.com/a"} {
			resp, err := c.Post(u, "text/plain", strings.NewReader("body"))
			if err != nil {
				t.Fatal(u, err)
			}
			text, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != 200 || !strings.HasSuffix(string(text), "body") {
				t.Error(u, resp.Status, string(text))
			}
			if resp, err = c.Get(u); err != nil {
				t.Fatal(err)
			}
			_, _ = io.ReadAll(resp.Body)
			_ = resp.Body.Close()
		}
	}
	for _, r := range w.seen {
		if r.Header.Get("Proxy-Connection") != "" || r.Header.Get("Via") != "" {
			t.Error(r.Header)
		}
	}
	if s := w.Strangers(); s != nil || w.refusedNotes() != 0 {
		t.Error(s, w.notes)
	}
	c.CloseIdleConnections()
	w.Session.Close()
	var sent int64
	for _, a := range w.notes {
		if a.Decision == Ended && a.Protocol == https {
			sent += a.Sent
		}
	}
	if sent == 0 {
		t.Error("the bytes of tunnels are not counted", w.notes)
	}
}

// TestRaw checks that a tunnel to a host whose rule allows tcp may carry any bytes.
func TestRaw(t *testing.T) {
	w := newWorld(t, nil)
	answer := w.proxy(t, "CONNECT raw.example.com:5432 HTTP/1.1\r\nHost: raw.example.com:5432\r\n\r\nanything")
	if !strings.HasPrefix(answer, "HTTP/1.1 200") || w.refusedNotes() != 0 {
		t.Error(answer, w.notes)
	}
}

func TestAbort(t *testing.T) {
	w := newWorld(t, nil)
	failed := make(chan *core.Error)
	go func() {
		_, e := w.FetchURL(context.Background(), Request{ID: "1", URL: "https://api.example.com/slow"})
		failed <- e
	}()
	testenv.WaitUntil(t, "the request has been sent", func() bool { return len(w.Dialled()) > 0 })
	w.AbortRequest("1")
	if e := <-failed; e == nil || e.Kind != core.KindCancelled {
		t.Error(e)
	}
}

func TestLimits(t *testing.T) {
	t.Run("rate", func(t *testing.T) {
		now := time.Unix(1_700_000_000, 0)
		w := newWorld(t, func(o *Options, _ *ExecutionHooks) {
			o.Rate, o.Per, o.Now = 3, time.Minute, func() time.Time { return now }
		})
		for range 3 {
			get(t, w, Request{URL: "https://api.example.com/"})
		}
		if _, e := w.FetchURL(t.Context(), Request{URL: "https://api.example.com/"}); e == nil || e.Kind != core.KindLimit || !strings.Contains(e.Hint, "20s") {
			t.Error(e)
		}
		get(t, w, Request{URL: "https://other.example.com/"})
		now = now.Add(-time.Hour) // a clock that goes back gives nothing
		if _, e := w.FetchURL(t.Context(), Request{URL: "https://api.example.com/"}); e == nil {
			t.Error("gave more")
		}
		now = now.Add(time.Minute)
		get(t, w, Request{URL: "https://api.example.com/"})
	})
	t.Run("rate of a wildcard", func(t *testing.T) {
		w := newWorld(t, func(o *Options, _ *ExecutionHooks) { o.Rate, o.Per = 1, time.Hour })
		w.Answer("a.sub.example.com", egresstest.Public)
		get(t, w, Request{URL: "https://deep.sub.example.com/"})
		if _, e := w.FetchURL(t.Context(), Request{URL: "https://a.sub.example.com/"}); e == nil || e.Kind != core.KindLimit {
			t.Error(e)
		}
	})
	t.Run("bytes", func(t *testing.T) {
		w := newWorld(t, func(o *Options, _ *ExecutionHooks) { o.Bytes = 100 << 10 })
		if _, e := w.FetchURL(t.Context(), Request{URL: "https://api.example.com/large"}); e == nil || e.Kind != core.KindLimit {
			t.Error(e)
		}
		if _, e := w.FetchURL(t.Context(), Request{URL: "https://other.example.com/"}); e == nil || e.Kind != core.KindLimit {
			t.Error(e)
		}
		c := w.client(t)
		if resp, err := c.Get("https://api.example.com/"); err == nil {
			t.Error(resp.Status)
		}
	})
	t.Run("body", func(t *testing.T) {
		w := newWorld(t, func(o *Options, _ *ExecutionHooks) { o.Body = 1000 })
		if _, e := w.FetchURL(t.Context(), Request{URL: "https://api.example.com/large"}); e == nil || e.Kind != core.KindLimit {
			t.Error(e)
		}
	})
	t.Run("redirects", func(t *testing.T) {
		w := newWorld(t, nil)
		if _, e := w.FetchURL(t.Context(), Request{URL: "https://api.example.com/loop"}); e == nil || e.Kind != core.KindUpstreamGone || len(w.seen) != maxRedirects+1 {
			t.Error(e, len(w.seen))
		}
	})
	t.Run("note", func(t *testing.T) {
		w := newWorld(t, func(_ *Options, x *ExecutionHooks) {
			x.Note = func(a ConnectionAttempt) *core.Error {
				return core.Errorf(core.KindInternal, "audit", "the disk is full")
			}
		})
		if _, e := w.FetchURL(t.Context(), Request{URL: "https://api.example.com/"}); e == nil || len(w.Dialled()) != 0 {
			t.Error("left without a record", e)
		}
		if a := w.proxy(t, "CONNECT api.example.com:443 HTTP/1.1\r\n\r\n"); strings.HasPrefix(a, "HTTP/1.1 200") || len(w.Dialled()) != 0 {
			t.Error(a)
		}
	})
	t.Run("closed", func(t *testing.T) {
		w := newWorld(t, nil)
		w.Session.Close()
		if _, e := w.FetchURL(t.Context(), Request{URL: "https://api.example.com/"}); e == nil || len(w.Dialled()) != 0 {
			t.Error(e)
		}
	})
}

// TestClosed checks that a Network with zero Options refuses every request, and that the error's hint names the
// setting to change.
func TestClosed(t *testing.T) {
	n, err := New(Options{})
	if err != nil || !n.IsClosed() {
		t.Fatal(err)
	}
	s := n.Open(ExecutionHooks{})
	defer s.Close()
	if _, e := s.FetchURL(t.Context(), Request{URL: "https://api.example.com/"}); e == nil || e.Kind != core.KindPolicy || !strings.Contains(e.Hint, "network: {whitelist") {
		t.Error(e)
	}
}

// TestOpen checks that Options.Open allows https and http to all hosts at the standard ports, and nothing else.
func TestOpen(t *testing.T) {
	w := newWorld(t, func(o *Options, _ *ExecutionHooks) { o.Open, o.Allow = true, nil })
	get(t, w, Request{URL: "https://www.example.com/"})
	get(t, w, Request{URL: "http://www.example.com/"})
	for _, u := range []string{"https://www.example.com:8443/", "http://www.example.com:8080/", "https://banned.example.com/", "https://127.0.0.1/", "https://nowhere.test/"} {
		if _, e := w.FetchURL(t.Context(), Request{URL: u}); e == nil {
			t.Error(u)
		}
	}
}

// TestTold checks that errors about refused requests contain neither paths nor credentials. The same holds for the
// attempts in the audit log.
func TestTold(t *testing.T) {
	w := newWorld(t, nil)
	for _, u := range []string{"https://user:secret@api.example.com/secret", "https://evil.test/secret", "https://api.example.com\x00/secret", "data:,secret", "/secret", "https:secret", "https://evil.test?secret", "ftp://a:secret@b/secret", "https:///secret"} {
		_, e := w.FetchURL(t.Context(), Request{URL: u})
		if last := w.notes[len(w.notes)-1]; e == nil || strings.Contains(e.Message+e.Hint+last.Host, "secret") {
			t.Errorf("%s: %v, %+v", u, e, last)
		}
	}
}

func TestRehearsal(t *testing.T) {
	w := newWorld(t, func(_ *Options, x *ExecutionHooks) { x.Rehearses = true })
	get(t, w, Request{URL: "https://api.example.com/"})
	before := len(w.Dialled())
	if _, e := w.FetchURL(t.Context(), Request{URL: "https://api.example.com/", Method: "POST"}); e == nil || e.Kind != core.KindPolicy {
		t.Error(e)
	}
	for _, raw := range []string{"CONNECT api.example.com:443 HTTP/1.1\r\n\r\n", "POST http://plain.example.com/ HTTP/1.1\r\nContent-Length: 0\r\n\r\n"} {
		if a := w.proxy(t, raw); !strings.HasPrefix(a, "HTTP/1.1 403") {
			t.Error(a)
		}
	}
	if len(w.Dialled()) != before {
		t.Error("it sent something")
	}
}

func FuzzHost(f *testing.F) {
	for _, s := range []string{"example.com", "127.1", "0x7f000001", "bücher.de", "a..b", "xn--a", "[::1]", "１２７.0.0.1", "a.b.", "%31"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, refused := ParseHost(s)
		if refused != nil {
			return
		}
		if again, refused := ParseHost(name); refused != nil || again != name {
			t.Fatalf("%q: %q, and again %q %v", s, name, again, refused)
		}
		if _, err := netip.ParseAddr(name); err == nil || strings.ContainsAny(name, "\x00\r\n @/:%[]\\") || name == "" || len(name) > maxHost {
			t.Fatalf("%q: %q", s, name)
		}
		if u, err := url.Parse("https://" + name + "/"); err != nil || u.Hostname() != name || u.User != nil {
			t.Fatalf("%q: %q is read in another way: %v", s, name, err)
		}
	})
}

func FuzzURL(f *testing.F) {
	for _, s := range []string{"https://example.com/a", "https://a@b/", "http://a:80/", "https://a\\@b", "https:///a", "HTTPS://A:0443"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, target, refused := parseURL(s)
		if refused != nil {
			return
		}
		if host, _ := ParseHost(target.Host); host != target.Host || target.Port == 0 {
			t.Fatalf("%q: %v", s, target)
		}
		if again, same, refused := parseURL(u.String()); refused != nil || same != target || again.Host != u.Host {
			t.Fatalf("%q: %q is %v, and again %v %v", s, u, target, same, refused)
		}
	})
}

// FuzzProxy checks that the proxy never dials a host that is not allowed, whatever bytes it receives, and that it
// always returns.
func FuzzProxy(f *testing.F) {
	for _, s := range []string{"CONNECT api.example.com:443 HTTP/1.1\r\n\r\n\x16\x03\x01", "GET http://plain.example.com/ HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "POST http://plain.example.com/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		d := &refusing{}
		n, err := New(Options{Allow: []Rule{{Domain: "api.example.com"}, {Domain: "plain.example.com", Protocols: []string{http1}}}, Resolver: d, Dialer: d, Own: func() []netip.Addr { return nil }})
		if err != nil {
			t.Fatal(err)
		}
		s := n.Open(ExecutionHooks{})
		near, far := net.Pipe()
		go func() {
			_, _ = near.Write(raw)
			_ = near.Close()
		}()
		go func() { _, _ = io.Copy(io.Discard, near) }()
		s.ServeConn(context.Background(), far)
		s.Close()
		for _, a := range d.dialled {
			if a != egresstest.Public.String()+":443" && a != egresstest.Public.String()+":80" {
				t.Fatalf("dialled %s", a)
			}
		}
	})
}

// refusing implements a Resolver and a Dialer. The dialer always fails and records the addresses that it was asked to
// dial.
type refusing struct {
	mu      sync.Mutex
	dialled []string
}

func (r *refusing) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{egresstest.Public}, nil
}

func (r *refusing) DialContext(_ context.Context, _, address string) (net.Conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dialled = append(r.dialled, address)
	return nil, errors.New("nobody is there")
}

func FuzzHello(f *testing.F) {
	f.Add(helloOf(f, "api.example.com", "h2"), "api.example.com")
	f.Add(helloOf(f, "evil.test"), "api.example.com")
	f.Fuzz(func(t *testing.T, raw []byte, host string) {
		if h, refused := ParseHost(host); refused != nil || h != host {
			return
		}
		read, refused := readHello(bufio.NewReader(bytes.NewReader(raw)), host)
		if refused == nil && !bytes.HasPrefix(raw, read) {
			t.Fatalf("%x became %x", raw, read)
		}
	})
}

// helloOf returns the ClientHello message that a TLS client sends.
func helloOf(t testing.TB, name string, protocols ...string) []byte {
	t.Helper()
	near, far := net.Pipe()
	go func() {
		_ = tls.Client(near, &tls.Config{ServerName: name, NextProtos: protocols, InsecureSkipVerify: name == ""}).Handshake()
	}()
	raw := make([]byte, 64<<10)
	n, err := far.Read(raw)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = near.Close(), far.Close()
	return raw[:n]
}
