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

// JudgeCall resolves the names in a call, checks its arguments and applies the policy, as when a program makes the call.
// It does not send the call. It returns an error if the call would be refused even with a person's approval. The call
// does not count towards the limit of calls.
func (r *Relay) JudgeCall(ctx context.Context, x ExecutionContext, c core.ToolCall) (judged JudgedCall, err error) {
	x.Functions = nil // only calls of tools are judged
	last := sandbox.HostFunc(func(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
		tool, _, d, refused := x.judgeCall(ctx, c)
		if refused != nil {
			return core.CallResult{}, refused
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
