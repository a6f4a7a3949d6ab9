package pipeline

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"retort/internal/base/canonjson"
	"retort/internal/core"
	"retort/internal/pipeline/approval"
	"retort/internal/pipeline/check/rules"
	"retort/internal/policy"
)

// ApprovalOptions configures how people are asked for approval. Which programs and calls need approval is decided by
// the policy.
type ApprovalOptions struct {
	Table  *approval.ApprovalTable
	Bounds approval.QuestionBounds // of what servers may ask the client of one execution; complete
	Wait   time.Duration           // before an execution is answered as pending
	// AskFirst asks about the calls of a program before it starts, as far as they can be known then.
	AskFirst bool
}

// riskLevels lists the risk levels, lowest first, each with the setting that requires approval for it.
var riskLevels = []struct {
	level   rules.RiskLevel
	setting string
}{
	{rules.RiskLow, "approval.autoApproveLow: false"}, {rules.RiskMedium, "approval.autoApproveMedium: false"},
	{rules.RiskHigh, "approval.autoApproveHigh: false"},
}

// aboutLevel returns the reason why programs of a risk level need a person's approval, or "" if they need none. The
// settings can approve a level automatically only if they also do so for all lower levels.
func (p *Pipeline) aboutLevel(l rules.RiskLevel) string {
	needless := p.Policy.AutoApproval()
	auto := map[rules.RiskLevel]bool{rules.RiskLow: needless.Low, rules.RiskMedium: needless.Medium, rules.RiskHigh: needless.High}
	for _, known := range riskLevels {
		if !auto[known.level] {
			return known.setting
		}
		if known.level == l {
			return ""
		}
	}
	return "programs of critical risk are never approved automatically"
}

// aboutCall returns the reason why a call that the policy allows needs approval, or "" if it needs none. A call that
// writes counts as medium risk. An irreversible call counts as high risk, or as medium risk if the settings approve its
// grade.
func (p *Pipeline) aboutCall(d policy.AccessDecision) string {
	switch {
	case d.Effect.Kind == core.EffectRead:
		return ""
	case d.Verdict == policy.Ask:
		return d.Rule
	case d.Effect.Kind == core.EffectIrreversible && !d.Eased:
		return p.aboutLevel(rules.RiskHigh)
	}
	return p.aboutLevel(rules.RiskMedium)
}

// aboutProgram returns the reason why a program needs approval before it runs, or "" if it needs none. Calls for
// which a person will be asked one by one do not count here, so that nobody is asked twice about the same call.
func (x *programExecution) aboutProgram(r rules.ProgramRisk) string {
	p := x.pipeline
	r.Uses = slices.Clone(r.Uses)
	for i, u := range r.Uses {
		if t, ok := x.tools.FindTool(u.Tool); ok && p.Policy.DecideTool(t).Eased {
			r.Uses[i].Effect.Kind = core.EffectWrite
		}
	}
	rest := r.WithoutUses(func(u rules.UsedTool) bool {
		t, ok := x.tools.FindTool(u.Tool)
		if !ok {
			return false
		}
		d := p.Policy.DecideTool(t)
		return p.aboutCall(d) != "" || x.isDryRun() && d.Effect.Kind > core.EffectRead
	})
	return p.aboutLevel(rest.Level)
}

// approveProgram asks a person to approve the program if the settings or its risk require that. After a dry run it
// asks for approval of the recorded calls.
func (x *programExecution) approveProgram(ctx context.Context) *core.Error {
	if x.plan != nil && !x.isDryRun() {
		q := x.newQuestion("dry_run: the program may have these effects and no others")
		q.Effects = x.plan.effects
		if q.Impact != nil {
			program := *q.Impact
			q.Impact = effectsImpact(program, q.Effects, func(e core.IntendedCall) json.RawMessage { return e.Arguments }).ForQuestion()
			q.Discreet = effectsImpact(program, q.Effects, func(e core.IntendedCall) json.RawMessage { return e.Shown }).ForQuestion()
		}
		answer, refused := x.askApproval(ctx, q)
		if refused == nil {
			x.plan.approveAll(answer)
		}
		return refused
	}
	rule := x.approvalReason()
	if rule == "" {
		rule = x.aboutProgram(*x.risk)
	}
	if rule == "" {
		return x.recordAutoApproval(*x.risk)
	}
	q := x.newQuestion(rule)
	q.Why = x.explainProgram()
	answer, refused := x.askApproval(ctx, q)
	if refused == nil {
		x.made.addApproval(core.Question{Language: x.req.Language}, answer)
	}
	return refused
}

func (x *programExecution) newQuestion(rule string) core.Question {
	q := core.Question{
		Execution: x.req.ID, Session: x.req.Session, Principal: x.pipeline.Policy.Principal(), Client: x.req.Client,
		Rule: rule, Policy: x.pipeline.Policy.PolicyVersion(), Entries: x.pipeline.Policy.GroupEntries(),
	}
	q.Language, q.Code, q.Skills = x.req.Language, x.req.Code, x.skills
	if x.risk != nil {
		q.Risk, q.Level, q.Reasons = x.risk.Score, string(x.risk.Level), x.risk.Reasons
		q.Impact = programImpact(*x.risk).ForQuestion()
	}
	return q
}

// Approve implements relay.Supervisor. It asks a person to approve a call if that is required, and then adds the call
// to the execution's journal. An approved call is sent with exactly the arguments that the person saw, in canonical
// JSON.
func (x *programExecution) Approve(ctx context.Context, t *core.Tool, c core.ToolCall, d policy.AccessDecision) (core.ToolCall, *core.Error) {
	judged := x.pipeline.Policy.InForce()
	approval, planned, rehearsed := x.takePlanned(t, c)
	unusual, refused := x.judgeAnomaly(ctx, t, c, d)
	if refused != nil {
		return c, refused
	}
	if rehearsed {
		unusual = AnomalyVerdict{} // a person has seen all effects of the program
	}
	if planned {
		x.made.addApproval(core.Question{Server: c.Server, Tool: c.Tool}, approval)
	}
	again := x.findRepeats(t, c)
	critical := ""
	if !planned && d.Effect.Kind > core.EffectRead {
		critical = rules.ReadArguments(c.Tool, c.Arguments).Critical
	}
	rule := x.whyAsk(t, c, d, planned)
	if critical != "" {
		rule = strings.Trim(rule+"; a critical command always needs a person's approval", "; ")
	}
	rule = strings.Trim(rule+"; "+again.rule, "; ")
	if rule != "" || planned || unusual.Rule != "" {
		c.Arguments = canonjson.MarshalOrKeep(c.Arguments)
	}
	if q := x.aboutCall(unusual.joinRule(rule), t, c, d); q.Rule != "" {
		q.Unusual, q.Merely = unusual.Kinds, rule == ""
		if q.Spans = critical == "" && x.coversRun(t, c, q.Rule); q.Spans {
			q.Rule += "; an approval covers all calls of this server with this kind of data in this run"
		}
		q.Repeats, q.Before, q.Critical, q.Why = again.how, again.before, critical, x.explainCall(t, c, d, critical)
		answer, err := x.askApproval(ctx, q)
		if err != nil {
			return c, err
		}
		x.made.addApproval(core.Question{Server: c.Server, Tool: c.Tool}, answer)
		if q.Spans {
			x.crossed.allow(c.Crosses)
		}
		rule = q.Rule
	}
	c.Approved = rule != "" || planned
	if c.Approved {
		if err := x.verifyUnchanged(ctx, t, c); err != nil {
			return c, err
		}
	}
	if rule == "" && !planned && x.pipeline.Policy.InForce() != judged {
		if err := x.asksNow(t, c); err != nil {
			return c, err
		}
	}
	if err := x.journal.Add(core.SentCall{Server: c.Server, Tool: c.Tool, Arguments: x.maskJSON(c.Arguments)}); err != nil {
		return c, core.Errorf(
			core.KindInternal, "pipeline.journal", "the call could not be recorded, so it was not sent: %w", err,
		).AtTool(c.Server, c.Tool)
	}
	return c, nil
}

// takePlanned reports whether a person has approved exactly this call in advance, and how: after a dry run, which is
// what rehearsed says, or because the program asked with approve. Each call that was approved so can be made once.
func (x *programExecution) takePlanned(t *core.Tool, c core.ToolCall) (approval core.ApprovalAnswer, planned, rehearsed bool) {
	if x.plan != nil {
		if approval, planned = x.plan.takeApproved(t, c); planned {
			return approval, true, true
		}
	}
	approval, planned = x.granted.takeApproved(t, c)
	return approval, planned, false
}

// asksNow judges a call again that needed no approval at first, because the settings have changed since. It returns
// an error if, with the new settings, the call is forbidden or a person must be asked about it.
func (x *programExecution) asksNow(t *core.Tool, c core.ToolCall) *core.Error {
	d := x.pipeline.Policy.DecideCall(t, c.Arguments)
	switch {
	case d.Verdict == policy.Deny:
		return d.Error(t)
	case x.whyAsk(t, c, d, false) != "":
		return core.Errorf(core.KindPolicy, "approval", "the settings changed while the call was judged; it was not sent").
			WithHint("make the call again: a person is then asked about it").AtTool(t.Server, t.Name)
	}
	return nil
}

// coversRun reports whether the approval of a call also covers later calls with the same kind of data to the same
// server in this run of the program. Two conditions must hold: the person sees the program's code, and the only reason
// for asking is that the call takes personal data to another server.
func (x *programExecution) coversRun(t *core.Tool, c core.ToolCall, rule string) bool {
	return c.Crosses != "" && rule == c.Crosses && x.req.Code != "" && !t.RequiresApproval()
}

// whyAsk returns the reasons for asking a person about a call, or "" if there are none. If planned is true, a person
// has already approved the call after a dry run. Then only a changed definition of the tool is a reason.
func (x *programExecution) whyAsk(t *core.Tool, c core.ToolCall, d policy.AccessDecision, planned bool) string {
	var rules []string
	if !planned {
		rules = append(rules, c.Crosses, x.pipeline.aboutCall(d))
	}
	if x.plan != nil && !planned {
		rules = append(rules, "it is not one of the effects that were approved after the dry run")
	}
	rules = append(rules, x.changeReason(t))
	return strings.Join(slices.DeleteFunc(rules, func(rule string) bool { return rule == "" }), "; ")
}

func (x *programExecution) aboutCall(rule string, t *core.Tool, c core.ToolCall, d policy.AccessDecision) core.Question {
	q := x.newQuestion(rule)
	q.Server, q.Tool, q.Arguments, q.Effect, q.Pin = c.Server, c.Tool, c.Arguments, d.Effect.Kind.String(), t.Pin
	q.Shown, q.Crosses = x.maskJSON(c.Arguments), c.Crosses
	q.Impact, q.Discreet = callImpact(q.Tool, q.Effect, q.Arguments).ForQuestion(), callImpact(q.Tool, q.Effect, q.Shown).ForQuestion()
	q.Grade = d.Effect.Grade.String()
	if x.pipeline.aboutCall(d) == "" { // else the sentence is the reason of the question
		q.Reasons = append([]string{d.Effect.Explain(c.Server + "." + c.Tool)}, q.Reasons...)
	}
	if t.RequiresApproval() {
		q.Change = t.Change.Diff
	}
	return q
}

// verifyUnchanged refuses a call if its tool or the policy has changed since a person was asked about the call. To
// find out, it requests the server's tool list again.
func (x *programExecution) verifyUnchanged(ctx context.Context, t *core.Tool, c core.ToolCall) *core.Error {
	now, refused := t, (*core.Error)(nil)
	if x.exact == nil || x.exact.Method == "" { // it stands for an MCP method, which has no definition
		if now, refused = x.Vet(ctx, t); refused != nil {
			return refused
		}
		if now == nil {
			now, _ = x.pipeline.Tools.Toolset().FindExact(t.Server, t.Name)
		}
	}
	if now == nil || now.Pin != t.Pin {
		return core.Errorf(
			core.KindToolChanged, "approval", "the definition of %s.%s has changed since a person was asked about it; the call was not sent",
			t.Server, t.Name,
		).
			WithHint("read its definition again, then run the program again").AtTool(t.Server, t.Name)
	}
	if d := x.pipeline.Policy.DecideCall(now, c.Arguments); d.Verdict == policy.Deny {
		return d.Error(now)
	}
	return nil
}
