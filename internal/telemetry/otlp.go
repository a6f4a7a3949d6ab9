package telemetry

import (
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// The numbers below are those of opentelemetry-proto, whose own package a test reads with.

// encodeSpans returns an ExportTraceServiceRequest. All spans must have the same resource and
// scope.
func encodeSpans(spans []sdktrace.ReadOnlySpan) []byte {
	var m message
	m.within(1, func(m *message) { // ResourceSpans
		encodeResource(m, spans[0].Resource())
		m.within(2, func(m *message) { // ScopeSpans
			encodeScope(m, spans[0].InstrumentationScope())
			for _, s := range spans {
				m.within(2, func(m *message) { encodeSpan(m, s) })
			}
		})
	})
	return m
}

func encodeResource(m *message, r *resource.Resource) {
	m.within(1, func(m *message) { encodeAttributes(m, 1, r.Attributes()) })
}

func encodeScope(m *message, s instrumentation.Scope) {
	m.within(1, func(m *message) {
		m.text(1, s.Name)
		m.text(2, s.Version)
	})
}

func encodeSpan(m *message, s sdktrace.ReadOnlySpan) {
	id, span := s.SpanContext().TraceID(), s.SpanContext().SpanID()
	m.bytes(1, id[:])
	m.bytes(2, span[:])
	m.text(3, s.SpanContext().TraceState().String())
	if parent := s.Parent().SpanID(); parent.IsValid() {
		m.bytes(4, parent[:])
	}
	m.text(5, strings.ToValidUTF8(s.Name(), "\ufffd"))
	m.varint(6, uint64(s.SpanKind()))
	m.fixed64(7, nanos(s.StartTime()))
	m.fixed64(8, nanos(s.EndTime()))
	encodeAttributes(m, 9, s.Attributes())
	if s.Status().Code == codes.Error {
		const failed = 2
		m.within(15, func(m *message) { m.varint(3, failed) })
	}
	const hasRemote, isRemote = 0x100, 0x200
	flags := uint32(s.SpanContext().TraceFlags()) | hasRemote
	if s.Parent().IsRemote() {
		flags |= isRemote
	}
	m.fixed32(16, flags)
}

func nanos(t time.Time) uint64 { return uint64(max(0, t.UnixNano())) }

func encodeAttributes(m *message, field uint64, all []attribute.KeyValue) {
	for _, a := range all {
		m.within(field, func(m *message) {
			m.text(1, string(a.Key))
			m.within(2, func(m *message) { encodeValue(m, a.Value) })
		})
	}
}

// encodeValue writes an AnyValue. It would write a list as text, but no attribute of Retort is a list.
func encodeValue(m *message, v attribute.Value) {
	switch v.Type() {
	case attribute.BOOL:
		set := uint64(0)
		if v.AsBool() {
			set = 1
		}
		m.varint(2, set)
	case attribute.INT64:
		m.varint(3, uint64(v.AsInt64()))
	case attribute.FLOAT64:
		m.double(4, v.AsFloat64())
	default:
		m.bytes(1, []byte(strings.ToValidUTF8(v.String(), "\ufffd")))
	}
}

// encodeMetrics returns an ExportMetricsServiceRequest.
func encodeMetrics(r *metricdata.ResourceMetrics) []byte {
	var m message
	m.within(1, func(m *message) { // ResourceMetrics
		encodeResource(m, r.Resource)
		for _, s := range r.ScopeMetrics {
			m.within(2, func(m *message) {
				encodeScope(m, s.Scope)
				for _, one := range s.Metrics {
					m.within(2, func(m *message) { encodeMetric(m, one) })
				}
			})
		}
	})
	return m
}

const cumulative = 2

func encodeMetric(m *message, one metricdata.Metrics) {
	m.text(1, one.Name)
	m.text(2, one.Description)
	m.text(3, one.Unit)
	switch d := one.Data.(type) {
	case metricdata.Gauge[int64]:
		m.within(5, func(m *message) { encodePoints(m, d.DataPoints) })
	case metricdata.Sum[int64]:
		m.within(7, func(m *message) {
			encodePoints(m, d.DataPoints)
			m.varint(2, cumulative)
			if d.IsMonotonic {
				m.varint(3, 1)
			}
		})
	case metricdata.Histogram[float64]:
		m.within(9, func(m *message) {
			for _, p := range d.DataPoints {
				m.within(1, func(m *message) { encodeHistogram(m, p) })
			}
			m.varint(2, cumulative)
		})
	}
}

func encodePoints(m *message, points []metricdata.DataPoint[int64]) {
	for _, p := range points {
		m.within(1, func(m *message) {
			m.fixed64(2, nanos(p.StartTime))
			m.fixed64(3, nanos(p.Time))
			m.fixed64(6, uint64(p.Value))
			encodeAttributes(m, 7, p.Attributes.ToSlice())
		})
	}
}

func encodeHistogram(m *message, p metricdata.HistogramDataPoint[float64]) {
	m.fixed64(2, nanos(p.StartTime))
	m.fixed64(3, nanos(p.Time))
	m.fixed64(4, p.Count)
	m.double(5, p.Sum)
	packed(m, 6, p.BucketCounts, func(n uint64) uint64 { return n })
	packed(m, 7, p.Bounds, math.Float64bits)
	encodeAttributes(m, 9, p.Attributes.ToSlice())
	if low, ok := p.Min.Value(); ok {
		m.double(11, low)
	}
	if high, ok := p.Max.Value(); ok {
		m.double(12, high)
	}
}
