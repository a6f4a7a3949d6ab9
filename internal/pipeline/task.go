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

// visible returns the tools that the execution may see now: those that the policy shows, narrowed to those that the
// request names.
func (x *execution) visible() *core.Toolset {
	now := x.pipeline.Toolset()
	if x.req.Only == nil {
		return now
	}
	if x.whole == now {
		return x.tools
	}
	x.whole = now
	return narrowed(now, x.req.Only)
}

// narrowed returns a toolset with only these tools.
func narrowed(tools *core.Toolset, only []string) *core.Toolset {
	kept := map[*core.Tool]bool{}
	for _, name := range only {
		for _, t := range tools.Meant(name) {
			kept[t] = true
		}
	}
	return tools.Without(func(t *core.Tool) *core.Error {
		if kept[t] {
			return nil
		}
		return core.Errorf(core.KindPolicy, "pipeline.only", "%s.%s is not one of the tools of this task", t.Server, t.Name).
			WithHint("required_tools names the tools or servers that a task may use").At(t.Server, t.Name)
	})
}

// maxBefore bounds the earlier calls that a person is shown.
const maxBefore = 5

// again says why approval is needed for something that an earlier program of the task has already done.
type again struct {
	rule   string
	how    core.Repeats
	before []string
}

// made returns a call in the form that is stored for its task.
func (x *execution) made(t *core.Tool, c core.Call) core.Made {
	return core.Made{Execution: x.req.ID, Server: t.Server, Tool: t.Name, Key: core.KeyOf(canonjson.OrRaw(c.Arguments))}
}

func (x *execution) repeats(t *core.Tool, c core.Call) again {
	if x.req.Effects == nil {
		return again{}
	}
	same, similar := x.req.Effects.Before(x.req.ID, x.made(t, c))
	a := again{rule: "an earlier attempt at the same task has made exactly this call", how: core.RepeatsSame}
	if len(same) == 0 {
		a = again{rule: "an earlier attempt at the same task has called this tool with other arguments", how: core.RepeatsSimilar}
	}
	all := append(same, similar...)
	if len(all) == 0 {
		return again{}
	}
	for _, m := range all[:min(len(all), maxBefore)] {
		a.before = append(a.before, fmt.Sprintf("%s.%s(%s): %s", m.Server, m.Tool, m.Shown, m.State))
	}
	if more := len(all) - maxBefore; more > 0 {
		a.before = append(a.before, fmt.Sprintf("and %d calls more", more))
	}
	return a
}

// makes stores a call with effects, for the task, when it is sent.
func (x *execution) makes(t *core.Tool, c core.Call, d policy.Decision, answered func(core.Result, error)) func(core.Result, error) {
	if x.req.Effects == nil || d.Effect.Kind == core.EffectRead {
		return answered
	}
	m := x.made(t, c)
	m.Shown = x.masked(c.Arguments)
	kept := x.req.Effects.Leaves(m)
	return func(result core.Result, err error) {
		kept(core.AsError(err))
		answered(result, err)
	}
}

// Offer returns what a model needs to know about these tools, in one line each or in full. A server's name stands for
// all its tools. An unknown name is an error.
func (p *Pipeline) Offer(ctx context.Context, names []string, lang core.Language, full bool) ([]core.Offer, *core.Error) {
	tools := p.Toolset()
	missing := func(name string) bool { return len(tools.Meant(name)) == 0 }
	if slices.ContainsFunc(names, missing) {
		p.Tools.Wait(ctx, patience)
		tools = p.Toolset()
	}
	detail := bindings.Signature
	if full {
		detail = bindings.Full
	}
	offers, offered := []core.Offer{}, map[*core.Tool]bool{}
	for _, name := range names {
		meant := tools.Meant(name)
		if len(meant) == 0 {
			return nil, p.explained(tools.NotFound(name))
		}
		for _, t := range meant {
			if offered[t] {
				continue
			}
			offered[t] = true
			o := core.Offer{Effect: p.Policy.Tool(t).Effect.Kind.String(), Whole: len(meant) > 1}
			o.FoundTool = core.FoundTool{Name: bindings.Stub(tools, t, lang, bindings.Name), Server: t.Server, Tool: t.Name, Category: t.Category, Definition: p.stub(tools, t, lang, detail)}
			offers = append(offers, o)
		}
	}
	return offers, nil
}

// Judge checks a program without running it.
func (p *Pipeline) Judge(ctx context.Context, req core.Request) *core.Error {
	req = p.complete(req)
	tools := p.Toolset()
	if req.Only != nil {
		tools = narrowed(tools, req.Only)
	}
	_, refused := p.Gate.Check(ctx, req, tools, p.Skills)
	return refused
}

// Stepped records the step that a task is about to take. text can be read only with the audit log's key.
func (p *Pipeline) Stepped(session, phase string, facts map[string]any, text string) *core.Error {
	return p.noted(core.EventTask, session, phase, facts, asked{Name: text})
}

// Sealed returns a person's JSON as a model may see it.
func (p *Pipeline) Sealed(session string, raw json.RawMessage) (json.RawMessage, *core.Error) {
	open, err := p.screened(session)
	if err != nil || open == nil || len(raw) == 0 {
		return raw, core.AsError(err)
	}
	out, err := open.Outgoing(raw)
	if err == nil {
		err = open.Sync()
	}
	return out, core.AsError(err)
}

// Cleaned returns a server's text without content that reads like instructions to a model.
func (p *Pipeline) Cleaned(text string) string {
	clean, _ := p.prose(text)
	return strings.TrimSpace(clean)
}

// Wrapped renders a wrapper, or the module of a server in Python, with the project's template. Other files are
// returned unchanged.
func (p *Pipeline) Wrapped(lang core.Language, path, code string) string {
	if p.Wrapper == nil || !strings.HasPrefix(path, "servers/") || strings.HasSuffix(path, "/index.ts") || path == "servers/__init__.py" {
		return code
	}
	return p.Wrapper(lang, path, code)
}
