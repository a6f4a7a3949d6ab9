package pipeline

import (
	"strings"

	"retort/internal/core"
	"retort/internal/policy"
)

// explainCall returns the sentences that tell a person why Retort asks about a call, with the next step where there is
// one. It returns "" if the rule for asking says everything.
func (x *programExecution) explainCall(t *core.Tool, c core.ToolCall, d policy.AccessDecision, critical string) string {
	var said []string
	name := c.Server + "." + c.Tool
	if x.pipeline.aboutCall(d) != "" {
		said = append(said, explainEffect(name, d))
	}
	if critical != "" {
		said = append(said, "Its arguments contain a critical command ("+critical+"), which no earlier approval covers.")
	}
	if x.changeReason(t) != "" {
		said = append(said, "The definition of "+name+" has changed since you trusted it: `retort tools --changed "+c.Server+"`.")
	}
	return strings.Join(said, " ")
}

// explainEffect returns the sentences about a call that needs approval because of its effect.
func explainEffect(name string, d policy.AccessDecision) string {
	text := d.Effect.Explain(name)
	switch {
	case d.Effect.Advice != "":
	case d.Effect.Kind == core.EffectWrite:
		text += " Your settings ask about each call that changes something."
	case strings.HasPrefix(d.Rule, policy.GradeSetting(d.Effect.Grade)):
		text += " Your settings always ask about calls of this grade."
	case strings.HasPrefix(d.Rule, "principals."):
		text += " Your settings ask about each such call of this user."
	}
	return text
}

// explainCalls returns what the reasons of calls have in common: the sentences about each of them if these are the same,
// else "". A question shows the other reasons next to the calls.
func explainCalls(effects []core.IntendedCall) string {
	for _, e := range effects {
		if e.Reason != effects[0].Reason {
			return ""
		}
	}
	return effects[0].Reason
}

// explainProgram returns the sentence that tells a person why Retort asks about a program before it runs.
func (x *programExecution) explainProgram() string {
	switch {
	case x.req.ForceApproval:
		return "The request demands that a person approves the program."
	case x.pipeline.Policy.ApprovalRequired() != "":
		return "Your settings ask about each program."
	case x.risk != nil && len(x.risk.Reasons) > 0:
		return "The risk of the program is " + string(x.risk.Level) + ": " + x.risk.Reasons[0] + "."
	}
	return ""
}

// asksAbout says whether a person is asked about the calls of a tool because of what it does. Questions for other
// reasons, such as personal data or a critical command in the arguments, depend on the single call.
func (p *Pipeline) asksAbout(t *core.Tool) core.AskMark {
	d := p.Policy.DecideTool(t)
	milder, graver := p.Policy.VariesBy(t)
	switch {
	case d.Verdict == policy.Deny:
		return core.AsksNever
	case t.RequiresApproval():
		return core.AsksAlways
	case p.aboutCall(d) != "" && milder:
		return core.AsksSometimes
	case p.aboutCall(d) != "":
		return core.AsksAlways
	case graver && p.asksAboutGrades():
		return core.AsksSometimes
	}
	return core.AsksNever
}

// asksAboutGrades reports whether a person is asked about irreversible calls of what arguments can do: delete or run
// something.
func (p *Pipeline) asksAboutGrades() bool {
	for _, g := range []core.EffectGrade{core.GradeDeletion, core.GradeOther} {
		if p.aboutCall(p.Policy.DecideEffect(core.EffectInfo{Kind: core.EffectIrreversible, Grade: g, Reason: "a call"})) != "" {
			return true
		}
	}
	return false
}
