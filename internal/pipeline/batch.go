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

// approveBatch asks a person to approve a list of calls with one question. After a yes, the program can make each of
// these calls once without another question. After a no, the program ends, or gets false if it marked the calls as
// optional. Calls that need no approval are left out. In a dry run nobody is asked here, but about all calls at its end.
func (x *programExecution) approveBatch(ctx context.Context, raw json.RawMessage) (any, error) {
	var r batchRequest
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, core.Errorf(core.KindInvalidArguments, "pipeline.approve", "approve: %v", err)
	}
	if x.isRehearsing() {
		x.plan.expected.noteApprove()
	}
	b, err := x.judgeBatch(ctx, r.Calls)
	if err != nil || len(b.effects) == 0 || x.isDryRun() {
		return err == nil, err
	}
	q := x.batchQuestion(b)
	q.Purpose, q.Optional = cmp.Or(x.hideText(cutTo(r.Purpose, maxPurpose)), "(nothing)"), r.Optional
	ask := x.askApproval
	if r.Optional {
		ask = x.putQuestion
	}
	answer, refused := ask(ctx, q)
	switch {
	case refused == nil:
		x.granted.addApproved(b.effects, answer)
		return true, nil
	case r.Optional && refused.Kind == core.KindPolicy:
		return false, nil
	}
	return nil, refused
}

// batchQuestion returns the question about the calls of a batch.
func (x *programExecution) batchQuestion(b judgedBatch) core.Question {
	q := x.newQuestion(strings.Join(distinct(b.reasons), "; "))
	q.Effects, q.Why = b.effects, explainCalls(b.effects)
	q.Critical, q.Crosses = strings.Join(distinct(b.critical), "; "), strings.Join(distinct(b.crosses), "; ")
	q.Impact, q.Discreet = &core.Impact{Reversible: true}, &core.Impact{Reversible: true}
	for _, e := range b.effects {
		q.Impact.Add(callImpact(e.Tool, e.Effect, e.Arguments))
		q.Discreet.Add(callImpact(e.Tool, e.Effect, e.Shown))
	}
	q.Impact, q.Discreet = q.Impact.ForQuestion(), q.Discreet.ForQuestion()
	return q
}

// judgedBatch holds those calls of a list that need a person's approval, and why.
type judgedBatch struct {
	effects                    []core.IntendedCall
	reasons, critical, crosses []string
	size                       int // of the arguments, in bytes
}

// judgeBatch judges a list of calls. It returns an error if a call would be refused anyway. All calls that a program
// lets it judge are bounded like the calls that the program may make.
func (x *programExecution) judgeBatch(ctx context.Context, calls []namedCall) (b judgedBatch, err error) {
	limit := func(format string, args ...any) error {
		return core.Errorf(core.KindLimit, "pipeline.approve", format, args...).WithHint("ask about fewer calls")
	}
	if len(calls) > maxBatch {
		return b, limit("approve was given %d calls; the maximum is %d", len(calls), maxBatch)
	}
	if most := x.req.Limits.ToolCalls; x.judged.Add(int64(len(calls))) > int64(most) {
		return b, limit("approve was given more than %d calls in one program, which is the maximum (resourceLimits.toolCalls)", most)
	}
	relayed := x.relayExecution(x.tools)
	for i, named := range calls {
		if named.Name == "" && (named.Server == "" || named.Tool == "") {
			return b, core.Errorf(core.KindInvalidArguments, "pipeline.approve", "approve: call %d names no tool of a server", i+1)
		}
		judged, err := x.pipeline.Relay.JudgeCall(ctx, relayed, named.toolCall())
		if err != nil {
			e := *core.AsError(err)
			e.Message = fmt.Sprintf("approve: call %d: %s", i+1, e.Message)
			return b, &e
		}
		x.addToBatch(&b, judged)
		if b.size > maxPlan {
			return b, limit("the calls are too large to show to a person (more than %d bytes)", maxPlan)
		}
	}
	return b, nil
}

// addToBatch adds a call to the batch, unless it needs no approval or was approved after a dry run. It leaves out a call
// that repeats one of an earlier attempt at the same agent task: a person decides about each of these alone. added is
// false if the call was left out.
func (x *programExecution) addToBatch(b *judgedBatch, judged relay.JudgedCall) (added bool) {
	c := judged.ToolCall
	c.Arguments = canonjson.MarshalOrKeep(c.Arguments)
	if x.plan != nil && !x.plan.rehearsal && x.plan.has(judged.Definition, c) || x.findRepeats(judged.Definition, c).rule != "" {
		return false
	}
	why, critical := x.whyAsk(judged.Definition, c, judged.Decision, false), ""
	if judged.Decision.Effect.Kind > core.EffectRead {
		critical = rules.ReadArguments(c.Tool, c.Arguments).Critical
	}
	if critical != "" {
		critical = c.Server + "." + c.Tool + ": " + critical
		why = strings.Trim(why+"; a critical command always needs a person's approval ("+critical+")", "; ")
		b.critical = append(b.critical, critical)
	}
	if why == "" {
		return false
	}
	e := newIntended(judged.Definition, judged.ToolCall)
	e.Shown = x.maskJSON(e.Arguments)
	setEffect(&e, judged.Decision.Effect)
	b.effects, b.reasons, b.size = append(b.effects, e), append(b.reasons, why), b.size+len(e.Arguments)
	if c.Crosses != "" {
		b.crosses = append(b.crosses, c.Crosses)
	}
	return true
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
