package telemetry

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"retort/internal/core"
)

// maxTools bounds how many tools are counted under their own names. All others are counted as "other".
const maxTools = 1000

const otherName = "other"

// maxSeries bounds the number of time series of one metric. A metric about tool calls has one time series for each
// tool and status.
const maxSeries = 10_000

// durationBuckets lists the upper bounds of the histogram buckets for durations, in seconds.
var durationBuckets = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}

// stepMetrics holds the OpenTelemetry instruments that count executions and their steps, such as tool calls and
// approvals.
type stepMetrics struct {
	known func(server, tool string) bool

	executions, calls, refusals, tokens, approvals, hits metric.Int64Counter
	active, waiting                                      metric.Int64UpDownCounter
	duration, called                                     metric.Float64Histogram

	mu    sync.Mutex
	tools map[toolKey]metric.MeasurementOption
}

type toolKey struct{ server, name string }

func newMetrics(p metric.MeterProvider, o Options, dropped func() int64) (*stepMetrics, error) {
	m := &stepMetrics{known: o.Known, tools: map[toolKey]metric.MeasurementOption{}}
	b := instrumentBuilder{meter: p.Meter(serviceName, metric.WithInstrumentationVersion(o.Version))}
	m.executions = b.newCounter("retort.executions", "Executions that have ended.", "{execution}")
	m.calls = b.newCounter("retort.calls", "Calls that were sent to servers and have ended, also those that failed.", "{call}")
	m.refusals = b.newCounter("retort.refusals", "Calls that a rule or a limit refused; they were not sent.", "{call}")
	m.tokens = b.newCounter("retort.tokens", "Tokens that were sent to models, and tokens that were kept out of their context.", "{token}")
	m.approvals = b.newCounter("retort.approvals", "Approval requests that were answered or expired.", "{question}")
	m.hits = b.newCounter("retort.cache.hits", "Results that were returned from the cache.", "{answer}")
	m.active = b.upDown("retort.executions.active", "Executions that are running or waiting.", "{execution}")
	m.waiting = b.upDown("retort.approvals.waiting", "Approval requests that wait for a person.", "{question}")
	m.duration = b.newHistogram("retort.execution.duration", "Duration of executions, including waiting for persons.")
	m.called = b.newHistogram("retort.call.duration", "Duration of calls to servers.")
	b.newObservedCounter("retort.telemetry.dropped", "Spans that were not sent to a collector.", "{span}", dropped)
	if o.Record != nil {
		b.newGauge(
			"retort.record.queued", "Entries of the audit log that are not on disk yet.", "{entry}",
			func() int64 { n, _ := o.Record(); return int64(n) },
		)
		b.newGauge("retort.record.failed", "1 while the audit log cannot be written.", "1", func() int64 {
			if _, failed := o.Record(); failed {
				return 1
			}
			return 0
		})
	}
	if o.Tasks != nil {
		b.newGauge("retort.tasks.queued", "Jobs that wait in the queue.", "{task}", func() int64 { n, _ := o.Tasks(); return int64(n) })
		b.newGauge("retort.tasks.running", "Jobs that have started.", "{task}", func() int64 { _, n := o.Tasks(); return int64(n) })
	}
	return m, b.err
}

// instrumentBuilder creates OpenTelemetry instruments and keeps the first error.
type instrumentBuilder struct {
	meter metric.Meter
	err   error
}

func (b *instrumentBuilder) noteError(err error) {
	if b.err == nil {
		b.err = err
	}
}

func (b *instrumentBuilder) newCounter(name, what, unit string) metric.Int64Counter {
	c, err := b.meter.Int64Counter(name, metric.WithDescription(what), metric.WithUnit(unit))
	b.noteError(err)
	return c
}

func (b *instrumentBuilder) upDown(name, what, unit string) metric.Int64UpDownCounter {
	c, err := b.meter.Int64UpDownCounter(name, metric.WithDescription(what), metric.WithUnit(unit))
	b.noteError(err)
	return c
}

func (b *instrumentBuilder) newHistogram(name, what string) metric.Float64Histogram {
	h, err := b.meter.Float64Histogram(
		name, metric.WithDescription(what), metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(durationBuckets...),
	)
	b.noteError(err)
	return h
}

func (b *instrumentBuilder) newObservedCounter(name, what, unit string, f func() int64) {
	_, err := b.meter.Int64ObservableCounter(
		name, metric.WithDescription(what), metric.WithUnit(unit), metric.WithInt64Callback(observeCallback(f)),
	)
	b.noteError(err)
}

func (b *instrumentBuilder) newGauge(name, what, unit string, f func() int64) {
	_, err := b.meter.Int64ObservableGauge(
		name, metric.WithDescription(what), metric.WithUnit(unit), metric.WithInt64Callback(observeCallback(f)),
	)
	b.noteError(err)
}

func observeCallback(f func() int64) metric.Int64Callback {
	return func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(f())
		return nil
	}
}

func (m *stepMetrics) noteBegin(s core.ExecutionStep) {
	switch s {
	case core.StepExecution:
		m.active.Add(context.Background(), 1)
	case core.StepApproval:
		m.waiting.Add(context.Background(), 1)
	}
}

func (m *stepMetrics) noteEnd(s core.ExecutionStep, e, came *core.AuditEvent, took time.Duration) {
	ctx := context.Background()
	status := metric.WithAttributes(attribute.String("status", came.Status))
	switch s {
	case core.StepExecution:
		m.active.Add(ctx, -1)
		m.executions.Add(ctx, 1, status)
		m.duration.Record(ctx, took.Seconds(), status)
		m.noteOutcome(ctx, came)
	case core.StepApproval:
		m.waiting.Add(ctx, -1)
		m.approvals.Add(ctx, 1, status)
	case core.StepCall:
		of := m.toolLabel(e.Server, e.Tool)
		m.calls.Add(ctx, 1, of, status)
		m.called.Record(ctx, took.Seconds(), of)
	}
}

func (m *stepMetrics) noteOutcome(ctx context.Context, came *core.AuditEvent) {
	if t := came.Tokens; t != nil {
		m.tokens.Add(ctx, int64(t.Returned), metric.WithAttributes(attribute.String("kind", "returned")))
		m.tokens.Add(ctx, int64(t.Avoided), metric.WithAttributes(attribute.String("kind", "avoided")))
	}
	if n, ok := came.Facts["refusals"].(int); ok {
		m.refusals.Add(ctx, int64(n))
	}
	if hits, ok := came.Facts["cache_hits"].(int); ok {
		m.hits.Add(ctx, int64(hits))
	}
}

// toolLabel returns the value of the tool label in metrics: the tool's name if the tool exists and fewer than maxTools
// are counted, otherwise "other".
func (m *stepMetrics) toolLabel(server, name string) metric.MeasurementOption {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := toolKey{server, name}
	if o, ok := m.tools[key]; ok {
		return o
	}
	if len(m.tools) >= maxTools || m.known != nil && !m.known(server, name) {
		return metric.WithAttributes(attribute.String("server", otherName), attribute.String("tool", otherName))
	}
	o := metric.WithAttributeSet(attribute.NewSet(attribute.String("server", server), attribute.String("tool", name)))
	m.tools[key] = o
	return o
}
