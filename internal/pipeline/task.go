package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"retort/internal/base/canonjson"
	"retort/internal/core"
	"retort/internal/pipeline/bindings"
	"retort/internal/policy"
)

// visibleTools returns the tools that the execution may see now: those that the policy shows, narrowed to those that the
// request names.
func (x *programExecution) visibleTools() *core.Toolset {
	now := x.pipeline.Toolset()
	if x.req.Only == nil {
		return now
	}
	if x.whole == now {
		return x.tools
	}
	x.whole = now
	return narrowTools(now, x.req.Only)
}

// narrowTools returns a toolset that contains only the named tools of the given toolset. The name of a server stands
// for all its tools.
func narrowTools(tools *core.Toolset, only []string) *core.Toolset {
	kept := map[*core.Tool]bool{}
	for _, name := range only {
		for _, t := range tools.MatchTools(name) {
			kept[t] = true
		}
	}
	return tools.WithoutRefused(func(t *core.Tool) *core.Error {
		if kept[t] {
			return nil
		}
		return core.Errorf(core.KindPolicy, "pipeline.only", "%s.%s is not one of the tools of this agent task", t.Server, t.Name).
			WithHint("required_tools lists the tools or servers that an agent task may use").AtTool(t.Server, t.Name)
	})
}

// maxBefore bounds how many calls that the same agent task made before are shown to the person who decides about a
// call.
const maxBefore = 5

// repeatReason says that an earlier program of the same agent task has already made a call, and why the call
// therefore needs approval.
type repeatReason struct {
	rule   string
	how    core.RepeatKind
	before []string
}

// newSideEffect converts a tool call to the form that is stored with its agent task.
func (x *programExecution) newSideEffect(t *core.Tool, c core.ToolCall) core.SideEffect {
	return core.SideEffect{Execution: x.req.ID, Server: t.Server, Tool: t.Name, Key: core.KeyOf(canonjson.OrRaw(c.Arguments))}
}

func (x *programExecution) findRepeats(t *core.Tool, c core.ToolCall) repeatReason {
	if x.req.Effects == nil {
		return repeatReason{}
	}
	same, similar := x.req.Effects.FindEarlier(x.req.ID, x.newSideEffect(t, c))
	a := repeatReason{rule: "an earlier attempt at the same task already made exactly this call", how: core.RepeatsSame}
	if len(same) == 0 {
		a = repeatReason{rule: "an earlier attempt at the same task already called this tool with other arguments", how: core.RepeatsSimilar}
	}
	all := append(same, similar...)
	if len(all) == 0 {
		return repeatReason{}
	}
	for _, m := range all[:min(len(all), maxBefore)] {
		a.before = append(a.before, fmt.Sprintf("%s.%s(%s): %s", m.Server, m.Tool, m.Shown, m.State))
	}
	if more := len(all) - maxBefore; more > 0 {
		a.before = append(a.before, fmt.Sprintf("and %d more calls", more))
	}
	return a
}

// trackSideEffect stores a call with side effects for the agent task when the call is sent, unless the call only
// reads.
func (x *programExecution) trackSideEffect(
	t *core.Tool, c core.ToolCall, d policy.AccessDecision, answered func(core.CallResult, error),
) func(core.CallResult, error) {
	if x.req.Effects == nil || d.Effect.Kind == core.EffectRead {
		return answered
	}
	m := x.newSideEffect(t, c)
	m.Shown = x.maskJSON(c.Arguments)
	kept := x.req.Effects.RecordSent(m)
	return func(result core.CallResult, err error) {
		kept(core.AsError(err))
		answered(result, err)
	}
}

// Offer returns descriptions of tools that a model may use: one line for each tool or, if full is true, the whole
// definition. The name of a server stands for all its tools. An unknown name is an error.
func (p *Pipeline) Offer(ctx context.Context, names []string, lang core.Language, full bool) ([]core.OfferedTool, *core.Error) {
	tools := p.Toolset()
	missing := func(name string) bool { return len(tools.MatchTools(name)) == 0 }
	if slices.ContainsFunc(names, missing) {
		p.Tools.WaitForPending(ctx, startTimeout)
		tools = p.Toolset()
	}
	detail := bindings.Signature
	if full {
		detail = bindings.Full
	}
	offers, offered := []core.OfferedTool{}, map[*core.Tool]bool{}
	for _, name := range names {
		meant := tools.MatchTools(name)
		if len(meant) == 0 {
			return nil, p.explainUnknown(tools.NotFound(name))
		}
		for _, t := range meant {
			if offered[t] {
				continue
			}
			offered[t] = true
			o := core.OfferedTool{Effect: p.Policy.DecideTool(t).Effect.Kind.String(), Whole: len(meant) > 1}
			o.FoundTool = core.FoundTool{
				Name: bindings.RenderStub(tools, t, lang, bindings.Name), Server: t.Server, Tool: t.Name, Category: t.Category,
				Definition: p.renderStub(tools, t, lang, detail),
			}
			offers = append(offers, o)
		}
	}
	return offers, nil
}

// Judge checks a program without running it. It returns the error with which the check refuses the program, or nil.
func (p *Pipeline) Judge(ctx context.Context, req core.ExecutionRequest) *core.Error {
	req = p.completeRequest(req)
	tools := p.Toolset()
	if req.Only != nil {
		tools = narrowTools(tools, req.Only)
	}
	_, refused := p.Gate.Check(ctx, req, tools, p.Skills)
	return refused
}

// RecordStep records in the audit log the next step of an agent task. Only readers of the audit log who have its key
// can read the argument text.
func (p *Pipeline) RecordStep(session, phase string, facts map[string]any, text string) *core.Error {
	return p.recordEvent(core.EventTask, session, phase, facts, requestBody{Name: text})
}

// SealJSON replaces personal data in a person's JSON by tokens, so that a model may see it.
func (p *Pipeline) SealJSON(session string, raw json.RawMessage) (json.RawMessage, *core.Error) {
	open, err := p.privacySession(session)
	if err != nil || open == nil || len(raw) == 0 {
		return raw, core.AsError(err)
	}
	out, err := open.RedactOutgoing(raw)
	if err == nil {
		err = open.SyncTokens()
	}
	return out, core.AsError(err)
}

// CleanText returns a server's text without parts that look like instructions to a model.
func (p *Pipeline) CleanText(text string) string {
	clean, _ := p.cleanProse(text)
	return strings.TrimSpace(clean)
}

// RenderWrapper renders a generated wrapper file with the project's template. Files for which there is no template
// are returned unchanged.
func (p *Pipeline) RenderWrapper(lang core.Language, path, code string) string {
	if p.Wrapper == nil || !strings.HasPrefix(path, "servers/") || strings.HasSuffix(path, "/index.ts") || path == "servers/__init__.py" {
		return code
	}
	return p.Wrapper(lang, path, code)
}
