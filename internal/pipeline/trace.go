package pipeline

import (
	"context"
	"errors"
	"time"

	"retort/internal/policy"
	"retort/internal/run"
)

// unheard is the end of a step that nobody follows.
func unheard(run.Event) {}

// step begins a step of the execution.
func (r *record) step(ctx context.Context, s run.Step, e run.Event) (context.Context, func(run.Event)) {
	if r.tracer == nil {
		return ctx, unheard
	}
	return r.tracer.Begin(ctx, s, e)
}

// requested is what is told of an execution when it begins.
func (r *record) requested(req run.Request) run.Event {
	e := r.event(run.EventRequest)
	if r.tracer != nil && req.Code != "" {
		e.Facts = map[string]any{"language": string(req.Language)}
	}
	return e
}

// came is how a step ended that failed with err, or did not.
func came(err *run.Error) run.Event {
	if err == nil {
		return run.Event{Status: "ok"}
	}
	return run.Event{Status: string(err.Kind)}
}

// goes has a call recorded that leaves, and followed.
func (x *execution) goes(ctx context.Context, t *run.Tool, c run.Call, d policy.Decision) (context.Context, func(run.Result, error), *run.Error) {
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
	e := r.event(run.EventCall)
	e.Server, e.Tool, e.Effect = t.Server, t.Name, d.Effect.Kind.String()
	inside, end := r.tracer.Begin(ctx, run.StepCall, e)
	return inside, func(result run.Result, err error) {
		answered(result, err)
		out := came(run.AsError(err))
		out.Bytes = int64(len(result.Value))
		end(out)
	}, nil
}

// watching keeps a call that may have taken effect although no answer came.
func (x *execution) watching(c run.Call, d policy.Decision, answered func(run.Result, error)) func(run.Result, error) {
	if d.Effect.Kind == run.EffectRead {
		return answered
	}
	return func(result run.Result, err error) {
		if errors.Is(err, run.ErrOutcomeUnknown) {
			x.uncertain.add(c, x.masked(c.Arguments))
		}
		answered(result, err)
	}
}

// asks asks a person, or whoever said yes before.
func (x *execution) asks(ctx context.Context, q run.Question) *run.Error {
	if x.screen != nil {
		shown := [][]byte{q.Shown}
		for _, e := range q.Effects {
			shown = append(shown, e.Shown)
		}
		q.Outlines = x.screen.Outlines(shown...)
	}
	r := x.flight.record
	e := r.event(run.EventQuestion)
	e.Server, e.Tool, e.Effect = q.Server, q.Tool, q.Effect
	inside, end := r.step(ctx, run.StepApproval, e)
	asked, refused := x.pipeline.Approvals.Table.Put(inside, q)
	if asked && refused == nil {
		now := time.Now()
		x.approved.Store(&now)
	}
	end(came(refused))
	return refused
}
