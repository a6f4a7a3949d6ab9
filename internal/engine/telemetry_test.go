package engine_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"retort/internal/core"
	"retort/internal/devel/demo"
	"retort/internal/devel/testenv"
	"retort/internal/engine"
)

// spanCollector collects the spans that were sent to a collector.
type spanCollector struct {
	mu    sync.Mutex
	spans []*tracepb.Span
	auth  string
}

func (g *spanCollector) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var m collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &m); err != nil || r.URL.Path != "/v1/traces" {
		panic(fmt.Sprint(r.URL.Path, err))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.auth = r.Header.Get("Authorization")
	for _, one := range m.ResourceSpans {
		for _, scope := range one.ScopeSpans {
			g.spans = append(g.spans, scope.Spans...)
		}
	}
}

func (g *spanCollector) named(name string) (found []*tracepb.Span) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.spans {
		if strings.HasPrefix(s.Name, name) {
			found = append(found, s)
		}
	}
	return found
}

// messageTap stores the messages that are sent to a server.
type messageTap struct {
	mu   sync.Mutex
	sent bytes.Buffer
}

func (t *messageTap) dial(to func(context.Context) (io.ReadWriteCloser, error)) func(context.Context) (io.ReadWriteCloser, error) {
	return func(ctx context.Context) (io.ReadWriteCloser, error) {
		c, err := to(ctx)
		return &tap{c, t}, err
	}
}

// metas returns the _meta members of the calls that were sent.
func (t *messageTap) metas() (all []map[string]any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for line := range strings.Lines(t.sent.String()) {
		var m struct {
			Method string
			Params struct {
				Meta map[string]any `json:"_meta"`
			}
		}
		if json.Unmarshal([]byte(line), &m) == nil && m.Method == "tools/call" {
			all = append(all, m.Params.Meta)
		}
	}
	return all
}

type tap struct {
	io.ReadWriteCloser
	to *messageTap
}

func (t *tap) Write(b []byte) (int, error) {
	t.to.mu.Lock()
	t.to.sent.Write(b)
	t.to.mu.Unlock()
	return t.ReadWriteCloser.Write(b)
}

// newLegacyServer returns a server of an older protocol version. Its only tool just reads, like tools of the demo
// servers.
func newLegacyServer() *scriptedServer {
	return &scriptedServer{
		tools: func() string {
			return `{"name":"get_note","description":"Read a note.","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}`
		},
		answer: func(string, json.RawMessage) string { return `{"content":[{"type":"text","text":"a note"}]}` },
	}
}

// sendLines sends lines to the MCP server of an engine, and returns the response to the request with the id 9.
func sendLines(t *testing.T, e *engine.Engine, lines ...string) string {
	t.Helper()
	in, input := io.Pipe()
	output, out := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Serve(ctx, in, out, false) }()
	answers := bufio.NewScanner(output)
	answers.Buffer(nil, 1<<20)
	defer func() { cancel(); _ = input.Close(); go io.Copy(io.Discard, output); <-done }()
	go func() {
		for _, l := range lines {
			fmt.Fprintln(input, l)
		}
	}()
	for answers.Scan() {
		if strings.Contains(answers.Text(), `"id":9`) {
			return answers.Text()
		}
	}
	t.Fatal("there was no answer")
	return ""
}

const (
	clientTrace  = "0af7651916cd43dd8448eb211c80319c"
	clientParent = "00-" + clientTrace + "-b7ad6b7169203331-01"
	traceProgram = `const n = await old.getNote({}); const c = await crm.describeObject({objectType: 'Account'}); return 1`
)

// tracedRequests returns the messages of a client that runs a program and passes the id of the trace to which the
// program belongs. The client uses the old or the new protocol version.
func tracedRequests(modern bool, parent string) []string {
	code, _ := json.Marshal(traceProgram)
	call := func(meta string) string {
		return `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"_meta":{` + meta + `"traceparent":"` + parent + `","tracestate":"vendor=1"},"name":"execute_code","arguments":{"code":` + string(code) + `}}}`
	}
	if modern {
		return []string{call(`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{},`)}
	}
	return []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`, call(""),
	}
}

func openTraced(t *testing.T, settings string) (*engine.Engine, *messageTap, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	sent := &messageTap{}
	e, err := engine.Open(t.Context(), engine.Config{
		NoFiles: true, Reserve: engine.ReserveNone, Home: t.TempDir(), Keys: t.TempDir(), Settings: settings, Log: slog.New(slog.NewJSONHandler(&log, nil)),
		Servers: []engine.Server{{Name: "old", Dial: sent.dial(newLegacyServer().dial)}, {Name: "crm", Dial: sent.dial(demo.DialFunc("crm"))}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	e.WaitForServers(t.Context())
	return e, sent, &log
}

func TestTraceFromClientToServers(t *testing.T) {
	for _, modern := range []bool{false, true} {
		t.Run(fmt.Sprint(modern), func(t *testing.T) {
			g := &spanCollector{}
			server := httptest.NewServer(g)
			defer server.Close()
			e, sent, log := openTraced(t, "telemetry: {traces: '"+server.URL+"', headers: {Authorization: Bearer x}}")
			if answer := sendLines(t, e, tracedRequests(modern, clientParent)...); !strings.Contains(answer, `"status":"ok"`) {
				t.Fatal(answer)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			checkTrace(t, g, sent)
			if g.auth != "Bearer x" {
				t.Errorf("the header is %q", g.auth)
			}
			if !strings.Contains(log.String(), `"trace":"`+clientTrace+`"`) {
				t.Errorf("the log does not name the trace:\n%s", log)
			}
		})
	}
}

// checkTrace checks the spans of a traced program, and the trace that its servers were sent.
func checkTrace(t *testing.T, g *spanCollector, sent *messageTap) {
	t.Helper()
	one := func(name string) *tracepb.Span {
		found := g.named(name)
		if len(found) != 1 {
			t.Fatalf("%d spans %s", len(found), name)
		}
		if id := fmt.Sprintf("%x", found[0].TraceId); id != clientTrace || found[0].TraceState != "vendor=1" {
			t.Errorf("%s is of the trace %s %s", name, id, found[0].TraceState)
		}
		return found[0]
	}
	whole, inside := one("execution"), one("sandbox")
	if parent := fmt.Sprintf("%x", whole.ParentSpanId); parent != "b7ad6b7169203331" || whole.Kind != tracepb.Span_SPAN_KIND_SERVER {
		t.Errorf("the execution is below %s", parent)
	}
	var outside []string
	for _, meta := range sent.metas() {
		outside = append(outside, fmt.Sprint(meta["traceparent"]))
		if meta["tracestate"] != "vendor=1" {
			t.Error(meta)
		}
	}
	for name, parent := range map[string][]byte{"gate": whole.SpanId, "sandbox": whole.SpanId, "tools/call old.get_note": inside.SpanId, "tools/call crm.describe_object": inside.SpanId} {
		s := one(name)
		if !bytes.Equal(s.ParentSpanId, parent) {
			t.Errorf("%s is below %x", name, s.ParentSpanId)
		}
		if strings.HasPrefix(name, "tools") && !slices.Contains(outside, fmt.Sprintf("00-%s-%x-01", clientTrace, s.SpanId)) {
			t.Errorf("no server was told of %s: %q", name, outside)
		}
	}
	text := fmt.Sprint(g.spans)
	for _, value := range []string{"'Account'", "a note", "return 1"} {
		if strings.Contains(text, value) {
			t.Errorf("a span tells %q", value)
		}
	}
}

// TestTraceIsPassedOn checks that a client's trace is passed on to the servers even without telemetry, and that an
// invalid one is not.
func TestTraceIsPassedOn(t *testing.T) {
	for parent, want := range map[string]string{clientParent: clientParent, "00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01": "<nil>", `00-x\n`: "<nil>"} {
		e, sent, _ := openTraced(t, "")
		if answer := sendLines(t, e, tracedRequests(true, parent)...); !strings.Contains(answer, `"status":"ok"`) {
			t.Fatal(answer)
		}
		for _, meta := range sent.metas() {
			if fmt.Sprint(meta["traceparent"]) != want {
				t.Errorf("%q became %v", parent, meta)
			}
		}
		if n := len(sent.metas()); n != 2 {
			t.Errorf("%d calls", n)
		}
	}
}

// TestCollectorsThatDoNotTake checks that programs succeed and the engine closes even if the collector
// hangs, refuses messages or can't be reached. The one that hangs answers only after the engine has
// closed.
func TestCollectorsThatDoNotTake(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	released := make(chan struct{})
	t.Cleanup(func() { close(released) })
	for name, answer := range map[string]http.HandlerFunc{
		"hangs":   func(http.ResponseWriter, *http.Request) { <-released },
		"refuses": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"closed":  nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it spends most of its time waiting
			if answer == nil {
				executeUncollected(t, "http://"+closed.Addr().String(), nil)
				return
			}
			asked := make(chan struct{})
			once := sync.OnceFunc(func() { close(asked) })
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { once(); answer(w, r) }))
			t.Cleanup(func() { go server.Close() }) // Close waits for requests that hang
			executeUncollected(t, server.URL, asked)
		})
	}
}

// executeUncollected executes programs in an engine that sends telemetry to a collector at url, and closes the
// engine. The channel asked is closed when the collector has received a request; it is nil if the collector cannot
// be reached.
func executeUncollected(t *testing.T, url string, asked <-chan struct{}) {
	t.Helper()
	e := openWith(t, "telemetry: {traces: '"+url+"', metrics: '"+url+"'}", "crm")
	e.WaitForServers(t.Context())
	for i := range 3 {
		if o := e.Execute(t.Context(), engine.Request{Code: "return await crm.listUsers({})"}); o.Status != core.StatusOK {
			t.Errorf("%s %+v", o.Status, o.Error)
		}
		if i == 0 && asked != nil { // the other programs run while the collector handles a message
			testenv.Receive(t, asked, "a message to the collector")
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

func TestMetricsCanBeAskedFor(t *testing.T) {
	e, _, log := openTraced(t, "telemetry: {prometheus: '127.0.0.1:0'}")
	e.Execute(t.Context(), engine.Request{Code: traceProgram})
	e.Execute(t.Context(), engine.Request{Code: "throw new Error('secret')"})
	address := regexp.MustCompile(`http://[^"]+/metrics`).FindString(log.String())
	resp, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(families)
	for _, name := range []string{"retort_executions_total", "retort_execution_duration_seconds", "retort_calls_total", "retort_call_duration_seconds", "retort_tokens_total",
		"retort_executions_active", "retort_record_queued", "retort_record_failed", "target_info"} {
		if families[name] == nil {
			t.Errorf("there is no %s", name)
		}
	}
	if n := families["retort_calls_total"].GetMetric(); len(n) != 2 || n[0].GetCounter().GetValue() != 1 {
		t.Error(n)
	}
	if strings.Contains(text, "secret") {
		t.Error("a metric tells what a program said")
	}
	req, _ := http.NewRequest(http.MethodGet, address, nil)
	req.Host = "evil.example"
	if resp, err := http.DefaultClient.Do(req); err != nil || resp.StatusCode != http.StatusForbidden {
		t.Error(resp, err)
	}
}

// TestNoTelemetryUnlessAskedFor checks that without settings no telemetry is sent.
func TestNoTelemetryUnlessAskedFor(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
	e := open(t, "crm")
	e.Execute(t.Context(), engine.Request{Code: "return 1"})
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for _, part := range []string{"internal/telemetry", "go.opentelemetry.io"} {
		if bytes.Contains(stacks, []byte(part)) {
			t.Errorf("%s is active", part)
		}
	}
}

func BenchmarkTelemetry(b *testing.B) {
	g := &spanCollector{}
	server := httptest.NewServer(g)
	defer server.Close()
	for _, c := range []struct{ name, settings string }{
		{"off", ""}, {"metrics", "telemetry: {prometheus: '127.0.0.1:0'}"}, {"traces", "telemetry: {traces: '" + server.URL + "'}"},
	} {
		b.Run(c.name, func(b *testing.B) {
			e := openWith(b, c.settings, "crm")
			e.WaitForServers(b.Context())
			b.ReportAllocs()
			for b.Loop() {
				if o := e.Call(b.Context(), engine.Request{}, "crm.listUsers", json.RawMessage("{}")); o.Status != core.StatusOK {
					b.Fatal(o.Status, o.Error)
				}
			}
		})
	}
}
