package core

import (
	"context"
	"strings"
)

// TraceContext represents a position in a distributed trace, in the form of W3C Trace Context. The zero value means no trace.
type TraceContext struct{ Parent, State string }

const (
	traceLength = 55  // 00-32 digits-16 digits-2 digits
	maxState    = 512 // bytes
	maxMembers  = 32
)

// NewTrace parses the headers traceparent and tracestate of a client. It returns the zero TraceContext if parent is
// invalid. If parent has an unknown version, it uses only the fields that version 00 defines. It ignores an invalid
// state.
func NewTrace(parent, state string) TraceContext {
	if len(parent) < traceLength || len(parent) > traceLength && (parent[:2] == "00" || parent[traceLength] != '-') {
		return TraceContext{}
	}
	parts := strings.Split(parent[:traceLength], "-")
	if len(parts) != 4 || !isHex(parts[0], 2) || !isHex(parts[1], 32) || !isHex(parts[2], 16) || !isHex(parts[3], 2) ||
		parts[0] == "ff" || strings.Trim(parts[1], "0") == "" || strings.Trim(parts[2], "0") == "" {
		return TraceContext{}
	}
	t := TraceContext{Parent: "00" + parent[2:traceLength]}
	if isTraceState(state) {
		t.State = state
	}
	return t
}

func isHex(s string, n int) bool { return len(s) == n && strings.Trim(s, "0123456789abcdef") == "" }

func isTraceState(s string) bool {
	if s == "" || len(s) > maxState || strings.Count(s, ",") >= maxMembers {
		return false
	}
	for member := range strings.SplitSeq(s, ",") {
		key, value, ok := strings.Cut(strings.Trim(member, " \t"), "=")
		if !ok || key == "" || strings.Trim(key, "abcdefghijklmnopqrstuvwxyz0123456789_-*/@") != "" ||
			strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' || r == '=' }) {
			return false
		}
	}
	return true
}

// TraceID returns the trace's id, 32 hexadecimal digits, or "".
func (t TraceContext) TraceID() string {
	if len(t.Parent) != traceLength {
		return ""
	}
	return t.Parent[3:35]
}

// WithTrace returns a context whose work belongs to the trace t.
func WithTrace(ctx context.Context, t TraceContext) context.Context {
	if t.Parent == "" {
		return ctx
	}
	return WithRequester(ctx, Requester{Trace: &t})
}

// TraceOf returns the TraceContext of the context, or the zero value.
func TraceOf(ctx context.Context) TraceContext {
	if t := findRequester(ctx, func(r *Requester) bool { return r.Trace != nil }).Trace; t != nil {
		return *t
	}
	return TraceContext{}
}

// ExecutionStep names a timed step of an execution.
type ExecutionStep string

// The steps of an execution that are traced. The step StepExecution contains all other steps.
const (
	StepExecution ExecutionStep = "execution"
	StepGate      ExecutionStep = "gate"     // whether the program may run
	StepApproval  ExecutionStep = "approval" // waiting for a person
	StepSandbox   ExecutionStep = "sandbox"  // the program runs
	StepCall      ExecutionStep = "call"     // a call is out at a server
)

// Tracer receives the start and end of each step. It is safe for concurrent use and must not block.
type Tracer interface {
	// Begin starts a step inside the step of ctx. It returns the context for the work inside the new step. end must
	// be called once with the result. A tracer uses only the plain fields of the events, never Body.
	Begin(ctx context.Context, s ExecutionStep, e AuditEvent) (inside context.Context, end func(AuditEvent))
}
