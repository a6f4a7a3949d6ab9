package pipeline

import (
	"context"
	"encoding/json"

	"retort/internal/core"
	"retort/internal/pipeline/relay"
)

// Pass sends one request of a client to a server, through the same relay as calls of programs. The Outcome's result
// is MCP's as the server sent it, apart from hidden data.
func (p *Pipeline) Pass(ctx context.Context, req core.Request, r core.Passed) core.Outcome {
	p, req = p.forNewExecution(), p.complete(req)
	req.Code, req.NoCache = "", true
	name := r.Server + "." + r.Tool
	what := map[string]any{"direct": true, "method": r.Method}
	return p.fly(ctx, req, what, asked{Name: name, Arguments: r.Arguments}, func(ctx context.Context, f *flight) core.Outcome { return p.pass(ctx, req, r, f) })
}

func (p *Pipeline) pass(ctx context.Context, req core.Request, r core.Passed, f *flight) core.Outcome {
	ctx, free := p.claiming(ctx, req)
	defer free()
	x, err := p.open(req, f, nil)
	if err != nil {
		return x.fail(err)
	}
	x.callTimeout, x.exact = x.req.Limits.Timeout, &r
	x.see(x.passable(r))
	result, err := x.host.Call(ctx, core.Call{Server: r.Server, Tool: r.Tool, Arguments: r.Arguments})
	if err == nil {
		err = p.admit(ctx, len(result.Value))
	}
	if err != nil {
		return x.fail(err)
	}
	return x.close(core.Outcome{ExecutionID: req.ID, Status: core.StatusOK, Result: result.Value})
}

// passable returns the tools that a request can name: the visible ones, or one that stands for an MCP method. The
// policy judges a method by the name of that tool.
func (x *execution) passable(r core.Passed) *core.Toolset {
	if r.Method == "" {
		return x.tools
	}
	return x.pipeline.Policy.Toolset(method(r.Server, r.Tool))
}

// method returns a toolset with one tool that stands for an MCP method of a server.
func method(server, name string) *core.Toolset {
	t := &core.Tool{Server: server, Name: name, TypeScript: name, Python: name}
	return core.NewToolset([]*core.Server{{Name: server, TypeScript: server, Python: server, Tools: []*core.Tool{t}}})
}

// around applies f to a document that may be an MCP result.
func (x *execution) around(document json.RawMessage, f func([]byte) ([]byte, error)) (json.RawMessage, error) {
	if x.exact == nil {
		return f(document)
	}
	return relay.Around(document, f)
}

// Passable reports whether the policy allows an MCP method of a server, which is named as in Passed.
func (p *Pipeline) Passable(server, tool string) bool {
	_, ok := p.Policy.Toolset(method(server, tool)).Exact(server, tool)
	return ok
}

// Shown returns a server's listed items as the model may see them. Items that cannot be hidden are left out.
func (p *Pipeline) Shown(server string, items []json.RawMessage) (shown []json.RawMessage) {
	open, err := p.screened("default")
	if err != nil {
		return nil
	}
	for _, item := range items {
		if p.Secrets != nil {
			item = p.Secrets.Mask(item)
		}
		if open != nil {
			if item, err = open.Incoming(server, item); err != nil {
				continue
			}
			if item, err = open.Outgoing(item); err != nil {
				continue
			}
		}
		shown = append(shown, item)
	}
	if open != nil && open.Sync() != nil {
		return nil
	}
	return shown
}
