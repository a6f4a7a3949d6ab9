//go:build unix

package client

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
	"retort/internal/devel/testenv"
)

// serveHTTP starts an HTTP server with the handler h and returns the ServerSpec for it.
func serveHTTP(t *testing.T, h http.Handler) ServerSpec {
	t.Helper()
	ts := httptest.NewServer(h)
	t.Cleanup(func() { ts.CloseClientConnections(); ts.Close() })
	return ServerSpec{Name: "s", URL: ts.URL + "/mcp", Headers: map[string]string{"Authorization": "Bearer secret"}}
}

func TestHTTPWithSDK(t *testing.T) {
	handler := func(o *mcp.StreamableHTTPOptions) http.Handler {
		s := sdkServer()
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, o)
	}
	for name, tt := range map[string]struct {
		handler   http.Handler
		protocol  string
		transport string
	}{
		"sessions":         {handler(&mcp.StreamableHTTPOptions{}), "2025-11-25", "http"},
		"sessions in JSON": {handler(&mcp.StreamableHTTPOptions{JSONResponse: true}), "2025-11-25", "http"},
		"stateless":        {handler(&mcp.StreamableHTTPOptions{Stateless: true}), "2026-07-28", "http"},
		"stateless JSON":   {handler(&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}), "2026-07-28", "http"},
		"legacy SSE":       {mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return sdkServer() }, nil), "2025-11-25", "sse"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool(t, Options{}, serveHTTP(t, tt.handler))
			l, err := p.List(t.Context(), "s")
			if err != nil || l.Protocol != tt.protocol || len(l.Tools) != 1 || !strings.Contains(string(l.Tools[0]), exactSchema) {
				t.Fatalf("%+v, %v", l, err)
			}
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					r, err := p.Call(t.Context(), "s", "echo", json.RawMessage(`{"b":9007199254740993,"a":1}`))
					if err != nil || !strings.Contains(string(r), `{"z":9007199254740993,"args":{"b":9007199254740993,"a":1}}`) {
						t.Errorf("%s, %v", r, err)
					}
				})
			}
			wg.Wait()
			if st := p.StatusOf("s"); st.Transport != tt.transport || st.Connects != 1 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// serveInBubble starts an HTTP server with the handler h inside a testing/synctest bubble and returns the ServerSpec
// for it.
func serveInBubble(t *testing.T, h http.Handler) ServerSpec {
	t.Helper()
	pipes, server := testenv.NewPipes(), &http.Server{Handler: h}
	go func() { _ = server.Serve(pipes) }()
	t.Cleanup(func() { _ = server.Close() })
	return ServerSpec{Name: "s", URL: "http://127.0.0.1/mcp", dial: pipes.Dial}
}

// TestHTTPListChanged checks that a change of the tools is reported over HTTP with and without sessions, and that the
// new tools are then listed.
func TestHTTPListChanged(t *testing.T) {
	for name, stateless := range map[string]bool{"legacy": false, "modern": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := sdkServer()
				var changes atomic.Int32
				p := inBubble(t, Options{OnChange: func(string) { changes.Add(1) }}, serveInBubble(t, mcp.NewStreamableHTTPHandler(
					func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: stateless})))
				mustCall(t, p, "s", "echo")
				addEcho(s, "another")
				time.Sleep(time.Minute)
				synctest.Wait()
				if n := changes.Load(); n != 1 {
					t.Errorf("OnChange was called %d times, want 1", n)
				}
				if l, err := p.List(t.Context(), "s"); err != nil || len(l.Tools) != 2 {
					t.Errorf("%d tools, %v", len(l.Tools), err)
				}
			})
		})
	}
}

// TestParameterHeaders checks that arguments are repeated in HTTP headers if the tool's definition requires that. If
// the tool was not listed before, the server refuses the first call once, and the call is repeated with headers.
func TestParameterHeaders(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "h", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "t", InputSchema: json.RawMessage(`{"type":"object","properties":{
		"region":{"type":"string","x-mcp-header":"Region"},"deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}},"on":{"type":"boolean","x-mcp-header":"On"}}}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{}, nil
		})
	var refused atomic.Int32
	sdk := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true})
	p := newPool(t, Options{}, serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &statusRecorder{ResponseWriter: w}
		sdk.ServeHTTP(rec, r)
		if rec.status >= 400 {
			refused.Add(1)
		}
	})))
	for _, args := range []string{`{"region":"eu","deep":{"n":7},"on":true}`, `{"region":" ünï "}`, `{"region":"=?base64?eA==?="}`, `{}`, `{"region":null}`} {
		if _, err := p.Call(t.Context(), "s", "t", json.RawMessage(args)); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
	if n := refused.Load(); n != 1 {
		t.Errorf("%d refusals, want only the first call's", n)
	}
}

type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (r *statusRecorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}
func (r *statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// httpScript is an HTTP server of protocol version 2025-11-25 with sessions. If the functions call and get are set,
// they answer tool calls and GET requests instead of the server's correct behaviour.
type httpScript struct {
	call func(w http.ResponseWriter, r *http.Request, req request) // handles tools/call; nil means correct behaviour
	get  http.HandlerFunc                                          // handles GET requests; nil means to answer 405

	mu       sync.Mutex
	sessions map[string]bool
	next     int
	calls    atomic.Int32
	deleted  atomic.Int32
}

func (h *httpScript) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
		if h.get != nil {
			h.get(w, r)
			return
		}
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case http.MethodDelete:
		h.deleted.Add(1)
		h.forget(r.Header.Get("Mcp-Session-Id"))
		return
	}
	body, _ := io.ReadAll(r.Body)
	var req request
	_ = json.Unmarshal(body, &req)
	switch {
	case req.Method == "server/discover":
		http.Error(w, "Bad Request: no session", http.StatusBadRequest)
	case req.Method == "initialize":
		w.Header().Set("Mcp-Session-Id", h.open())
		h.proper(w, req)
	case !h.known(r.Header.Get("Mcp-Session-Id")):
		http.Error(w, "no such session", http.StatusNotFound)
	case req.Method == "tools/call":
		h.calls.Add(1)
		if h.call != nil {
			h.call(w, r, req)
			return
		}
		h.proper(w, req)
	case req.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	default:
		h.proper(w, req)
	}
}

func (h *httpScript) proper(w http.ResponseWriter, req request) {
	w.Header().Set("Content-Type", "application/json")
	newScripted(strings.NewReader(""), w).proper(req)
}

func (h *httpScript) open() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sessions == nil {
		h.sessions = map[string]bool{}
	}
	h.next++
	id := fmt.Sprintf("session-%d", h.next)
	h.sessions[id] = true
	return id
}

func (h *httpScript) known(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sessions[id]
}

func (h *httpScript) forget(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if id == "" {
		h.sessions = nil
	}
	delete(h.sessions, id)
}

func TestHTTPSession(t *testing.T) {
	h := &httpScript{}
	p := newPool(t, Options{}, serveHTTP(t, h))
	mustCall(t, p, "s", "t")
	h.forget("") // as after a restart of the server
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() { mustCall(t, p, "s", "t") })
	}
	wg.Wait()
	if st := p.StatusOf("s"); st.Failures != 0 || st.State != StateReady {
		t.Errorf("%+v", st)
	}
	if n := h.calls.Load(); n != 11 {
		t.Errorf("%d calls reached the server, want 11", n)
	}
	p.Close()
	if h.deleted.Load() == 0 {
		t.Error("the session was not ended")
	}
}

// TestHTTPSessionNeverKnown checks that a call fails after a few requests if the server answers 404 to every session
// that it has created.
func TestHTTPSessionNeverKnown(t *testing.T) {
	h := &httpScript{}
	var requests atomic.Int32
	p := newPool(t, Options{}, serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.Header.Get("Mcp-Session-Id") != "" && r.Method == http.MethodPost {
			http.Error(w, "gone", http.StatusNotFound)
			return
		}
		h.ServeHTTP(w, r)
	})))
	_, err := p.Call(t.Context(), "s", "t", nil)
	wantError(t, err, core.KindUpstreamGone, "ended the session")
	if n := requests.Load(); n > 20 {
		t.Errorf("%d requests", n)
	}
}

func TestHTTPHostile(t *testing.T) {
	write := func(status int, kind, body string) func(http.ResponseWriter, *http.Request, request) {
		return func(w http.ResponseWriter, _ *http.Request, req request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			fmt.Fprint(w, strings.ReplaceAll(body, "ID", string(req.ID)))
		}
	}
	for name, tt := range map[string]struct {
		call    func(http.ResponseWriter, *http.Request, request)
		kind    core.Kind
		text    string
		unknown bool // the call's outcome must be unknown (ErrOutcomeUnknown)
	}{
		"500":         {write(500, "text/plain", "stack\n trace"), core.KindUpstreamGone, "HTTP 500 (Internal Server Error): stack trace", true},
		"502 in HTML": {write(502, "text/html", "<html>"), core.KindUpstreamGone, "HTTP 502 (Bad Gateway)", true},
		"429": {func(w http.ResponseWriter, _ *http.Request, _ request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(429)
		}, core.KindUpstreamGone, "after 7", false},
		"error in 400":      {write(400, "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"no x"}}`), core.KindInvalidArguments, "no x", false},
		"wrong type":        {write(200, "text/html", "<html>hello</html>"), core.KindUpstreamGone, `"text/html"`, true},
		"no type":           {write(200, "", "{}"), core.KindUpstreamGone, "not an MCP message", true},
		"204":               {write(204, "", ""), core.KindUpstreamGone, "not an MCP message", true},
		"no JSON":           {write(200, "application/json", "{oops"), core.KindUpstreamGone, "not an MCP message: {oops", true},
		"another id":        {write(200, "application/json", `{"jsonrpc":"2.0","id":4711,"result":{}}`), core.KindUpstreamGone, "does not belong to this call", true},
		"empty stream":      {write(200, "text/event-stream", ""), core.KindUpstreamGone, "ended the stream without an answer", true},
		"stream of rubbish": {write(200, "text/event-stream", "data: oops\n\nevent: other\ndata: {}\n\nno colon\n\n"), core.KindUpstreamGone, "without an answer", true},
		"truncated": {func(w http.ResponseWriter, _ *http.Request, req request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,`, req.ID)
		}, core.KindUpstreamGone, "broke off after", true},
		"hang up": {func(w http.ResponseWriter, _ *http.Request, _ request) { hangUp(w) }, core.KindUpstreamGone, "connection to the server failed", true},
		"huge JSON": {func(w http.ResponseWriter, _ *http.Request, _ request) {
			w.Header().Set("Content-Type", "application/json")
			writeLongLine(w, 1<<40)
		}, core.KindLimit, "exceeds the limit of 1 MB", true},
		"huge event": {func(w http.ResponseWriter, _ *http.Request, _ request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: ")
			writeLongLine(w, 1<<40)
		}, core.KindLimit, "exceeds the limit of 1 MB", true},
		"gzip bomb": {func(w http.ResponseWriter, _ *http.Request, _ request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			writeLongLine(z, 64<<20)
			z.Close()
		}, core.KindLimit, "exceeds the limit of 1 MB", true},
		"401": {func(w http.ResponseWriter, _ *http.Request, _ request) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="x", error="invalid_token", error_description="The token has expired"`)
			w.WriteHeader(401)
		}, core.KindUpstreamGone, `HTTP 401 (Unauthorized): error "invalid_token", error description "The token has expired"`, false},
		"403": {func(w http.ResponseWriter, _ *http.Request, _ request) {
			w.Header().Set("WWW-Authenticate", `Bearer error=insufficient_scope, scope="a b"`)
			w.WriteHeader(403)
		}, core.KindUpstreamGone, `error "insufficient_scope", scope "a b"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := &httpScript{call: func(w http.ResponseWriter, r *http.Request, req request) {
				if req.Params.Name == "t" {
					w.Header().Set("Content-Type", "application/json")
					newScripted(strings.NewReader(""), w).proper(req)
					return
				}
				tt.call(w, r, req)
			}}
			s := serveHTTP(t, h)
			s.MaxMessage = 1 << 20
			p := newPool(t, Options{}, s)
			_, err := p.Call(t.Context(), "s", "bad", nil)
			wantError(t, err, tt.kind, tt.text)
			if errors.Is(err, ErrOutcomeUnknown) != tt.unknown {
				t.Errorf("outcome unknown: %v, want %v", !tt.unknown, tt.unknown)
			}
			if n := h.calls.Load(); n != 1 {
				t.Errorf("the call was made %d times", n)
			}
			mustCall(t, p, "s", "t")
			if st := p.StatusOf("s"); st.Connects != 1 {
				t.Errorf("one bad answer took the session: %+v", st)
			}
		})
	}
}

func hangUp(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}
}

// TestHTTPRedirects checks that neither headers nor messages are sent to another origin when the server redirects
// there.
func TestHTTPRedirects(t *testing.T) {
	var strangers atomic.Int32
	stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strangers.Add(1) }))
	defer stranger.Close()
	for name, tt := range map[string]struct {
		status int
		target string
		text   string
	}{
		"other origin 307": {307, stranger.URL + "/mcp", "redirects to another origin"},
		"other origin 302": {302, stranger.URL + "/mcp", "redirects to another origin"},
		"becomes GET":      {302, "/other", "drops the message"},
		"circle":           {307, "/mcp", "redirects more than"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool(t, Options{}, serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, tt.target, tt.status)
			})))
			_, err := p.List(t.Context(), "s")
			wantError(t, err, core.KindUpstreamGone, tt.text)
		})
	}
	if strangers.Load() != 0 {
		t.Error("a stranger was asked")
	}
	t.Run("same origin", func(t *testing.T) {
		h := &httpScript{}
		p := newPool(t, Options{}, serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/") {
				http.Redirect(w, r, r.URL.Path+"/", http.StatusTemporaryRedirect)
				return
			}
			if r.Header.Get("Authorization") != "Bearer secret" {
				t.Error("header lost")
			}
			h.ServeHTTP(w, r)
		})))
		mustCall(t, p, "s", "t")
	})
}

func TestHTTPResumeGivesUp(t *testing.T) {
	h := &httpScript{
		call: func(w http.ResponseWriter, _ *http.Request, _ request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "id: e1\nretry: 1\ndata:\n\n")
		},
		get: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "retry: 1\n\n")
		},
	}
	p := newPool(t, Options{}, serveHTTP(t, h))
	_, err := p.Call(t.Context(), "s", "t", nil)
	wantError(t, err, core.KindUpstreamGone, "repeatedly")
	if !errors.Is(err, ErrOutcomeUnknown) {
		t.Error("outcome should be unknown")
	}
}

func TestHTTPNobodyThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	p := newPool(t, Options{}, ServerSpec{Name: "s", URL: "http://" + l.Addr().String() + "/mcp"})
	_, err = p.Call(t.Context(), "s", "t", nil)
	wantError(t, err, core.KindUpstreamGone, "cannot be reached", "connection refused")
	if errors.Is(err, ErrOutcomeUnknown) {
		t.Error("nothing was sent")
	}
}

// TestHTTPServerRestarts checks that calls fail while an HTTP server is down, and succeed when it runs again.
func TestHTTPServerRestarts(t *testing.T) {
	h := &httpScript{}
	ts := httptest.NewServer(h)
	addr := ts.Listener.Addr().String()
	p := newPool(t, Options{}, ServerSpec{Name: "s", URL: ts.URL})
	mustCall(t, p, "s", "t")
	ts.CloseClientConnections()
	ts.Close()
	p.servers["s"].main.session.link.wire.(*streamableWire).at.client.CloseIdleConnections() // as if the client had noticed that they were closed
	_, err := p.Call(t.Context(), "s", "t", nil)
	wantError(t, err, core.KindUpstreamGone, "cannot be reached")
	again := httptest.NewUnstartedServer(h)
	again.Listener.Close()
	if again.Listener, err = net.Listen("tcp", addr); err != nil {
		t.Skip(err) // somebody took the port
	}
	h.forget("")
	again.Start()
	t.Cleanup(again.Close)
	mustCall(t, p, "s", "t")
}

// TestHTTPConnectRefused checks that the error for a server that refuses to connect explains its HTTP status.
func TestHTTPConnectRefused(t *testing.T) {
	for status, text := range map[int]string{401: "requires credentials", 403: "do not allow", 500: "HTTP 500", 404: "HTTP 404"} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			s := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
			s.Headers = nil
			p := newPool(t, Options{}, s)
			_, err := p.List(t.Context(), "s")
			wantError(t, err, core.KindUpstreamGone, text)
		})
	}
}

// TestHTTPHeaders checks that every request has the configured headers and, in a session, the protocol version.
func TestHTTPHeaders(t *testing.T) {
	h := &httpScript{}
	p := newPool(t, Options{}, serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s without configured header", r.Method)
		}
		if session := r.Header.Get("Mcp-Session-Id"); session != "" && r.Header.Get("Mcp-Protocol-Version") != "2025-11-25" {
			t.Errorf("version %q", r.Header.Get("Mcp-Protocol-Version"))
		}
		h.ServeHTTP(w, r)
	})))
	mustCall(t, p, "s", "t")
}

func TestHTTPCancel(t *testing.T) {
	gone := make(chan struct{})
	arrived := make(chan struct{})
	h := &httpScript{call: func(_ http.ResponseWriter, r *http.Request, _ request) {
		close(arrived)
		<-r.Context().Done()
		close(gone)
	}}
	p := newPool(t, Options{}, serveHTTP(t, h))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	_, err := p.Call(ctx, "s", "t", nil)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("%v", err)
	}
	testenv.Receive(t, gone, "the end of the request")
}

func TestSSEHostile(t *testing.T) {
	for name, tt := range map[string]struct {
		body string
		text string
	}{
		"no endpoint":    {"event: message\ndata: {}\n\n", "does not begin with the address"},
		"other origin":   {"event: endpoint\ndata: http://127.0.0.2:1/post\n\n", "another origin"},
		"empty":          {"", "does not begin with the address"},
		"stream is over": {"event: endpoint\ndata: /post\n\n", "ended the stream"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, tt.body)
			}))
			s.Transport = "sse"
			p := newPool(t, Options{}, s)
			_, err := p.List(t.Context(), "s")
			wantError(t, err, core.KindUpstreamGone, tt.text)
		})
	}
}
