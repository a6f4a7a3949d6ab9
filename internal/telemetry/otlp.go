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

// encodeSpans encodes spans as an ExportTraceServiceRequest. All spans must have the same resource and scope.
func encodeSpans(spans []sdktrace.ReadOnlySpan) []byte {
	var m protoMessage
	m.putMessage(1, func(m *protoMessage) { // ResourceSpans
		encodeResource(m, spans[0].Resource())
		m.putMessage(2, func(m *protoMessage) { // ScopeSpans
			encodeScope(m, spans[0].InstrumentationScope())
			for _, s := range spans {
				m.putMessage(2, func(m *protoMessage) { encodeSpan(m, s) })
			}
		})
	})
	return m
}

func encodeResource(m *protoMessage, r *resource.Resource) {
	m.putMessage(1, func(m *protoMessage) { encodeAttributes(m, 1, r.Attributes()) })
}

func encodeScope(m *protoMessage, s instrumentation.Scope) {
	m.putMessage(1, func(m *protoMessage) {
		m.putText(1, s.Name)
		m.putText(2, s.Version)
	})
}

func encodeSpan(m *protoMessage, s sdktrace.ReadOnlySpan) {
	id, span := s.SpanContext().TraceID(), s.SpanContext().SpanID()
	m.putBytes(1, id[:])
	m.putBytes(2, span[:])
	m.putText(3, s.SpanContext().TraceState().String())
	if parent := s.Parent().SpanID(); parent.IsValid() {
		m.putBytes(4, parent[:])
	}
	m.putText(5, strings.ToValidUTF8(s.Name(), "\ufffd"))
	m.putVarint(6, uint64(s.SpanKind()))
	m.putFixed64(7, unixNanos(s.StartTime()))
	m.putFixed64(8, unixNanos(s.EndTime()))
	encodeAttributes(m, 9, s.Attributes())
	if s.Status().Code == codes.Error {
		const failed = 2
		m.putMessage(15, func(m *protoMessage) { m.putVarint(3, failed) })
	}
	const hasRemote, isRemote = 0x100, 0x200
	flags := uint32(s.SpanContext().TraceFlags()) | hasRemote
	if s.Parent().IsRemote() {
		flags |= isRemote
	}
	m.putFixed32(16, flags)
}

func unixNanos(t time.Time) uint64 { return uint64(max(0, t.UnixNano())) }

func encodeAttributes(m *protoMessage, field uint64, all []attribute.KeyValue) {
	for _, a := range all {
		m.putMessage(field, func(m *protoMessage) {
			m.putText(1, string(a.Key))
			m.putMessage(2, func(m *protoMessage) { encodeValue(m, a.Value) })
		})
	}
}

// encodeValue writes an attribute's value as an AnyValue. Lists would be written as text, but Retort has no such
// attributes.
func encodeValue(m *protoMessage, v attribute.Value) {
	switch v.Type() {
	case attribute.BOOL:
		set := uint64(0)
		if v.AsBool() {
			set = 1
		}
		m.putVarint(2, set)
	case attribute.INT64:
		m.putVarint(3, uint64(v.AsInt64()))
	case attribute.FLOAT64:
		m.putDouble(4, v.AsFloat64())
	default:
		m.putBytes(1, []byte(strings.ToValidUTF8(v.String(), "\ufffd")))
	}
}

// encodeMetrics encodes metrics as an ExportMetricsServiceRequest.
func encodeMetrics(r *metricdata.ResourceMetrics) []byte {
	var m protoMessage
	m.putMessage(1, func(m *protoMessage) { // ResourceMetrics
		encodeResource(m, r.Resource)
		for _, s := range r.ScopeMetrics {
			m.putMessage(2, func(m *protoMessage) {
				encodeScope(m, s.Scope)
				for _, one := range s.Metrics {
					m.putMessage(2, func(m *protoMessage) { encodeMetric(m, one) })
				}
			})
		}
	})
	return m
}

const cumulative = 2

func encodeMetric(m *protoMessage, one metricdata.Metrics) {
	m.putText(1, one.Name)
	m.putText(2, one.Description)
	m.putText(3, one.Unit)
	switch d := one.Data.(type) {
	case metricdata.Gauge[int64]:
		m.putMessage(5, func(m *protoMessage) { encodePoints(m, d.DataPoints) })
	case metricdata.Sum[int64]:
		m.putMessage(7, func(m *protoMessage) {
			encodePoints(m, d.DataPoints)
			m.putVarint(2, cumulative)
			if d.IsMonotonic {
				m.putVarint(3, 1)
			}
		})
	case metricdata.Histogram[float64]:
		m.putMessage(9, func(m *protoMessage) {
			for _, p := range d.DataPoints {
				m.putMessage(1, func(m *protoMessage) { encodeHistogram(m, p) })
			}
			m.putVarint(2, cumulative)
		})
	}
}

func encodePoints(m *protoMessage, points []metricdata.DataPoint[int64]) {
	for _, p := range points {
		m.putMessage(1, func(m *protoMessage) {
			m.putFixed64(2, unixNanos(p.StartTime))
			m.putFixed64(3, unixNanos(p.Time))
			m.putFixed64(6, uint64(p.Value))
			encodeAttributes(m, 7, p.Attributes.ToSlice())
		})
	}
}

func encodeHistogram(m *protoMessage, p metricdata.HistogramDataPoint[float64]) {
	m.putFixed64(2, unixNanos(p.StartTime))
	m.putFixed64(3, unixNanos(p.Time))
	m.putFixed64(4, p.Count)
	m.putDouble(5, p.Sum)
	putPacked(m, 6, p.BucketCounts, func(n uint64) uint64 { return n })
	putPacked(m, 7, p.Bounds, math.Float64bits)
	encodeAttributes(m, 9, p.Attributes.ToSlice())
	if low, ok := p.Min.Value(); ok {
		m.putDouble(11, low)
	}
	if high, ok := p.Max.Value(); ok {
		m.putDouble(12, high)
	}
}
