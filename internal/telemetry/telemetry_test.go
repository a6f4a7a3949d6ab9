package telemetry

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	metricsv1 "go.opentelemetry.io/proto/slim/otlp/collector/metrics/v1"
	metricspb "go.opentelemetry.io/proto/slim/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"retort/internal/core"
)

// execute reports an execution with one call of each of the given tools.
func execute(t *Telemetry, tools ...string) {
	ctx, ended := t.Begin(context.Background(), core.StepExecution, core.AuditEvent{Execution: "x", Session: "s", Client: "c 1"})
	for _, name := range tools {
		_, came := t.Begin(ctx, core.StepCall, core.AuditEvent{Execution: "x", Server: "crm", Tool: name, Effect: "read"})
		came(core.AuditEvent{Status: "ok", Bytes: 12})
	}
	risk := 12
	ended(core.AuditEvent{Status: "ok", Risk: &risk, Tokens: &core.TokenStats{Returned: 3, Avoided: 40}, Facts: map[string]any{"calls": len(tools), "cache_hits": 2}})
}

// collector implements http.RoundTripper. It passes each message to a function, without a network.
type collector func(path string, body []byte) (status int)

func (c collector) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: c(r.URL.Path, body), Body: http.NoBody, Request: r}, nil
}

// TestMetricsAreSent checks that the official OpenTelemetry package can decode the messages.
func TestMetricsAreSent(t *testing.T) { synctest.Test(t, sendMetrics) }

func sendMetrics(t *testing.T) {
	found := map[string]*metricspb.Metric{}
	takes := collector(func(path string, body []byte) int {
		var m metricsv1.ExportMetricsServiceRequest
		if err := proto.Unmarshal(body, &m); err != nil || path != "/v1/metrics" {
			t.Error(path, err)
			return http.StatusBadRequest
		}
		for _, one := range m.ResourceMetrics[0].ScopeMetrics[0].Metrics {
			found[one.Name] = one
		}
		if len(m.ProtoReflect().GetUnknown()) > 0 {
			t.Error("the message has unknown fields")
		}
		return http.StatusOK
	})
	tel, err := Open(Options{Metrics: "http://collector.test", transport: takes, Record: func() (int, bool) { return 7, true }})
	if err != nil {
		t.Fatal(err)
	}
	execute(tel, "a", "b", "a")
	if err := tel.Close(); err != nil {
		t.Fatal(err)
	}
	h := found["retort.execution.duration"].GetHistogram()
	if p := h.GetDataPoints(); len(p) != 1 || p[0].Count != 1 || len(p[0].BucketCounts) != len(durationBuckets)+1 || len(p[0].ExplicitBounds) != len(durationBuckets) || h.AggregationTemporality != 2 {
		t.Error(h)
	}
	calls := found["retort.calls"].GetSum()
	if n := len(calls.GetDataPoints()); n != 2 || !calls.GetIsMonotonic() {
		t.Error(calls)
	}
	for name, want := range map[string]int64{"retort.executions": 1, "retort.cache.hits": 2, "retort.executions.active": 0} {
		if p := found[name].GetSum().GetDataPoints(); len(p) != 1 || p[0].GetAsInt() != want {
			t.Errorf("%s: %v", name, p)
		}
	}
	for name, want := range map[string]int64{"retort.record.queued": 7, "retort.record.failed": 1} {
		if p := found[name].GetGauge().GetDataPoints(); len(p) != 1 || p[0].GetAsInt() != want {
			t.Errorf("%s: %v", name, p)
		}
	}
}

func TestToolsAreBounded(t *testing.T) {
	tel, err := Open(Options{Prometheus: "127.0.0.1:0", Known: func(_, tool string) bool { return strings.HasPrefix(tool, "known") }})
	if err != nil {
		t.Fatal(err)
	}
	defer tel.Close()
	execute(tel, "made up", "known")
	for i := range 2 * maxTools {
		execute(tel, fmt.Sprint("known", i))
	}
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/metrics", nil))
	text := w.Body.String()
	if n := strings.Count(text, "\nretort_calls_total{"); n != maxTools+1 || strings.Contains(text, "made up") || !strings.Contains(text, `tool="other"`) {
		t.Errorf("%d tools", n)
	}
}

func TestLabelsAreEscaped(t *testing.T) {
	tel, err := Open(Options{Prometheus: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer tel.Close()
	execute(tel, "a\"b\\c\nd\xff")
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1:9/metrics", nil))
	if !strings.Contains(w.Body.String(), "tool=\"a\\\"b\\\\c\\nd\ufffd\"") {
		t.Error(w.Body)
	}
}

// TestToken checks that metrics behind a token are answered for any host, and only with the token.
func TestToken(t *testing.T) {
	const token = "0123456789abcdef"
	tel, err := Open(Options{Prometheus: "127.0.0.1:0", PrometheusToken: token})
	if err != nil {
		t.Fatal(err)
	}
	defer tel.Close()
	for header, want := range map[string]int{
		"Bearer " + token: 200, "bearer " + token: 200, "": 401, token: 401, "Basic " + token: 401, "Bearer ": 401, "Bearer": 401,
		"Bearer " + token + "0": 401, "Bearer " + token[1:]: 401, "Bearer  " + token: 401,
	} {
		r := httptest.NewRequest(http.MethodGet, "http://retort.example:9464/metrics", nil)
		r.Header.Set("Authorization", header)
		w := httptest.NewRecorder()
		tel.Handler().ServeHTTP(w, r)
		if w.Code != want || (w.Header().Get("WWW-Authenticate") != "") != (want == 401) || want == 401 && strings.Contains(w.Body.String(), "retort_") {
			t.Errorf("%q: %d %v %s", header, w.Code, w.Header(), w.Body)
		}
	}
	page := httptest.NewRequest(http.MethodGet, "http://retort.example:9464/metrics", nil)
	page.Header.Set("Authorization", "Bearer "+token)
	page.Header.Set("Origin", "https://evil.example")
	w := httptest.NewRecorder()
	if tel.Handler().ServeHTTP(w, page); w.Code != 403 {
		t.Error(w.Code)
	}
}

func TestOnlyThisMachineAsks(t *testing.T) {
	tel, _ := Open(Options{Prometheus: "127.0.0.1:0"})
	defer tel.Close()
	for host, want := range map[string]int{"localhost:1": 200, "127.0.0.2": 200, "[::1]:80": 200, "[::1]": 200, "evil.example:9464": 403, "localhost.evil.example": 403, "10.0.0.1": 403, "": 403} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Host = host
		w := httptest.NewRecorder()
		if tel.Handler().ServeHTTP(w, r); w.Code != want {
			t.Errorf("%q: %d", host, w.Code)
		}
	}
}

// TestPagesDoNotAsk checks that the metrics handler refuses requests that a web page caused, with and without an
// Origin header.
func TestPagesDoNotAsk(t *testing.T) {
	tel, _ := Open(Options{Prometheus: "127.0.0.1:0"})
	defer tel.Close()
	for _, h := range []struct {
		name, value string
		want        int
	}{{"Origin", "http://localhost:3000", 403}, {"Origin", "null", 403}, {"Sec-Fetch-Site", "cross-site", 403}, {"Sec-Fetch-Site", "same-site", 403}, {"Sec-Fetch-Site", "none", 200}, {"Sec-Fetch-Site", "same-origin", 200}} {
		r := httptest.NewRequest(http.MethodGet, "http://localhost/metrics", nil)
		r.Header.Set(h.name, h.value)
		w := httptest.NewRecorder()
		if tel.Handler().ServeHTTP(w, r); w.Code != h.want {
			t.Errorf("%s: %s: %d, want %d", h.name, h.value, w.Code, h.want)
		}
	}
}

func span() sdktrace.ReadOnlySpan {
	return tracetest.SpanStub{SpanContext: trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled})}.Snapshot()
}

// TestQueueIsBounded checks that a collector that hangs delays nothing, and that all spans it does not get are
// counted as dropped.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(func(ctx context.Context, _ bool, spans []sdktrace.ReadOnlySpan) error {
			<-ctx.Done()
			return ctx.Err()
		})
		const told = 3 * maxQueue
		one := span()
		began := time.Now()
		for range told {
			q.OnEnd(one)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("it waited for %s", took)
		}
		if n := q.dropped.Load(); n < told-maxQueue-2*maxBatch || n > told-maxQueue {
			t.Errorf("%d of %d were dropped", n, told)
		}
		ctx, cancel := context.WithTimeout(t.Context(), shutdownTimeout)
		defer cancel()
		if err := q.Shutdown(ctx); err == nil {
			t.Error("it ended with everything told")
		}
		if n := q.dropped.Load(); n != told {
			t.Errorf("%d are counted as dropped", n)
		}
	})
}

// TestNamesAreMasked checks that secrets in the names of sessions and clients are masked.
func TestNamesAreMasked(t *testing.T) {
	tel, err := Open(Options{Traces: "http://127.0.0.1:1", Mask: func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }})
	if err != nil {
		t.Fatal(err)
	}
	defer tel.Close()
	for _, a := range tel.spanAttributes(core.StepExecution, &core.AuditEvent{Execution: "x", Session: "is hunter2", Client: "hunter2 1"}) {
		if strings.Contains(a.Value.String(), "hunter2") {
			t.Error(a)
		}
	}
}

func TestSendsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		takesLater := collector(func(string, []byte) int {
			if n.Add(1) == 1 {
				return http.StatusServiceUnavailable
			}
			return http.StatusOK
		})
		tel, err := Open(Options{Traces: "http://collector.test", transport: takesLater})
		if err != nil {
			t.Fatal(err)
		}
		execute(tel)
		time.Sleep(batchDelay + firstRetryDelay - time.Nanosecond)
		if synctest.Wait(); n.Load() != 1 {
			t.Errorf("%d messages before the time for another, want 1", n.Load())
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if err := tel.Close(); err != nil || tel.droppedSpans() != 0 {
			t.Error(err, tel.droppedSpans())
		}
		if n.Load() != 2 {
			t.Errorf("%d messages, want 2", n.Load())
		}
	})
}

func BenchmarkExecution(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	for name, o := range map[string]Options{"traces": {Traces: server.URL}, "metrics": {Prometheus: "127.0.0.1:0"}, "both": {Traces: server.URL, Prometheus: "127.0.0.1:0"}} {
		b.Run(name, func(b *testing.B) {
			tel, err := Open(o)
			if err != nil {
				b.Fatal(err)
			}
			defer tel.Close()
			b.ReportAllocs()
			for b.Loop() {
				execute(tel, "a", "b", "c")
			}
		})
	}
}
