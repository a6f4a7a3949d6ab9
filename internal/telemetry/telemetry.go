// Package telemetry reports executions and their steps, such as tool calls, to OpenTelemetry collectors and
// Prometheus, as spans and metrics. These contain no values of programs, tools or people, and no error messages. No
// other package imports OpenTelemetry. Nothing in Retort waits for telemetry: data that a collector does not accept
// in time is dropped and counted.
package telemetry

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/net/netutil"

	"retort/internal/core"
)

// Options configures telemetry. If all addresses are empty, nothing is reported.
type Options struct {
	Version string
	// Traces and Metrics are the addresses of collectors that accept OTLP over HTTP as protobuf. The standard path is
	// added to an address without a path.
	Traces, Metrics string
	Headers         map[string]string // HTTP headers sent to the collectors of Traces and of Metrics
	// Ratio is the share of traces that are reported, from 0 to 1; 0 means 1. It applies to traces that begin in
	// Retort. For a trace that begins in a client, the client decides.
	Ratio float64
	// Prometheus is the address at which metrics are served. If PrometheusToken is empty, requests must name this machine
	// as their host, so the address should be one that only this machine can reach. Otherwise they must have this token.
	Prometheus, PrometheusToken string
	Every                       time.Duration // interval between two reports of metrics; 30 s if 0
	// Known reports whether a tool exists. Calls of all tools that do not exist are counted together, under one name.
	Known func(server, tool string) bool
	// Record returns the state of the audit log: how many entries are queued, and whether writing has failed. It is
	// nil if there is no audit log.
	Record func() (queued int, failed bool)
	// Tasks returns how many jobs are waiting and how many have started. It is nil if there is no job queue.
	Tasks func() (queued, running int)
	// Mask removes secrets from names that clients and servers can choose. If it is nil, nothing is removed.
	Mask func(string) string
	Log  *slog.Logger

	transport http.RoundTripper // carries messages to collectors; nil means the network
}

const (
	serviceName = "retort"
	// shutdownTimeout bounds how long Close waits for collectors, in total.
	shutdownTimeout = 1500 * time.Millisecond
)

// Telemetry implements core.Tracer. It is safe for concurrent use.
type Telemetry struct {
	tracer  trace.Tracer // nil if no spans are reported
	mask    func(string) string
	metrics *stepMetrics // nil if no metrics are reported
	spans   *sdktrace.TracerProvider
	counts  *sdkmetric.MeterProvider
	reader  *sdkmetric.ManualReader
	queue   *spanQueue
	server  *http.Server
	address string
	token   string // token that requests for metrics must present; "" if no token is required
	close   func() error
}

var _ core.Tracer = (*Telemetry)(nil)

// Open starts reporting. It returns no error if the Prometheus address is in use, because another Retort process may
// be serving metrics there; it only logs that.
func Open(o Options) (*Telemetry, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	t := &Telemetry{mask: o.Mask, token: o.PrometheusToken}
	if t.mask == nil {
		t.mask = func(s string) string { return s }
	}
	t.close = sync.OnceValue(t.shutDown)
	about := resource.NewSchemaless(
		attribute.String("service.name", serviceName), attribute.String("service.version", o.Version),
		attribute.String("service.instance.id", rand.Text()),
	)
	if o.Traces != "" {
		s, err := newSender(o, o.Traces, "/v1/traces")
		if err != nil {
			return nil, err
		}
		t.startTracing(o, s, about)
	}
	if o.Metrics == "" && o.Prometheus == "" {
		return t, nil
	}
	if err := t.startMetrics(o, about); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	if o.Prometheus != "" {
		t.listenForPrometheus(o.Prometheus, o.Log)
	}
	return t, nil
}

func (t *Telemetry) startTracing(o Options, s *collectorSender, about *resource.Resource) {
	ratio := o.Ratio
	if ratio == 0 {
		ratio = 1
	}
	limits := sdktrace.NewSpanLimits()
	limits.AttributeValueLengthLimit = maxValue
	t.queue = newQueue(s.sendSpans)
	t.spans = sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithRawSpanLimits(limits), sdktrace.WithSpanProcessor(t.queue),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(ratio))))
	t.tracer = t.spans.Tracer(serviceName, trace.WithInstrumentationVersion(o.Version))
}

func (t *Telemetry) startMetrics(o Options, about *resource.Resource) error {
	options := []sdkmetric.Option{
		sdkmetric.WithResource(about), sdkmetric.WithExemplarFilter(exemplar.AlwaysOffFilter),
		sdkmetric.WithCardinalityLimit(maxSeries),
	}
	if o.Metrics != "" {
		s, err := newSender(o, o.Metrics, "/v1/metrics")
		if err != nil {
			return err
		}
		every := o.Every
		if every == 0 {
			every = 30 * time.Second
		}
		options = append(
			options,
			sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metricExporter{s}, sdkmetric.WithInterval(every), sdkmetric.WithTimeout(sendTimeout))),
		)
	}
	if o.Prometheus != "" {
		t.reader = sdkmetric.NewManualReader()
		options = append(options, sdkmetric.WithReader(t.reader))
	}
	t.counts = sdkmetric.NewMeterProvider(options...)
	var err error
	t.metrics, err = newMetrics(t.counts, o, t.droppedSpans)
	return err
}

// maxScrapers bounds the number of simultaneous connections to the listener for Prometheus. More have to wait.
const maxScrapers = 64

// listenForPrometheus starts an HTTP server for metrics at address.
func (t *Telemetry) listenForPrometheus(address string, log *slog.Logger) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		log.Warn("telemetry.prometheus: the metrics of this engine cannot be served", "error", err)
		return
	}
	t.address = l.Addr().String()
	l = netutil.LimitListener(l, maxScrapers)
	t.server = &http.Server{
		Handler: t.Handler(), ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second,
		WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	go func() { _ = t.server.Serve(l) }()
	log.Info("metrics are served", "address", "http://"+t.address+"/metrics")
}

// ListenAddress returns the address that serves metrics, or "" if none does.
func (t *Telemetry) ListenAddress() string { return t.address }

// droppedSpans returns how many spans were dropped.
func (t *Telemetry) droppedSpans() int64 {
	if t.queue == nil {
		return 0
	}
	return t.queue.dropped.Load()
}

// Close sends the queued data, waits for that at most for shutdownTimeout, and drops the rest. It also stops the
// listener for Prometheus.
func (t *Telemetry) Close() error { return t.close() }

func (t *Telemetry) shutDown() error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	var all sync.WaitGroup
	if t.spans != nil {
		all.Go(func() { _ = t.spans.Shutdown(ctx) }) // a collector that is gone is told of in the log
	}
	if t.counts != nil {
		all.Go(func() { _ = t.counts.Shutdown(ctx) })
	}
	all.Wait()
	if t.server != nil {
		return t.server.Close()
	}
	return nil
}
