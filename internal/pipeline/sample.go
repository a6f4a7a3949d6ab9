package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"retort/internal/core"
	"retort/internal/pipeline/bindings"
)

// Sample makes one call of a tool that only reads, to learn the type of its result. The result of the Outcome is the
// tool's core.ToolDefinition with that type; it never contains a value. The call passes the same guards as every call. A
// tool that declares its result is not called. Tools that do more than read are refused.
func (p *Pipeline) Sample(ctx context.Context, req core.ExecutionRequest, s core.SampleRequest) core.Outcome {
	req.Code, req.Language = "", s.Language
	p, req = p.forNewExecution(), p.completeRequest(req)
	what := map[string]any{"direct": true, "sample": true}
	return p.startExecution(ctx, req, what, requestBody{Name: s.Name, Arguments: s.Arguments},
		func(ctx context.Context, own *execution) core.Outcome { return own.executeSample(ctx, s) })
}

func (x *execution) executeSample(ctx context.Context, s core.SampleRequest) core.Outcome {
	ctx, free := x.withClaim(ctx)
	defer free()
	run, err := x.openCall()
	if err != nil {
		return run.failWith(err)
	}
	t, refused := run.findSampled(ctx, s)
	if refused != nil {
		return run.failWith(refused)
	}
	if len(t.OutputSchema) == 0 {
		value, err := run.callDirectly(ctx, t.Server+"."+t.Name, s.Arguments)
		if err != nil {
			return run.failWith(err)
		}
		if t, err = run.withInferred(t, value); err != nil {
			return run.failWith(err)
		}
	}
	var result bytes.Buffer
	plain := json.NewEncoder(&result)
	plain.SetEscapeHTML(false) // escapes would cost tokens
	if err := plain.Encode(core.ToolDefinition{
		Name:       bindings.RenderStub(run.tools, t, s.Language, bindings.Name),
		Definition: run.pipeline.completeDefinition(run.tools, t, s.Language, bindings.Full),
	}); err != nil {
		return run.failWith(err)
	}
	return run.closeWith(core.Outcome{ExecutionID: run.req.ID, Status: core.StatusOK, Result: bytes.TrimSpace(result.Bytes())})
}

// findSampled returns the tool to call. It refuses a tool that does more than read, as Retort judges it, and a call that
// lacks arguments.
func (x *programExecution) findSampled(ctx context.Context, s core.SampleRequest) (*core.Tool, error) {
	t, unknown := x.tools.FindInCategory(s.Name, s.Category)
	if unknown != nil && x.seesMore(ctx) {
		t, unknown = x.tools.FindInCategory(s.Name, s.Category)
	}
	switch {
	case unknown != nil:
		return nil, unknown
	case x.tools.RegistryOnly(t):
		return nil, x.tools.NoServerFor(t)
	case x.pipeline.Learner == nil:
		return nil, core.Errorf(core.KindInvalidArguments, "pipeline.sample", "no result types are learned").
			WithHint("the setting results.learn switches it on")
	}
	name := x.tools.QualifiedName(t)
	if d := x.pipeline.Policy.DecideCall(t, s.Arguments); d.Effect.Kind != core.EffectRead {
		return nil, core.Errorf(core.KindPolicy, "pipeline.sample", "no sample of %s: it does more than read. %s", name, d.Effect.Explain(t.Server+"."+t.Name)).
			WithHint("get its definition without sample; the field learned of the first program that calls it describes its result")
	}
	if missing := missingArguments(t, s.Arguments); len(missing) > 0 {
		return nil, core.Errorf(core.KindInvalidArguments, "pipeline.sample", "no sample of %s: it needs %s", name, strings.Join(missing, ", ")).
			WithHint("give them in arguments")
	}
	return t, nil
}

// missingArguments returns the names of the required arguments that are not given. Other mistakes are found when the call
// is made.
func missingArguments(t *core.Tool, arguments json.RawMessage) []string {
	var schema struct {
		Required []string `json:"required"`
	}
	var given map[string]json.RawMessage
	_ = json.Unmarshal(t.InputSchema, &schema)
	_ = json.Unmarshal(arguments, &given)
	return slices.DeleteFunc(schema.Required, func(name string) bool { _, ok := given[name]; return ok })
}

// withInferred returns a copy of the tool with the result type that a value shows.
func (x *programExecution) withInferred(t *core.Tool, value json.RawMessage) (*core.Tool, error) {
	learned := x.pipeline.Learner.Infer(t, value, x.personalKeys())
	if learned == nil {
		return nil, core.Errorf(core.KindToolError, "pipeline.sample", "the result of %s has no type that can be shown", x.tools.QualifiedName(t)).
			WithHint("its names may look like instructions, or results.learn is off; call the tool in a program and look at the result there")
	}
	sampled := *t
	sampled.Learned = learned
	return &sampled, nil
}
