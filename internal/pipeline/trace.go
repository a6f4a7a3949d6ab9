package pipeline

import (
	"context"
	"errors"
	"time"

	"retort/internal/core"
	"retort/internal/policy"
)

// unheard ends a step that is not traced.
func unheard(core.Event) {}

// step begins a step of the execution.
func (r *record) step(ctx context.Context, s core.Step, e core.Event) (context.Context, func(core.Event)) {
	if r.tracer == nil {
		return ctx, unheard
	}
	return r.tracer.Begin(ctx, s, e)
}

// requested returns the traced properties of an execution when it begins.
func (r *record) requested(req core.Request) core.Event {
	e := r.event(core.EventRequest)
	if r.tracer != nil && req.Code != "" {
		e.Facts = map[string]any{"language": string(req.Language)}
	}
	return e
}

// came returns the traced result of a step: err, or success if it is nil.
func came(err *core.Error) core.Event {
	if err == nil {
		return core.Event{Status: "ok"}
	}
	return core.Event{Status: string(err.Kind)}
}

// goes records and traces a call that is sent.
func (x *execution) goes(ctx context.Context, t *core.Tool, c core.Call, d policy.Decision) (context.Context, func(core.Result, error), *core.Error) {
	r := x.flight.record
	answered, refused := x.leaves(t, c, d)
	if refused != nil {
		return ctx, answered, refused
	}
	x.changes.call(x.tools, t, d)
	answered = x.watching(c, d, x.makes(t, c, d, answered))
	if r.tracer == nil {
		return ctx, answered, nil
	}
	e := r.event(core.EventCall)
	e.Server, e.Tool, e.Effect = t.Server, t.Name, d.Effect.Kind.String()
	inside, end := r.tracer.Begin(ctx, core.StepCall, e)
	return inside, func(result core.Result, err error) {
		answered(result, err)
		out := came(core.AsError(err))
		out.Bytes = int64(len(result.Value))
		end(out)
	}, nil
}

// watching notes a call that may have taken effect although no answer came.
func (x *execution) watching(c core.Call, d policy.Decision, answered func(core.Result, error)) func(core.Result, error) {
	if d.Effect.Kind == core.EffectRead {
		return answered
	}
	return func(result core.Result, err error) {
		if errors.Is(err, core.ErrOutcomeUnknown) {
			x.uncertain.add(c, x.masked(c.Arguments))
		}
		answered(result, err)
	}
}

// asks asks for approval and traces the wait. An earlier approval may cover the question.
func (x *execution) asks(ctx context.Context, q core.Question) *core.Error {
	if x.screen != nil {
		shown := [][]byte{q.Shown}
		for _, e := range q.Effects {
			shown = append(shown, e.Shown)
		}
		q.Outlines = x.screen.Outlines(shown...)
	}
	r := x.flight.record
	e := r.event(core.EventQuestion)
	e.Server, e.Tool, e.Effect = q.Server, q.Tool, q.Effect
	inside, end := r.step(ctx, core.StepApproval, e)
	asked, refused := x.pipeline.Approvals.Table.Put(inside, q)
	if asked && refused == nil {
		now := time.Now()
		x.approved.Store(&now)
	}
	end(came(refused))
	return refused
}
