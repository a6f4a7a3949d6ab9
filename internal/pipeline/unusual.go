package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"retort/internal/core"
	"retort/internal/policy"
)

// AnomalyWatch detects anomalies. It gets all events from the audit log's recorder.
type AnomalyWatch interface {
	// Judge judges a call with effects that is about to be sent. If it returns an error, the call is refused.
	Judge(ctx context.Context, call core.AuditEvent) (AnomalyVerdict, *core.Error)
	// Stopped returns an error if an execution may make no more calls, or nil.
	Stopped(execution string) *core.Error
	// Warnings returns the anomalies that the Outcome of an execution must mention. Each is returned only once.
	Warnings(execution string) []string
}

// AnomalyVerdict says which anomalies are the reason why a call needs approval. It is empty if nothing about the call
// is unusual.
type AnomalyVerdict struct {
	Kinds string // with commas
	Rule  string // in words
}

// joinRule appends the description of the anomalies to rule, the reason why a call needs approval.
func (u AnomalyVerdict) joinRule(rule string) string {
	if u.Rule == "" || rule == "" {
		return rule + u.Rule
	}
	return rule + "; " + u.Rule
}

func (x *programExecution) judgeAnomaly(ctx context.Context, t *core.Tool, c core.ToolCall, d policy.AccessDecision) (AnomalyVerdict, *core.Error) {
	if x.pipeline.Watch == nil || d.Effect.Kind == core.EffectRead {
		return AnomalyVerdict{}, nil
	}
	e := x.callEvent(t, c, d)
	e.At = time.Now()
	return x.pipeline.Watch.Judge(ctx, e)
}

// recordUnlessStopped writes the audit log entry of a call right before the call is sent. It refuses the call if the
// execution was stopped because of an anomaly.
func (x *programExecution) recordUnlessStopped(
	t *core.Tool, c core.ToolCall, d policy.AccessDecision,
) (came func(core.CallResult, error), refused *core.Error) {
	if w := x.pipeline.Watch; w != nil {
		if refused := w.Stopped(x.req.ID); refused != nil {
			return nil, refused.AtTool(c.Server, c.Tool)
		}
	}
	return x.recordCall(t, c, d)
}

// addWarnings adds warnings to an Outcome about anomalies in the execution. If the execution was rejected, it also
// adds a warning for each server whose tools are unknown because a login is missing.
func (p *Pipeline) addWarnings(o core.Outcome) core.Outcome {
	if o.Status == core.StatusRejected {
		for _, w := range p.unlistedWarnings() {
			if !slices.Contains(o.Warnings, w) {
				o.Warnings = append(o.Warnings, w)
			}
		}
	}
	if p.Watch != nil {
		o.Warnings = append(o.Warnings, p.Watch.Warnings(o.ExecutionID)...)
	}
	return o
}

// callEvent returns the audit log entry for a call that is about to be sent.
func (x *execution) callEvent(t *core.Tool, c core.ToolCall, d policy.AccessDecision) core.AuditEvent {
	e := x.newEvent(core.EventCall)
	e.Server, e.Tool, e.Effect = t.Server, t.Name, d.Effect.Kind.String()
	e.Facts = map[string]any{"arguments_bytes": len(c.Arguments)}
	x.counts.mu.Lock()
	defer x.counts.mu.Unlock()
	if x.counts.tokens.longest >= fewTokens {
		e.Facts["token_run"] = x.counts.tokens.longest
	}
	return e
}

// tokenRun measures how many tokens with consecutive numbers, such as [EMAIL_1] and [EMAIL_2], follow each other in
// the arguments of calls. A long run suggests that a program enumerates personal data.
type tokenRun struct {
	kind             string
	number           int
	current, longest int
}

const (
	fewTokens = 10       // up to which a run is not recorded
	maxNamed  = 64 << 10 // bytes of arguments that are looked at
)

// noteTokens finds the tokens for personal data in a call's arguments and counts them in the execution's tokenRun.
func (x *execution) noteTokens(arguments json.RawMessage) {
	if x.pipeline.Recorder == nil {
		return
	}
	if !bytes.Contains(arguments, []byte("[")) {
		return
	}
	found := numberedToken().FindAllSubmatch(arguments[:min(len(arguments), maxNamed)], -1)
	if len(found) == 0 {
		return
	}
	x.counts.mu.Lock()
	defer x.counts.mu.Unlock()
	for _, m := range found {
		if n, err := strconv.Atoi(string(m[2])); err == nil {
			x.counts.tokens.addToken(string(m[1]), n)
		}
	}
}

var numberedToken = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\[([A-Z][A-Z0-9_]*)_([0-9]{1,9})\]`)
})

func (t *tokenRun) addToken(kind string, number int) {
	switch {
	case kind == t.kind && number == t.number:
		return
	case kind == t.kind && number == t.number+1:
		t.current++
	default:
		t.current = 1
	}
	t.kind, t.number, t.longest = kind, number, max(t.longest, t.current)
}
