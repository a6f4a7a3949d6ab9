package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
	"retort/internal/devel/demo"
	"retort/internal/devel/testenv"
	"retort/internal/engine"
	"retort/internal/mcp/server/web"
)

func TestMain(m *testing.M) {
	engine.Init()
	home, err := os.MkdirTemp("", "retort-test-")
	if err != nil {
		panic(err)
	}
	_ = os.Setenv("HOME", home)
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // most tests spend their time waiting for processes and disks
	code := m.Run()
	_ = os.RemoveAll(home)
	os.Exit(code)
}

// tokens is an authenticator that accepts the token "token-NAME" for each principal NAME.
type tokens struct{}

func (tokens) Authenticate(_ context.Context, bearer string) (web.BearerPrincipal, error) {
	name, ok := strings.CutPrefix(bearer, "token-")
	switch {
	case name == "narrow":
		return web.BearerPrincipal{}, insufficient{}
	case !ok:
		return web.BearerPrincipal{}, errors.New("no")
	}
	return web.BearerPrincipal{Name: name}, nil
}

func (tokens) Challenge(*http.Request) string { return `Bearer realm="retort"` }

func (tokens) Routes() map[string]http.Handler {
	return map[string]http.Handler{"/.well-known/test": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "public") })}
}

type insufficient struct{}

func (insufficient) Error() string     { return "scope" }
func (insufficient) Challenge() string { return `Bearer error="insufficient_scope"` }

// testListener is a running listener for an engine with a demo server and, optionally, other servers. Tests check
// effects in the demo server's own record.
type testListener struct {
	t      *testing.T
	engine *engine.Engine
	files  *demo.DemoServer
	url    string
	stop   func()
}

func open(t *testing.T, change func(*web.Options), servers ...engine.Server) *testListener {
	t.Helper()
	files, err := demo.Open("files")
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(t.Context(), engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: t.TempDir(), Keys: t.TempDir(), Servers: append(servers, engine.Server{Name: "files", Dial: files.Dial})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	e.WaitForServers(t.Context())
	o := web.Options{Addr: "127.0.0.1:0", Engine: func(p string, g []string) web.Engine { return e.As(p, g...) }}
	if change != nil {
		change(&o)
	}
	l, err := web.OpenListener(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- l.Serve(ctx) }()
	stop := func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		served <- nil
	}
	t.Cleanup(stop)
	return &testListener{t, e, files, l.URL(), stop}
}

const (
	accepts = "application/json, text/event-stream"
	hello   = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	meta    = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}`
)

// send makes one HTTP request. Each of headers is given as "Name: value"; the header Host is set in the same way.
func (p *testListener) send(method, path, body string, headers ...string) (*http.Response, string) {
	p.t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(p.t.Context(), method, strings.TrimSuffix(p.url, web.Path)+path, in)
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Accept", accepts)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	seen := map[string]bool{}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		switch {
		case name == "Host":
			r.Host = value
		case seen[name]:
			r.Header.Add(name, value)
		default:
			r.Header.Set(name, value)
		}
		seen[name] = true
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return response, string(text)
}

// begin starts a session of protocol version 2025-11-25 and returns its id.
func (p *testListener) begin(headers ...string) string {
	p.t.Helper()
	r, text := p.send("POST", "/mcp", hello, headers...)
	id := r.Header.Get("Mcp-Session-Id")
	if r.StatusCode != 200 || id == "" {
		p.t.Fatalf("%s: %s", r.Status, text)
	}
	return id
}

// program returns the body and the headers of an HTTP request that runs code in protocol version 2026-07-28. The
// argument more is JSON text with further members for the params of the request.
func program(code, more string) (body string, headers []string) {
	text, _ := json.Marshal(code)
	return `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_code","arguments":{"code":` + string(text) + `},` + more + meta + `}}`,
		[]string{"Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: execute_code"}
}

const writes = `await files.createDirectory({path: '/srv/nordlys/a'}); return 'made'`

// TestGuards checks that requests that a foreign web page or a misconfigured proxy could cause are refused before
// they have any effect.
func TestGuards(t *testing.T) {
	t.Parallel()
	p := open(t, func(o *web.Options) {
		o.AllowedHosts, o.AllowedOrigins, o.Limits.Body = []string{"retort.example"}, []string{"https://app.example"}, 4096
	})
	body, modern := program(writes, "")
	replaced := func(i int, h string) []string {
		out := append([]string(nil), modern...)
		if h == "" {
			return append(out[:i], out[i+1:]...)
		}
		out[i] = h
		return out
	}
	for name, c := range map[string]struct {
		status  int
		body    string
		headers []string
	}{
		"another host":              {403, body, append(modern, "Host: evil.example")},
		"a host like this one":      {403, body, append(modern, "Host: localhost.evil.example")},
		"another address":           {403, body, append(modern, "Host: 192.0.2.1")},
		"another origin":            {403, body, append(modern, "Origin: https://evil.example")},
		"an origin like this one":   {403, body, append(modern, "Origin: http://localhost.evil.example")},
		"a picture of a page":       {403, body, append(modern, "Sec-Fetch-Site: cross-site")},
		"a page on another port":    {403, body, append(modern, "Sec-Fetch-Site: Same-Site")},
		"two sites":                 {400, body, append(modern, "Sec-Fetch-Site: none", "Sec-Fetch-Site: cross-site")},
		"an opaque origin":          {403, body, append(modern, "Origin: null")},
		"a form":                    {415, body, append(modern, "Content-Type: text/plain")},
		"a form with parameters":    {415, body, append(modern, "Content-Type: text/plain; a=application/json")},
		"no type":                   {415, body, append(modern, "Content-Type: ")},
		"a large body":              {413, `{"a":"` + strings.Repeat("x", 5000) + `"}`, modern},
		"two names":                 {400, body, append(modern, "Mcp-Name: search_tools")},
		"two origins":               {400, body, append(modern, "Origin: http://localhost", "Origin: https://evil.example")},
		"another method":            {400, body, replaced(1, "Mcp-Method: tools/list")},
		"another tool":              {400, body, replaced(2, "Mcp-Name: search_tools")},
		"no method":                 {400, body, replaced(1, "")},
		"no name":                   {400, body, replaced(2, "")},
		"another version":           {400, body, replaced(0, "Mcp-Protocol-Version: 2025-11-25")},
		"no version":                {400, body, replaced(0, "")},
		"a version that is unknown": {400, body, replaced(0, "Mcp-Protocol-Version: 2099-01-01")},
		"no JSON":                   {400, "{", modern},
		"a huge batch":              {400, "[" + strings.Repeat(`{"jsonrpc":"2.0","method":"ping"},`, 70) + "{}]", nil},
		"a session unknown":         {404, hello, []string{"Mcp-Session-Id: nobody"}},
	} {
		t.Run(name, func(t *testing.T) {
			if r, text := p.send("POST", "/mcp", c.body, c.headers...); r.StatusCode != c.status {
				t.Errorf("%s, want %d: %s", r.Status, c.status, text)
			}
		})
	}
	if n := len(p.files.RecordedEffects()); n != 0 {
		t.Fatalf("%d effects of what was refused", n)
	}
	for _, headers := range [][]string{nil, {"Host: localhost:1"}, {"Host: RETORT.example."}, {"Origin: http://localhost:3000"}, {"Origin: https://app.example"}, {"Sec-Fetch-Site: none"}, {"Sec-Fetch-Site: same-origin"}, {"Origin: https://app.example", "Sec-Fetch-Site: cross-site"}} {
		if r, text := p.send("POST", "/mcp", body, append(modern, headers...)...); r.StatusCode != 200 || !strings.Contains(text, `"made"`) {
			t.Errorf("%v: %s %s", headers, r.Status, text)
		}
	}
	if n := len(p.files.RecordedEffects()); n != 1 { // the folder is there then
		t.Errorf("%d effects", n)
	}
}

// TestOrigins checks that web pages of configured origins may read answers, and pages of this machine may not.
func TestOrigins(t *testing.T) {
	t.Parallel()
	p := open(t, func(o *web.Options) { o.AllowedOrigins = []string{"https://app.example"} })
	r, _ := p.send("OPTIONS", "/mcp", "", "Origin: https://app.example", "Access-Control-Request-Method: POST")
	if r.StatusCode != 204 || r.Header.Get("Access-Control-Allow-Origin") != "https://app.example" {
		t.Error(r.Status, r.Header)
	}
	r, _ = p.send("OPTIONS", "/mcp", "", "Origin: http://localhost:3000", "Access-Control-Request-Method: POST")
	if r.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Error(r.Status, r.Header)
	}
}

// TestClients checks that SDK clients of each protocol version can search for a tool, read its definition, run a
// program, approve a call and get the result.
func TestClients(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, version string }{{"stateless", "2026-07-28"}, {"sessions", "2025-11-25"}, {"sessions", "2025-03-26"}, {"events", "2024-11-05"}} {
		t.Run(c.name+"/"+c.version, func(t *testing.T) {
			p := open(t, nil)
			var asked atomic.Int64
			client := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				asked.Add(1)
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "once"}}, nil
			}})
			var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: p.url}
			if c.name == "events" {
				transport = &mcp.SSEClientTransport{Endpoint: strings.TrimSuffix(p.url, web.Path) + web.EventsPath}
			}
			session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: c.version})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			call := func(tool string, arguments map[string]any) string {
				r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
				if err != nil {
					t.Fatal(err)
				}
				text, _ := json.Marshal(r.StructuredContent)
				return string(text)
			}
			if got := call("search_tools", map[string]any{"query": "write a file"}); !strings.Contains(got, "files.writeFile") {
				t.Error(got)
			}
			if got := call("get_tool_definition", map[string]any{"name": "files.writeFile"}); !strings.Contains(got, "content: string") {
				t.Error(got)
			}
			got := call("execute_code", map[string]any{"code": `await files.writeFile({path: '/srv/nordlys/x.txt', content: 'one'}); return 'written'`})
			if !strings.Contains(got, `"written"`) || asked.Load() != 1 || len(p.files.RecordedEffects()) != 1 {
				t.Errorf("%s, asked %d times, effects %v", got, asked.Load(), p.files.RecordedEffects())
			}
		})
	}
}

// TestPrincipals checks that invalid tokens are refused, and that the session of one principal is unknown to another.
func TestPrincipals(t *testing.T) {
	t.Parallel()
	p := open(t, func(o *web.Options) { o.Authenticator = tokens{} })
	ann, bob := "Authorization: Bearer token-ann", "Authorization: Bearer token-bob"
	for header, status := range map[string]int{"Authorization: Bearer wrong": 401, "Authorization: Basic token-ann": 401, "X-None: 1": 401, "Authorization: Bearer token-": 401, "Authorization: Bearer token-narrow": 403, ann: 200} {
		r, _ := p.send("POST", "/mcp", hello, header)
		if r.StatusCode != status || (status != 200) != strings.HasPrefix(r.Header.Get("WWW-Authenticate"), "Bearer ") {
			t.Errorf("%s: %s %v", header, r.Status, r.Header)
		}
	}
	if r, text := p.send("GET", "/.well-known/test", ""); r.StatusCode != 200 || text != "public" {
		t.Error(r.Status, text)
	}
	session := "Mcp-Session-Id: " + p.begin(ann)
	for _, method := range []string{"POST", "GET", "DELETE"} {
		body := ""
		if method == "POST" {
			body = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
		}
		theirs, said := p.send(method, "/mcp", body, bob, session)
		none, same := p.send(method, "/mcp", body, bob, "Mcp-Session-Id: ABCDEFGHIJKLMNOPQRSTUVWXYZ")
		if theirs.StatusCode != 404 || none.StatusCode != 404 || said != same {
			t.Errorf("%s: %s %q, unknown: %s %q", method, theirs.Status, said, none.Status, same)
		}
	}
	if r, text := p.send("POST", "/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, ann, session); r.StatusCode != 200 || !strings.Contains(text, "execute_code") {
		t.Error(r.Status, text)
	}
}

// event parses the message in the first server-sent event of an HTTP response.
func event(t *testing.T, text string) (m struct {
	Result struct {
		ResultType        string
		RequestState      string
		InputRequests     map[string]any
		IsError           bool
		StructuredContent json.RawMessage
	}
}) {
	t.Helper()
	_, data, ok := strings.Cut(text, "data: ")
	if !ok || json.Unmarshal([]byte(strings.TrimSpace(data)), &m) != nil {
		t.Fatalf("no message in %q", text)
	}
	return m
}

// TestRequestState checks that a requestState is accepted once, and only for the principal and the call that it was
// issued for.
func TestRequestState(t *testing.T) {
	t.Parallel()
	p := open(t, func(o *web.Options) { o.Authenticator = tokens{} })
	const code = `await files.writeFile({path: '/srv/nordlys/x.txt', content: 'one'}); return 'written'`
	ann, bob := "Authorization: Bearer token-ann", "Authorization: Bearer token-bob"
	body, modern := program(code, "")
	_, text := p.send("POST", "/mcp", body, append(modern, ann)...)
	asked := event(t, text).Result
	if asked.ResultType != "input_required" || len(asked.InputRequests) != 1 {
		t.Fatal(text)
	}
	var id string
	for id = range asked.InputRequests {
	}
	if e := p.engine.As("bob"); len(e.Waiting("")) != 0 {
		t.Error("another principal sees what waits")
	} else if w := p.engine.Waiting(""); len(w) != 1 || e.Decide(id, w[0].Digest, core.ApprovalAnswer{Approve: true}) == nil {
		t.Errorf("another principal answers what waits: %v", w)
	}
	answered := func(state, code string, headers ...string) string {
		quoted, _ := json.Marshal(state)
		body, modern := program(code, `"requestState":`+string(quoted)+`,"inputResponses":{"`+id+`":{"action":"accept","content":{"decision":"once"}}},`)
		_, text := p.send("POST", "/mcp", body, append(modern, headers...)...)
		return text
	}
	forged := asked.RequestState[:len(asked.RequestState)-2] + "AA"
	for name, got := range map[string]string{
		"forged":                answered(forged, code, ann),
		"plain":                 answered(`{"execution_id":"x"}`, code, ann),
		"another principal's":   answered(asked.RequestState, code, bob),
		"for another program":   answered(asked.RequestState, code+" ", ann),
		"without its signature": answered(strings.Split(asked.RequestState, ".")[0], code, ann),
	} {
		if !strings.Contains(got, "nothing ran") || len(p.files.RecordedEffects()) != 0 {
			t.Errorf("%s: %s, effects %v", name, got, p.files.RecordedEffects())
		}
	}
	if got := answered(asked.RequestState, code, ann); !strings.Contains(got, `"result":"written"`) || len(p.files.RecordedEffects()) != 1 {
		t.Fatalf("%s, effects %v", got, p.files.RecordedEffects())
	}
	if got := answered(asked.RequestState, code, ann); !strings.Contains(got, "was already used; nothing ran") || len(p.files.RecordedEffects()) != 1 {
		t.Errorf("%s, effects %v", got, p.files.RecordedEffects())
	}
}

// TestAlwaysIsOnesOwn checks that an approval with the scope "always" counts only for the principal that gave it.
func TestAlwaysIsOnesOwn(t *testing.T) {
	t.Parallel()
	p := open(t, nil)
	const code = `await files.writeFile({path: '/srv/nordlys/x.txt', content: 'one'}); return 'written'`
	yes := core.WithChannel(t.Context(), func(context.Context, core.Approval) (core.ApprovalAnswer, bool) {
		return core.ApprovalAnswer{Approve: true, Scope: core.ScopeAlways}, true
	})
	if o := p.engine.As("ann").Execute(yes, core.ExecutionRequest{Code: code}); o.Status != core.StatusOK {
		t.Fatalf("%+v", o)
	}
	if o := p.engine.As("ann").Execute(t.Context(), core.ExecutionRequest{Code: code}); o.Status != core.StatusOK {
		t.Errorf("%+v", o)
	}
	if o := p.engine.As("bob").Execute(t.Context(), core.ExecutionRequest{Code: code}); o.Status != core.StatusPendingApproval {
		t.Errorf("%+v", o)
	}
}

// TestStatsOfOnePrincipal checks that the statistics of one principal do not include another principal's executions.
func TestStatsOfOnePrincipal(t *testing.T) {
	t.Parallel()
	p := open(t, nil)
	ann, bob := p.engine.As("ann"), p.engine.As("bob")
	if o := ann.Execute(t.Context(), core.ExecutionRequest{Code: "return 1"}); o.Status != core.StatusOK {
		t.Fatalf("%+v", o)
	}
	for _, session := range []string{"", "default"} {
		theirs, own := bob.Stats(t.Context(), session).(engine.Stats), ann.Stats(t.Context(), session).(engine.Stats)
		if theirs.Executions.Total != 0 || own.Executions.Total != 1 {
			t.Errorf("%q: %+v, %+v", session, theirs.Executions, own.Executions)
		}
	}
}

// gatedServer is an upstream server whose only tool answers no call before the channel pass is closed. It sends a
// value to the channel called whenever the tool is called.
type gatedServer struct{ called, pass chan struct{} }

func newGate() gatedServer { return gatedServer{make(chan struct{}, 8), make(chan struct{})} }

func (g gatedServer) server() engine.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "gate", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "pass", InputSchema: map[string]any{"type": "object"}, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			g.called <- struct{}{}
			select {
			case <-g.pass:
			case <-ctx.Done():
			}
			return &mcp.CallToolResult{}, nil
		})
	return engine.Server{Name: "gate", Dial: func(context.Context) (io.ReadWriteCloser, error) {
		ours, theirs := net.Pipe()
		go func() { _ = s.Run(context.Background(), &mcp.IOTransport{Reader: theirs, Writer: theirs}) }()
		return ours, nil
	}}
}

// TestLostStream checks that a client that has lost its connection can get the answer later, and that its program
// runs once.
func TestLostStream(t *testing.T) {
	t.Parallel()
	g := newGate()
	p := open(t, nil, g.server())
	session := "Mcp-Session-Id: " + p.begin()
	p.send("POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session)
	ctx, cancel := context.WithCancel(t.Context())
	body := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"execute_code","arguments":{"code":"await gate.pass({}); ` + writes + `"}}}`
	r, _ := http.NewRequestWithContext(ctx, "POST", p.url, strings.NewReader(body))
	for _, h := range []string{"Accept: " + accepts, "Content-Type: application/json", "Mcp-Protocol-Version: 2025-11-25", session} {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	var first bytes.Buffer
	for !strings.Contains(first.String(), "\n\n") {
		if _, err := io.CopyN(&first, response.Body, 1); err != nil {
			t.Fatal(err, first.String())
		}
	}
	cancel()
	_ = response.Body.Close()
	_, id, _ := strings.Cut(first.String(), "id: ")
	id, _, _ = strings.Cut(id, "\n")
	close(g.pass)
	var got *http.Response
	var text string
	testenv.WaitUntil(t, "the listener notices that the first stream was closed", func() bool {
		got, text = p.send("GET", "/mcp", "", session, "Mcp-Protocol-Version: 2025-11-25", "Last-Event-ID: "+id)
		return got.StatusCode != http.StatusConflict
	})
	if got.StatusCode != 200 || !strings.Contains(text, `"result":"made"`) || len(p.files.RecordedEffects()) != 1 {
		t.Errorf("%s %q, effects %v", got.Status, text, p.files.RecordedEffects())
	}
}

// TestQuotas checks that a principal over its limits is told when to try again, and that refused programs have no
// effects.
func TestQuotas(t *testing.T) {
	t.Parallel()
	p := open(t, func(o *web.Options) {
		o.Authenticator = tokens{}
		o.Limits = web.ListenerLimits{Requests: 6, Executions: 1, Sessions: 1}
	})
	ann, bob := "Authorization: Bearer token-ann", "Authorization: Bearer token-bob"
	refused := func(body string, headers ...string) {
		t.Helper()
		if r, text := p.send("POST", "/mcp", body, headers...); r.StatusCode != 429 || r.Header.Get("Retry-After") == "" {
			t.Errorf("%s %v %s", r.Status, r.Header, text)
		}
	}
	const waits = `await files.writeFile({path: '/srv/nordlys/x.txt', content: 'one'})`
	body, modern := program(waits, "")
	_, text := p.send("POST", "/mcp", body, append(modern, ann)...)
	if !strings.Contains(text, "input_required") {
		t.Fatal(text)
	}
	refused(body, append(modern, ann)...) // one waits for a person, and is under way
	body, modern = program("return 1", "")
	if _, text := p.send("POST", "/mcp", body, append(modern, bob)...); !strings.Contains(text, `"result":1`) {
		t.Error(text)
	}
	first := p.begin(bob)
	second := p.begin(bob) // ends the first, which nobody uses
	if r, _ := p.send("POST", "/mcp", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, bob, "Mcp-Session-Id: "+first); r.StatusCode != 404 {
		t.Error(r.Status)
	}
	if r, _ := p.send("POST", "/mcp", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, bob, "Mcp-Session-Id: "+second); r.StatusCode != 200 {
		t.Error(r.Status)
	}
	p.begin(bob)
	refused(hello, bob) // six requests in this minute
	if n := len(p.files.RecordedEffects()); n != 0 {
		t.Errorf("%d effects", n)
	}
}

// TestDrainCancels checks that a listener that shuts down cancels a program that does not end in time.
func TestDrainCancels(t *testing.T) {
	t.Parallel()
	var cancelled atomic.Bool
	var p *testListener
	g := newGate()
	p = open(t, func(o *web.Options) {
		o.Limits.Drain = 50 * time.Millisecond
		o.Cancel = func() { cancelled.Store(true); _ = p.engine.Close() }
	}, g.server())
	got := make(chan string, 1)
	go func() {
		body, modern := program("await gate.pass({}); return 'done'", "")
		_, text := p.send("POST", "/mcp", body, modern...)
		got <- text
	}()
	testenv.Receive(t, g.called, "the call of the program")
	p.stop()
	if text := testenv.Receive(t, got, "the answer"); !strings.Contains(text, `"status":"cancelled"`) || !cancelled.Load() {
		t.Errorf("%s, cancelled: %v", text, cancelled.Load())
	}
}

// TestWhereToListen checks that a listener without an Authenticator refuses addresses that other machines can reach.
func TestWhereToListen(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0"} {
		_, err := web.OpenListener(web.Options{Addr: addr})
		var refused *core.Error
		if !errors.As(err, &refused) || refused.Kind != core.KindPolicy {
			t.Errorf("%s: %v", addr, err)
		}
	}
	for _, addr := range []string{"here", "127.0.0.1"} {
		if _, err := web.OpenListener(web.Options{Addr: addr, Authenticator: tokens{}}); err == nil {
			t.Errorf("%q is listened to", addr)
		}
	}
}
