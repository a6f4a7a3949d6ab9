package pipeline

import (
	"context"
	"encoding/json"

	"retort/internal/core"
	"retort/internal/pipeline/relay"
)

// PassThrough sends one MCP request of a client to a server, through the same relay as calls of programs. The result
// in the Outcome is the server's own MCP result, in which personal data is hidden.
func (p *Pipeline) PassThrough(ctx context.Context, req core.ExecutionRequest, r core.PassthroughRequest) core.Outcome {
	p, req = p.forNewExecution(), p.completeRequest(req)
	req.Code, req.NoCache = "", true
	name := r.Server + "." + r.Tool
	what := map[string]any{"direct": true, "method": r.Method}
	return p.startExecution(
		ctx, req, what, requestBody{Name: name, Arguments: r.Arguments},
		func(ctx context.Context, own *execution) core.Outcome { return own.passRequest(ctx, r) },
	)
}

func (x *execution) passRequest(ctx context.Context, r core.PassthroughRequest) core.Outcome {
	ctx, free := x.withClaim(ctx)
	defer free()
	run, err := x.openProgram(nil)
	if err != nil {
		return run.failWith(err)
	}
	run.callTimeout, run.exact = run.req.Limits.Timeout, &r
	run.setTools(run.passableTools(r))
	result, err := run.host.Call(ctx, core.ToolCall{Server: r.Server, Tool: r.Tool, Arguments: r.Arguments})
	if err == nil {
		err = admitResult(ctx, len(result.Value))
	}
	if err != nil {
		return run.failWith(err)
	}
	return run.closeWith(core.Outcome{ExecutionID: run.req.ID, Status: core.StatusOK, Result: result.Value})
}

// passableTools returns the toolset with which a client's request is judged. If the request is not a tool call, the
// toolset has a single tool that stands for the MCP method, so that the policy can judge the method by that tool's
// name.
func (x *programExecution) passableTools(r core.PassthroughRequest) *core.Toolset {
	if r.Method == "" {
		return x.tools
	}
	return x.pipeline.Policy.VisibleToolset(methodToolset(r.Server, r.Tool))
}

// methodToolset returns a toolset with one tool that represents an MCP method of a server, so that the policy can
// judge the method like a tool.
func methodToolset(server, name string) *core.Toolset {
	t := &core.Tool{Server: server, Name: name, TypeScript: name, Python: name}
	return core.NewToolset([]*core.ToolServer{{Name: server, TypeScript: server, Python: server, Tools: []*core.Tool{t}}})
}

// hideAround returns a document after f has hidden the personal data in it. If the document is an MCP result,
// hideAround applies f only around the binary data in it, which stays unchanged.
func (x *programExecution) hideAround(document json.RawMessage, f func([]byte) ([]byte, error)) (json.RawMessage, error) {
	if x.exact == nil {
		return f(document)
	}
	return relay.HideAround(document, f)
}

// IsPassable reports whether the policy allows clients to use an MCP method of a server. tool is the method's name as
// in PassthroughRequest.Tool.
func (p *Pipeline) IsPassable(server, tool string) bool {
	_, ok := p.Policy.VisibleToolset(methodToolset(server, tool)).FindExact(server, tool)
	return ok
}

// CleanListed returns items that a server has listed, such as its resources, with secrets and personal data hidden.
// It leaves out items in which personal data cannot be hidden.
func (p *Pipeline) CleanListed(server string, items []json.RawMessage) (shown []json.RawMessage) {
	open, err := p.privacySession("default")
	if err != nil {
		return nil
	}
	for _, item := range items {
		if p.Secrets != nil {
			item = p.Secrets.Mask(item)
		}
		if open != nil {
			if item, err = open.RedactIncoming(server, item); err != nil {
				continue
			}
			if item, err = open.RedactOutgoing(item); err != nil {
				continue
			}
		}
		shown = append(shown, item)
	}
	if open != nil && open.SyncTokens() != nil {
		return nil
	}
	return shown
}
