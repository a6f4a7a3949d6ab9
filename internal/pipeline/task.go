package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"retort/internal/pipeline/emit"
	"retort/internal/pipeline/gate/approval"
	"retort/internal/policy"
	"retort/internal/run"
)

// visible is what the execution may see now: of what the policy lets be seen, the tools that its request is
// narrowed to.
func (x *execution) visible() *run.Toolset {
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

// narrowed is a toolset with these tools alone.
func narrowed(tools *run.Toolset, only []string) *run.Toolset {
	kept := map[*run.Tool]bool{}
	for _, name := range only {
		for _, t := range tools.Meant(name) {
			kept[t] = true
		}
	}
	return tools.Without(func(t *run.Tool) *run.Error {
		if kept[t] {
			return nil
		}
		return run.Errorf(run.KindPolicy, "pipeline.only", "%s.%s is not one of the tools of this task", t.Server, t.Name).
			WithHint("required_tools names the tools or servers that a task may use").At(t.Server, t.Name)
	})
}

// maxBefore bounds the earlier calls that a person is shown.
const maxBefore = 5

// again is why a person is asked before something is done that an earlier program of the task has done.
type again struct {
	rule   string
	how    run.Repeats
	before []string
}

// made is a call as it is kept of what a task has done.
func (x *execution) made(t *run.Tool, c run.Call) run.Made {
	return run.Made{Execution: x.req.ID, Server: t.Server, Tool: t.Name, Key: run.KeyOf(approval.Canonical(c.Arguments))}
}

func (x *execution) repeats(t *run.Tool, c run.Call) again {
	if x.req.Effects == nil {
		return again{}
	}
	same, similar := x.req.Effects.Before(x.req.ID, x.made(t, c))
	a := again{rule: "an earlier attempt at the same task has made exactly this call", how: run.RepeatsSame}
	if len(same) == 0 {
		a = again{rule: "an earlier attempt at the same task has called this tool with other arguments", how: run.RepeatsSimilar}
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

// makes keeps a call with effects that leaves.
func (x *execution) makes(t *run.Tool, c run.Call, d policy.Decision, answered func(run.Result, error)) func(run.Result, error) {
	if x.req.Effects == nil || d.Effect.Kind == run.EffectRead {
		return answered
	}
	m := x.made(t, c)
	m.Shown = x.masked(c.Arguments)
	kept := x.req.Effects.Leaves(m)
	return func(result run.Result, err error) {
		kept(run.AsError(err))
		answered(result, err)
	}
}

// Offer returns what a model needs to know of these tools, in one line each or in full. The name of a server means
// all of its tools. A name that means nothing is an error.
func (p *Pipeline) Offer(ctx context.Context, names []string, lang run.Language, full bool) ([]run.Offer, *run.Error) {
	tools := p.Toolset()
	missing := func(name string) bool { return len(tools.Meant(name)) == 0 }
	if slices.ContainsFunc(names, missing) {
		p.Tools.Wait(ctx, patience)
		tools = p.Toolset()
	}
	detail := emit.Signature
	if full {
		detail = emit.Full
	}
	offers, offered := []run.Offer{}, map[*run.Tool]bool{}
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
			o := run.Offer{Effect: p.Policy.Tool(t).Effect.Kind.String(), Whole: len(meant) > 1}
			o.FoundTool = run.FoundTool{Name: emit.Stub(tools, t, lang, emit.Name), Server: t.Server, Tool: t.Name, Category: t.Category, Definition: p.stub(tools, t, lang, detail)}
			offers = append(offers, o)
		}
	}
	return offers, nil
}

// Judge is what the gate says of a program that is not run.
func (p *Pipeline) Judge(ctx context.Context, req run.Request) *run.Error {
	req = p.complete(req)
	tools := p.Toolset()
	if req.Only != nil {
		tools = narrowed(tools, req.Only)
	}
	_, refused := p.Gate.Check(ctx, req, tools, p.Skills)
	return refused
}

// Stepped records how far a task is, before it goes there. text is what may be read with the key of the record.
func (p *Pipeline) Stepped(session, phase string, facts map[string]any, text string) *run.Error {
	return p.noted(run.EventTask, session, phase, facts, asked{Name: text})
}

// Sealed is JSON of a person's as a model may see it.
func (p *Pipeline) Sealed(session string, raw json.RawMessage) (json.RawMessage, *run.Error) {
	open, err := p.screened(session)
	if err != nil || open == nil || len(raw) == 0 {
		return raw, run.AsError(err)
	}
	out, err := open.Outgoing(raw)
	if err == nil {
		err = open.Sync()
	}
	return out, run.AsError(err)
}

// Cleaned is a text of a server's without what reads like instructions to a model.
func (p *Pipeline) Cleaned(text string) string {
	clean, _ := p.prose(text)
	return strings.TrimSpace(clean)
}

// Wrapped is the file of a wrapper, or of a server in Python, as the project wants it. Others are as they are.
func (p *Pipeline) Wrapped(lang run.Language, path, code string) string {
	if p.Wrapper == nil || !strings.HasPrefix(path, "servers/") || strings.HasSuffix(path, "/index.ts") || path == "servers/__init__.py" {
		return code
	}
	return p.Wrapper(lang, path, code)
}
