package pipeline

import (
	"context"
	"errors"
	"time"

	"retort/internal/core"
	"retort/internal/policy"
)

// ignoreEnd does nothing. It is called at the end of each step when no tracer is configured.
func ignoreEnd(core.AuditEvent) {}

// beginStep begins a traced step of the execution, such as its check or a call.
func (x *execution) beginStep(ctx context.Context, s core.ExecutionStep, e core.AuditEvent) (context.Context, func(core.AuditEvent)) {
	if x.pipeline.Tracer == nil {
		return ctx, ignoreEnd
	}
	return x.pipeline.Tracer.Begin(ctx, s, e)
}

// requestedEvent returns the event with which the trace of an execution begins.
func (x *execution) requestedEvent() core.AuditEvent {
	e := x.newEvent(core.EventRequest)
	if x.pipeline.Tracer != nil && x.req.Code != "" {
		e.Facts = map[string]any{"language": string(x.req.Language)}
	}
	return e
}

// stepResult converts the error with which a step has ended to the result that is traced. A nil error means success.
func stepResult(err *core.Error) core.AuditEvent {
	if err == nil {
		return core.AuditEvent{Status: "ok"}
	}
	return core.AuditEvent{Status: string(err.Kind)}
}

// RecordSent implements relay.Recorder. It records and traces a call that is sent.
func (x *programExecution) RecordSent(
	ctx context.Context, t *core.Tool, c core.ToolCall, d policy.AccessDecision,
) (context.Context, func(core.CallResult, error), *core.Error) {
	release, refused := x.halt.admitCall(d.Effect.Kind)
	if refused != nil {
		return ctx, nil, x.halt.waitIfEnding(ctx)
	}
	c.Rehearsal = x.isRehearsing()
	answered, refused := x.recordUnlessStopped(t, c, d)
	if refused != nil {
		release()
		return ctx, answered, refused
	}
	x.changes.noteCall(x.tools, t, d)
	recorded := x.trackUncertain(c, d, x.trackSideEffect(t, c, d, answered))
	answered = func(result core.CallResult, err error) { recorded(result, err); release() }
	if x.pipeline.Tracer == nil {
		return ctx, answered, nil
	}
	e := x.newEvent(core.EventCall)
	e.Server, e.Tool, e.Effect = t.Server, t.Name, d.Effect.Kind.String()
	inside, end := x.pipeline.Tracer.Begin(ctx, core.StepCall, e)
	return inside, func(result core.CallResult, err error) {
		answered(result, err)
		out := stepResult(core.AsError(err))
		out.Bytes = int64(len(result.Value))
		end(out)
	}, nil
}

// trackUncertain wraps answered, the function that gets the result of a call with effects. The wrapping function also
// remembers the call for the Outcome: as made, or as uncertain if no answer came.
func (x *programExecution) trackUncertain(c core.ToolCall, d policy.AccessDecision, answered func(core.CallResult, error)) func(core.CallResult, error) {
	if d.Effect.Kind == core.EffectRead {
		return answered
	}
	return func(result core.CallResult, err error) {
		switch {
		case err == nil:
			x.made.addCall(c, d.Effect.Kind, x.maskJSON(c.Arguments))
		case errors.Is(err, core.ErrOutcomeUnknown):
			x.uncertain.addCall(c, x.maskJSON(c.Arguments))
		}
		answered(result, err)
	}
}

// askApproval asks for approval of something that a program needs. If the answer is no, or nobody answers, the program
// ends: askApproval then returns only after its end. If no program runs yet, it returns the refusal at once.
func (x *programExecution) askApproval(ctx context.Context, q core.Question) (core.ApprovalAnswer, *core.Error) {
	answer, refused := x.putQuestion(ctx, q)
	if refused == nil || refused.Kind != core.KindPolicy || q.Login != "" || !x.halt.isRunning() {
		return answer, refused
	}
	x.recordRefusal(core.ToolCall{Server: q.Server, Tool: q.Tool}, refused) // before the end of the execution
	x.halt.refuse(refused)
	return answer, x.halt.waitIfEnding(ctx)
}

// putQuestion asks for approval and traces how long it takes. If an earlier approval covers the question, nobody is
// asked.
func (x *programExecution) putQuestion(ctx context.Context, q core.Question) (core.ApprovalAnswer, *core.Error) {
	if ended := x.halt.waitIfEnding(ctx); ended != nil {
		return core.ApprovalAnswer{}, ended
	}
	if x.screen != nil {
		shown := [][]byte{q.Shown}
		for _, e := range q.Effects {
			shown = append(shown, e.Shown)
		}
		q.Outlines = x.screen.TokenOutlines(shown...)
	}
	e := x.newEvent(core.EventQuestion)
	e.Server, e.Tool, e.Effect = q.Server, q.Tool, q.Effect
	inside, end := x.beginStep(ctx, core.StepApproval, e)
	answer, asked, refused := x.pipeline.Approvals.Table.PutQuestion(inside, q)
	if asked && refused == nil {
		now := time.Now()
		x.approved.Store(&now)
	}
	end(stepResult(refused))
	return answer, refused
}
