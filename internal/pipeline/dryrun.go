package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"retort/internal/base/canonjson"
	"retort/internal/core"
	"retort/internal/pipeline/relay"
	"retort/internal/pipeline/report"
	"retort/internal/policy"
)

// dryRun runs a program without its effects: calls that only read are made, and all others are only recorded. The
// request is answered with the recorded calls. If a person approves these calls, the program runs again and may make
// exactly them.
func (x *execution) dryRun(ctx context.Context) core.Outcome {
	recorded := &effectPlan{rehearsal: true, touched: map[string]bool{}, mask: func(raw json.RawMessage) json.RawMessage { return raw }}
	o := x.performProgram(ctx, recorded)
	if o.Status != core.StatusOK || len(recorded.effects) == 0 {
		return o
	}
	x.answerEarly(o)
	return x.performProgram(ctx, approvedPlan(recorded.effects))
}

// effectPlan holds the effects of a program: those that a dry run has recorded, or those that a person has approved.
// Each approved effect may happen once. It is safe for concurrent use.
type effectPlan struct {
	rehearsal bool
	expected  *expectedCalls                        // set if the rehearsal precedes a real run; see approveExpectedCalls
	mask      func(json.RawMessage) json.RawMessage // what the model may see of arguments

	mu      sync.Mutex
	effects []core.IntendedCall
	size    int                     // of their arguments, in bytes
	left    map[string]approvedCall // those that were approved and not made yet, by what they are
	touched map[string]bool         // files that a dry run would have written
}

// maxPlan bounds the arguments of all calls in an effectPlan together, in bytes, because a person has to read them.
const maxPlan = 4 << 20

func approvedPlan(effects []core.IntendedCall) *effectPlan {
	p := &effectPlan{effects: effects}
	p.addApproved(effects, core.ApprovalAnswer{})
	return p
}

// approvedCall says how often a call may still be made, and how it was approved.
type approvedCall struct {
	count  int
	answer core.ApprovalAnswer
}

// addApproved lets each of the calls be made once more.
func (p *effectPlan) addApproved(effects []core.IntendedCall, answer core.ApprovalAnswer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == nil {
		p.left = map[string]approvedCall{}
	}
	for _, e := range effects {
		key := keyOf(e)
		p.left[key] = approvedCall{p.left[key].count + 1, answer}
	}
}

// approveAll notes how a person approved the calls of the plan.
func (p *effectPlan) approveAll(answer core.ApprovalAnswer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, one := range p.left {
		p.left[key] = approvedCall{one.count, answer}
	}
}

func keyOf(e core.IntendedCall) string {
	key, _ := json.Marshal([]string{e.Server, e.Tool, e.Pin, string(e.Arguments)})
	return string(key)
}

// recordIntended records a call that the dry run did not make.
func (p *effectPlan) recordIntended(t *core.Tool, c core.ToolCall, d policy.AccessDecision) *core.Error {
	e := newIntended(t, c)
	e.Shown = p.mask(e.Arguments)
	setEffect(&e, d.Effect)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.size += len(e.Arguments); p.size > maxPlan {
		return core.Errorf(
			core.KindLimit, "pipeline.dryrun", "the effects of this program are too large to show to a person (more than %d bytes)",
			maxPlan,
		).
			WithHint("do less in one program")
	}
	p.effects = append(p.effects, e)
	return nil
}

func newIntended(t *core.Tool, c core.ToolCall) core.IntendedCall {
	return core.IntendedCall{Server: c.Server, Tool: c.Tool, Arguments: canonjson.OrRaw(c.Arguments), Pin: t.Pin}
}

// setEffect records what a call does, and why Retort thinks so.
func setEffect(e *core.IntendedCall, effect core.EffectInfo) {
	e.Effect, e.Grade, e.Reason = effect.Kind.String(), effect.Grade.String(), effect.Explain(e.Server+"."+e.Tool)
}

// takeApproved reports whether a call is among the approved calls that have not been made yet, and how it was
// approved. If so, it marks the call as made.
func (p *effectPlan) takeApproved(t *core.Tool, c core.ToolCall) (answer core.ApprovalAnswer, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := keyOf(newIntended(t, c))
	one := p.left[key]
	if one.count == 0 {
		return answer, false
	}
	p.left[key] = approvedCall{one.count - 1, one.answer}
	return one.answer, true
}

// has reports whether a call is among the approved calls that have not been made yet.
func (p *effectPlan) has(t *core.Tool, c core.ToolCall) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left[keyOf(newIntended(t, c))].count > 0
}

// noteFiles wraps f, a function with which programs change files, so that the plan of a dry run notes which files the
// program would change.
func (p *effectPlan) noteFiles(f relay.EngineFunction) relay.EngineFunction {
	return func(ctx context.Context, raw json.RawMessage) (any, error) {
		answer, err := f(ctx, raw)
		var a struct{ Path, From, To string }
		if err == nil && json.Unmarshal(raw, &a) == nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			for _, name := range []string{a.Path, a.From, a.To} {
				if name != "" && len(p.touched) < maxTouched {
					p.touched[name] = true
				}
			}
		}
		return answer, err
	}
}

const maxTouched = 20

// writingFunctions lists the functions with which programs change files.
var writingFunctions = []string{"write_file", "make_dir", "remove_file", "rename_file"}

// addDryRun adds to an Outcome the calls and file changes that the dry run recorded but did not make.
func (x *programExecution) addDryRun(o core.Outcome) core.Outcome {
	o.DryRun = true
	report.AddEffects(&o, forModel(x.plan.effects), x.reportOptions())
	if len(x.plan.touched) > 0 {
		var names []string
		for name := range x.plan.touched {
			names = append(names, name)
		}
		slices.Sort(names)
		o.Warnings = append(o.Warnings, "the dry run changed no files; the program would change "+strings.Join(names, ", "))
	}
	o.Warnings = append(o.Warnings, x.commands.skippedWarning()...)
	if o.Error != nil && len(x.plan.effects) > 0 && o.Status == core.StatusError && o.Error.Hint == "" {
		o.Error = o.Error.WithHint(
			"calls that may have effects returned placeholder values of the type that the tool declares, or {} if it declares none: the program may need their real results",
		)
	}
	return o
}

func forModel(effects []core.IntendedCall) []core.IntendedCall {
	return core.Approval{Question: core.Question{Effects: effects}}.ForModel().Effects
}

// answerEarly makes the request return early: with the Outcome of the dry run, while the execution itself continues
// and waits for a person.
func (x *execution) answerEarly(o core.Outcome) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.interim, x.channel = &o, nil
}

// takeInterim returns the interim Outcome of an execution, which is that of a dry run whose calls wait for approval.
// It returns this Outcome only once and then nil.
func (x *execution) takeInterim() *core.Outcome {
	x.mu.Lock()
	defer x.mu.Unlock()
	o := x.interim
	x.interim = nil
	return o
}

// proposeEffects returns the Outcome of a dry run whose recorded calls wait for approval.
func (p *Pipeline) proposeEffects(x *execution, o core.Outcome, waiting []core.Approval) core.Outcome {
	if err := p.detachExecution(x); err != nil {
		p.Flights.takeOutcome(x)
		o.Warnings = append(o.Warnings, "it cannot be approved, because its calls could not be recorded: "+err.Error())
		return o
	}
	o.Approvals = withoutSeen(waiting)
	o.Warnings = append(
		o.Warnings,
		fmt.Sprintf(
			"nothing was changed. To run the program with exactly these effects, call resume_execution with the execution_id: a person is then asked. Or ask the person to run in a terminal: retort approvals approve %s",
			waiting[0].ID,
		),
	)
	return o
}
