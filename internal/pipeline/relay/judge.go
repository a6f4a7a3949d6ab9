package relay

import (
	"context"

	"retort/internal/core"
	"retort/internal/policy"
	"retort/internal/sandbox"
)

// JudgedCall is a call as the relay would send it: with exact names, and with the real values in place of tokens.
type JudgedCall struct {
	core.ToolCall
	Definition *core.Tool
	Decision   policy.AccessDecision
}

// JudgeCall resolves, checks and judges a call as the ToolHost of Open does, but does not send it. It returns an error
// if the call would be refused whatever a person says. The call does not count towards the limit of calls.
func (r *Relay) JudgeCall(ctx context.Context, x ExecutionContext, c core.ToolCall) (judged JudgedCall, err error) {
	x.Functions = nil // only calls of tools are judged
	last := sandbox.HostFunc(func(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
		tool, ok := x.Tools.FindExact(c.Server, c.Tool)
		if !ok {
			return core.CallResult{}, x.Tools.NotFound(c.Server+"."+c.Tool).AtTool(c.Server, c.Tool)
		}
		tool, _, refused := x.vetTool(ctx, tool)
		if refused != nil {
			return core.CallResult{}, refused
		}
		d := x.Policy.DecideCall(tool, c.Arguments)
		if d.Verdict == policy.Deny {
			return core.CallResult{}, d.Error(tool)
		}
		judged = JudgedCall{c, tool, d}
		return core.CallResult{}, nil
	})
	host := ChainGuards(
		last, refusalGuard(x.Recorder), permitGuard(x.Permit), wellFormed, resolveGuard(x), privacyGuard(x),
		r.schemas.argumentGuard(x.Tools),
	)
	if _, err = host.Call(ctx, c); err == nil && judged.Definition == nil {
		err = core.Errorf(core.KindInvalidArguments, "relay.judge", "%q is not a tool of a server", c.Tool)
	}
	return judged, err
}
