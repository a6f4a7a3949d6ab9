package core

import (
	"context"
	"strings"
)

// Trace is where something stands in a trace that began elsewhere, as W3C Trace Context
// writes it. The zero Trace is none.
type Trace struct{ Parent, State string }

const (
	traceLength = 55  // 00-32 digits-16 digits-2 digits
	maxState    = 512 // bytes
	maxMembers  = 32
)

// NewTrace is the trace that a stranger names, the zero one if parent is none: of a version
// that is not known yet, what the known one has of it. A state that is wrong is left out.
func NewTrace(parent, state string) Trace {
	if len(parent) < traceLength || len(parent) > traceLength && (parent[:2] == "00" || parent[traceLength] != '-') {
		return Trace{}
	}
	parts := strings.Split(parent[:traceLength], "-")
	if len(parts) != 4 || !isHex(parts[0], 2) || !isHex(parts[1], 32) || !isHex(parts[2], 16) || !isHex(parts[3], 2) ||
		parts[0] == "ff" || strings.Trim(parts[1], "0") == "" || strings.Trim(parts[2], "0") == "" {
		return Trace{}
	}
	t := Trace{Parent: "00" + parent[2:traceLength]}
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
		if !ok || key == "" || strings.Trim(key, "abcdefghijklmnopqrstuvwxyz0123456789_-*/@") != "" || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' || r == '=' }) {
			return false
		}
	}
	return true
}

// ID is the 32 digits of the trace, empty if there is none.
func (t Trace) ID() string {
	if len(t.Parent) != traceLength {
		return ""
	}
	return t.Parent[3:35]
}

type traceKey struct{}

// WithTrace returns a context of which everything is part of a trace.
func WithTrace(ctx context.Context, t Trace) context.Context {
	if t.Parent == "" {
		return ctx
	}
	return context.WithValue(ctx, traceKey{}, t)
}

// TraceOf is the trace of a context.
func TraceOf(ctx context.Context) Trace {
	t, _ := ctx.Value(traceKey{}).(Trace)
	return t
}

// Step is a part of an execution that takes time.
type Step string

// The steps. A StepExecution is around all others.
const (
	StepExecution Step = "execution"
	StepGate      Step = "gate"     // whether the program may run
	StepApproval  Step = "approval" // waiting for a person
	StepSandbox   Step = "sandbox"  // the program runs
	StepCall      Step = "call"     // a call is out at a server
)

// Tracer is told what takes how long. It is safe for concurrent use, and nothing that it is
// told to do waits.
type Tracer interface {
	// Begin is told that a step begins, within what goes on in ctx. What happens in the
	// step has the context that it returns. end is told once what came of it. The plain
	// fields of events count, and no Body.
	Begin(ctx context.Context, s Step, e Event) (inside context.Context, end func(Event))
}
