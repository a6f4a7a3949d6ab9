package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"retort/internal/base/canonjson"
	"retort/internal/core"
	"retort/internal/pipeline/check/rules"
	"retort/internal/pipeline/relay"
)

// Bounds on the calls for which a program asks with approve.
const (
	maxBatch   = 1000 // calls
	maxPurpose = 300  // bytes of the text that says what they are for
)

// batchRequest holds the arguments of approve, the function with which a program asks for approval of calls that it is
// going to make.
type batchRequest struct {
	Purpose  string      `json:"purpose"`
	Calls    []namedCall `json:"calls"`
	Optional bool        `json:"optional"`
}

// namedCall is a call whose tool has exact names, or a name in any spelling.
type namedCall struct {
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments"`
}

// toolCall returns the call as a program makes it.
func (n namedCall) toolCall() core.ToolCall {
	if n.Name == "" {
		return core.ToolCall{Server: n.Server, Tool: n.Tool, Arguments: n.Arguments}
	}
	arguments, _ := json.Marshal(n) // it was JSON
	return core.ToolCall{Tool: "call", Arguments: arguments}
}

// approveBatch asks a person to approve a list of calls at once. Each of them can then be made once without another
// question. If the answer is no, the program ends, unless it said that the calls are optional: then it gets false.
// Nobody is asked about calls that need no approval, or in a dry run, which asks about all its calls afterwards.
func (x *programExecution) approveBatch(ctx context.Context, raw json.RawMessage) (any, error) {
	var r batchRequest
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, core.Errorf(core.KindInvalidArguments, "pipeline.approve", "approve: %v", err)
	}
	if len(r.Calls) > maxBatch {
		return nil, core.Errorf(core.KindLimit, "pipeline.approve", "approve was given %d calls; the maximum is %d", len(r.Calls), maxBatch).
			WithHint("ask about fewer calls at a time")
	}
	effects, rule, err := x.judgeBatch(ctx, r.Calls)
	if err != nil || len(effects) == 0 || x.isDryRun() {
		return err == nil, err
	}
	q := x.newQuestion(rule)
	q.Effects, q.Purpose = effects, cmp.Or(x.hideText(cutTo(r.Purpose, maxPurpose)), "(nothing)")
	q.Impact, q.Discreet = &core.Impact{Reversible: true}, &core.Impact{Reversible: true}
	for _, e := range effects {
		q.Impact.Add(callImpact(e.Tool, e.Effect, e.Arguments))
		q.Discreet.Add(callImpact(e.Tool, e.Effect, e.Shown))
	}
	q.Impact, q.Discreet = q.Impact.ForQuestion(), q.Discreet.ForQuestion()
	ask := x.askApproval
	if r.Optional {
		ask = x.putQuestion
	}
	answer, refused := ask(ctx, q)
	switch {
	case refused == nil:
		x.granted.addApproved(effects, answer)
		return true, nil
	case r.Optional && refused.Kind == core.KindPolicy:
		return false, nil
	}
	return nil, refused
}

// judgeBatch returns those of the calls that need a person's approval, and the reasons. It returns an error if a call
// would be refused anyway.
func (x *programExecution) judgeBatch(ctx context.Context, calls []namedCall) (effects []core.IntendedCall, rule string, err error) {
	var reasons []string
	size := 0
	for i, named := range calls {
		judged, err := x.pipeline.Relay.JudgeCall(ctx, x.relayExecution(x.tools), named.toolCall())
		if err != nil {
			e := *core.AsError(err)
			e.Message = fmt.Sprintf("approve: call %d: %s", i+1, e.Message)
			return nil, "", &e
		}
		why := x.whyAskBatch(judged)
		if why == "" {
			continue
		}
		e := newIntended(judged.Definition, judged.ToolCall)
		e.Effect, e.Reason, e.Shown = judged.Decision.Effect.Kind.String(), judged.Decision.Effect.Reason, x.maskJSON(e.Arguments)
		effects, reasons = append(effects, e), append(reasons, why)
		if size += len(e.Arguments); size > maxPlan {
			return nil, "", core.Errorf(
				core.KindLimit, "pipeline.approve", "the calls are too large to show to a person (more than %d bytes)", maxPlan,
			).WithHint("ask about fewer calls at a time")
		}
	}
	return effects, strings.Join(distinct(reasons), "; "), nil
}

// whyAskBatch returns the reasons for asking a person about a call, or "" if it needs no approval or was approved
// after a dry run. It leaves out calls that repeat one of an earlier attempt at the same agent task: a person decides
// about each of them alone.
func (x *programExecution) whyAskBatch(judged relay.JudgedCall) string {
	c := judged.ToolCall
	c.Arguments = canonjson.MarshalOrKeep(c.Arguments)
	if x.plan != nil && !x.plan.rehearsal && x.plan.has(judged.Definition, c) {
		return ""
	}
	if x.findRepeats(judged.Definition, c).rule != "" {
		return ""
	}
	why := x.whyAsk(judged.Definition, c, judged.Decision, false)
	if judged.Decision.Effect.Kind > core.EffectRead && rules.ReadArguments(c.Tool, c.Arguments).Critical != "" {
		why = strings.Trim(why+"; a critical command always needs a person's approval", "; ")
	}
	return why
}

// distinct returns the texts without repetitions, in their order.
func distinct(texts []string) (list []string) {
	seen := map[string]bool{}
	for _, text := range texts {
		if !seen[text] {
			list = append(list, text)
		}
		seen[text] = true
	}
	return list
}
