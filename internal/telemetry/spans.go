package telemetry

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"retort/internal/core"
)

// maxValue bounds the length of an attribute in characters. Attributes can be long because clients choose their own
// names and those of sessions.
const maxValue = 200

// Begin implements core.Tracer.
func (t *Telemetry) Begin(ctx context.Context, s core.ExecutionStep, e core.AuditEvent) (context.Context, func(core.AuditEvent)) {
	began := time.Now()
	var span trace.Span
	if t.tracer != nil {
		ctx, span = t.startSpan(ctx, s, &e)
	}
	if t.metrics != nil {
		t.metrics.noteBegin(s)
	}
	return ctx, func(came core.AuditEvent) {
		if t.metrics != nil {
			t.metrics.noteEnd(s, &e, &came, time.Since(began))
		}
		if span != nil {
			finishSpan(span, s, &came)
		}
	}
}

// startSpan starts a span. Its parent is the span in ctx, or else the one in the traceparent that the client has
// sent.
func (t *Telemetry) startSpan(ctx context.Context, s core.ExecutionStep, e *core.AuditEvent) (context.Context, trace.Span) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		if from := core.TraceOf(ctx); from.Parent != "" {
			ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": from.Parent, "tracestate": from.State})
		}
	}
	name, kind := spanName(s, e)
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(kind))
	if span.IsRecording() {
		span.SetAttributes(t.spanAttributes(s, e)...)
	}
	if s == core.StepExecution || s == core.StepCall {
		to := propagation.MapCarrier{}
		propagation.TraceContext{}.Inject(ctx, to)
		ctx = core.WithTrace(ctx, core.NewTrace(to["traceparent"], to["tracestate"]))
	}
	return ctx, span
}

func spanName(s core.ExecutionStep, e *core.AuditEvent) (string, trace.SpanKind) {
	switch s {
	case core.StepExecution:
		return "execution", trace.SpanKindServer
	case core.StepCall:
		return "tools/call " + e.Server + "." + e.Tool, trace.SpanKindClient
	}
	return string(s), trace.SpanKindInternal
}

// spanAttributes returns the attributes that the span of a step has from its beginning.
func (t *Telemetry) spanAttributes(s core.ExecutionStep, e *core.AuditEvent) []attribute.KeyValue {
	a := []attribute.KeyValue{attribute.String("retort.execution", e.Execution)}
	add := func(key, value string) {
		if value != "" {
			a = append(a, attribute.String(key, t.mask(value)))
		}
	}
	switch s {
	case core.StepExecution:
		add("retort.session", e.Session)
		add("retort.principal", e.Principal)
		add("retort.client", e.Client)
		language, _ := e.Facts["language"].(string)
		add("retort.language", language)
	case core.StepCall:
		add("mcp.method.name", "tools/call")
		add("gen_ai.tool.name", e.Tool)
		add("retort.server", e.Server)
		add("retort.effect", e.Effect)
	case core.StepApproval:
		add("retort.server", e.Server)
		add("gen_ai.tool.name", e.Tool)
		add("retort.effect", e.Effect)
	}
	return a
}

// reportedFacts lists the facts about an execution that its span reports, each with the name of the span's
// attribute. The facts come from the audit log event at the end of the execution.
var reportedFacts = []struct{ fact, key string }{
	{"sandbox", "retort.sandbox"}, {"runtime", "retort.runtime"}, {"calls", "retort.calls"}, {"refusals", "retort.refusals"},
	{"cache_hits", "retort.cache_hits"}, {"memory_bytes", "retort.memory_bytes"},
}

// finishSpan ends a span and sets its last attributes. Of an error it reports only the kind, because the text may
// come from a tool or a program.
func finishSpan(span trace.Span, s core.ExecutionStep, came *core.AuditEvent) {
	defer span.End()
	if !span.IsRecording() {
		return
	}
	a := []attribute.KeyValue{attribute.String("retort.status", came.Status)}
	if came.Status != "ok" {
		span.SetStatus(codes.Error, "")
		a = append(a, attribute.String("error.type", came.Status))
	}
	if s == core.StepCall {
		a = append(a, attribute.Int64("retort.bytes", came.Bytes))
	}
	if s == core.StepExecution {
		a = append(a, outcomeAttributes(came)...)
	}
	span.SetAttributes(a...)
}

func outcomeAttributes(came *core.AuditEvent) (a []attribute.KeyValue) {
	if kind, ok := came.Facts["error"]; ok {
		a = append(a, attribute.String("error.type", fmt.Sprint(kind)))
	}
	if came.Risk != nil {
		a = append(a, attribute.Int("retort.risk", *came.Risk))
	}
	if came.Tokens != nil {
		a = append(a, attribute.Int("retort.tokens.returned", came.Tokens.Returned), attribute.Int("retort.tokens.avoided", came.Tokens.Avoided))
	}
	for _, f := range reportedFacts {
		switch v := came.Facts[f.fact].(type) {
		case string:
			a = append(a, attribute.String(f.key, v))
		case int:
			a = append(a, attribute.Int(f.key, v))
		}
	}
	return a
}
