package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"retort/internal/core"
	"retort/internal/policy/effect"
)

// PrincipalView applies the policy to one principal, who may be a member of groups. A view of a Policy never changes. A view of a CurrentPolicy
// follows the policy in force. A view returned by FreezePolicy allows only what was allowed when it was created and
// what the policy in force still allows.
type PrincipalView struct {
	principal string
	groups    []string       // sorted; never changes
	entries   []string       // names of the entries that the settings may have for the principal and these groups
	began     *Policy        // nil: it follows
	current   *CurrentPolicy // nil: it never changes
}

// CurrentPolicy holds the policy in force, which can be replaced. It is safe for concurrent use.
type CurrentPolicy struct{ policy atomic.Pointer[Policy] }

// NewCurrent returns a CurrentPolicy in which p is in force.
func NewCurrent(p *Policy) *CurrentPolicy {
	c := &CurrentPolicy{}
	c.policy.Store(p)
	return c
}

// ReplacePolicy puts p in force. New restrictions apply to every decision from now on. New permissions apply only to
// operations that call FreezePolicy from now on.
func (c *CurrentPolicy) ReplacePolicy(p *Policy) { c.policy.Store(p) }

// ViewFor returns a view for a principal and the groups of which the principal is a member. It always uses the policy
// in force at the time of a decision.
func (c *CurrentPolicy) ViewFor(principal string, groups ...string) *PrincipalView {
	v := newView(principal, groups)
	v.current = c
	return v
}

func newView(principal string, groups []string) *PrincipalView {
	sorted := slices.Compact(slices.Sorted(slices.Values(groups)))
	if groups != nil && sorted == nil {
		sorted = []string{} // it is known that there are none
	}
	v := &PrincipalView{principal: principal, groups: sorted}
	for _, g := range v.groups {
		v.entries = append(v.entries, entryKey(core.GroupPrefix+g))
	}
	slices.Sort(v.entries)
	v.entries = slices.Insert(slices.Compact(v.entries), 0, principal)
	return v
}

// GroupEntries returns a string that lists the entries for groups, of the policy in force, that restrict the principal.
// It is "" if there are none. Permanent approvals store it, and are valid only while it stays the same.
func (v *PrincipalView) GroupEntries() string {
	var all []string
	for _, p := range v.InForce().allPolicies() {
		all = append(all, p.matchingEntries(v.entries[1:])...)
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	return fmt.Sprintf("%q", slices.Compact(all))
}

// Principal returns the principal to whom the view applies. The empty principal is the user of this machine.
func (v *PrincipalView) Principal() string { return v.principal }

// Groups returns the groups of which the principal is a member, sorted. It returns nil if that is not known. The caller
// must not change the list.
func (v *PrincipalView) Groups() []string { return v.groups }

// FreezePolicy returns a view for an operation that starts now, such as an execution. The operation may do only what
// both the policy of its start and the policy in force allow. So a change of the policy can restrict it, but not
// extend it. Called on a view that is already frozen, FreezePolicy returns that view.
func (v *PrincipalView) FreezePolicy() *PrincipalView {
	if v.began != nil {
		return v
	}
	frozen := *v
	frozen.began = v.InForce()
	return &frozen
}

// InForce returns the policy in force. The pointer changes whenever the policy is replaced.
func (v *PrincipalView) InForce() *Policy {
	if v.current == nil {
		return v.began
	}
	return v.current.policy.Load()
}

// activePolicies returns the policies that must all allow an action. These are the policy in force, the one for which
// the view was frozen, and the policies that restrict them.
func (v *PrincipalView) activePolicies() []*Policy {
	p := v.InForce()
	all := p.allPolicies()
	if v.began != nil && v.began != p {
		all = append(all, v.began.allPolicies()...)
	}
	return all
}

// eachSight calls f for each active policy with the rules that apply to the principal.
func (v *PrincipalView) eachSight(f func(s *principalSight)) {
	for _, p := range v.activePolicies() {
		f(p.sightOf(v))
	}
}

// PolicyVersion returns the version of the policy in force.
func (v *PrincipalView) PolicyVersion() string { return v.InForce().version }

// AutoApproval says for which levels of risk no active policy requires an approval.
func (v *PrincipalView) AutoApproval() AutoApprovals {
	a := AutoApprovals{true, true, true}
	for _, p := range v.activePolicies() {
		a = AutoApprovals{a.Low && p.approval.Low, a.Medium && p.approval.Medium, a.High && p.approval.High}
	}
	return a
}

// RefusedError returns an error if the policy in force denies everything to the principal, otherwise nil.
func (v *PrincipalView) RefusedError() (refused *core.Error) {
	for _, p := range v.InForce().allPolicies() {
		for _, l := range p.sightOf(v).layers {
			if l.closed != "" && refused == nil {
				refused = core.Errorf(core.KindPolicy, "policy", "all further requests of %s are refused: %s", v.principalText(), l.closed).
					WithHint("calls that were sent before are in the audit log; only the person who runs Retort can change the settings")
			}
		}
	}
	return refused
}

func (v *PrincipalView) principalText() string {
	if v.principal == "" {
		return "anybody"
	}
	return v.principal
}

// ReadOnly returns the name of the rule because of which the principal may not change anything, or "" if there is no
// such rule.
func (v *PrincipalView) ReadOnly() (rule string) {
	v.eachSight(func(s *principalSight) { rule = cmp.Or(rule, s.readOnly()) })
	return rule
}

// DecideTool decides whether a tool may be called at all, before the arguments are known.
func (v *PrincipalView) DecideTool(t *core.Tool) AccessDecision {
	return v.strictestDecision(func(s *principalSight) AccessDecision { return s.decideTool(t).AccessDecision })
}

// DecideCall decides whether a tool may be called with these arguments, a JSON object. If DecideTool denies the tool,
// every call of it is denied. The decision uses the effect of this call, which can be more severe than the effect of
// the tool. If the tool runs queries and this query only reads, the effect of the call can also be milder.
func (v *PrincipalView) DecideCall(t *core.Tool, args json.RawMessage) AccessDecision {
	return v.strictestDecision(func(s *principalSight) AccessDecision { return s.decideCall(v.principal, t, args) })
}

// strictestDecision returns the strictest of the decisions of all active policies.
func (v *PrincipalView) strictestDecision(decide func(*principalSight) AccessDecision) (d AccessDecision) {
	first := true
	v.eachSight(func(s *principalSight) {
		if first {
			d, first = decide(s), false
			return
		}
		d = stricterDecision(d, decide(s))
	})
	return d
}

// stricterDecision returns the stricter of two decisions on one call, with the more severe of their two effects.
func stricterDecision(a, b AccessDecision) AccessDecision {
	effect, eased := a.Effect, a.Eased && b.Eased
	if effect.Reason == "" || b.Effect.IsGraver(effect) {
		effect = b.Effect
	}
	if b.Verdict > a.Verdict || b.Verdict == a.Verdict && a.Some && !b.Some {
		a = b
	}
	a.Effect, a.Eased = effect, eased
	return a
}

// VariesBy reports whether some calls of a tool have a milder effect than the tool itself, and whether some can be
// irreversible although the tool is not.
func (v *PrincipalView) VariesBy(t *core.Tool) (milder, graver bool) {
	v.eachSight(func(s *principalSight) {
		m, g := s.decideTool(t).judge.VariesBy()
		milder, graver = milder || m, graver || g
	})
	return milder, graver
}

// DecideEffect decides on a call by its effect alone.
func (v *PrincipalView) DecideEffect(e core.EffectInfo) AccessDecision {
	return v.strictestDecision(func(s *principalSight) AccessDecision { return s.decideEffect(e) })
}

// EffectOf returns the effect of a tool as long as the arguments of a call are not known.
func (v *PrincipalView) EffectOf(t *core.Tool) (e core.EffectInfo) {
	v.eachSight(func(s *principalSight) {
		if one := s.effects.effectOf(t); e.Reason == "" || one.IsGraver(e) {
			e = one
		}
	})
	return e
}

// VisibleToolset returns the tools that the principal may see, which are those that DecideTool does not deny. The
// result is cached until the rules change.
func (v *PrincipalView) VisibleToolset(whole *core.Toolset) *core.Toolset {
	v.eachSight(func(s *principalSight) { whole = s.visibleToolset(whole) })
	return whole
}

// principalSight holds the rules that apply to the principals with the same entries in the settings, or to all
// principals without an entry. It caches which tools they may see.
type principalSight struct {
	layers   []*limitLayer // a call must pass all of them
	effects  *effectRules
	grades   map[core.EffectGrade]GradeRule
	commands []AllowedCommand

	mu      sync.Mutex
	seen    *core.Toolset // of which visible was made
	visible *core.Toolset
	judged  map[*core.Tool]string // rules that deny tools of seen; "" denies nothing
	decided map[*core.Tool]toolDecision
}

// withLayers returns a principalSight with the same rules for everybody, other layers and an empty cache.
func (s *principalSight) withLayers(layers []*limitLayer) *principalSight {
	return &principalSight{layers: layers, effects: s.effects, grades: s.grades, commands: s.commands}
}

// toolDecision holds the decision on a tool, and the EffectJudge that determines the effect of each call of this
// tool.
type toolDecision struct {
	AccessDecision
	judge *effect.EffectJudge
}

func (s *principalSight) readOnly() string {
	for _, l := range s.layers {
		switch {
		case l.closed != "":
			return l.closed
		case l.level == ReadOnly:
			return l.prefix + "permissionLevel: " + string(ReadOnly)
		}
	}
	return ""
}

func (s *principalSight) decideTool(t *core.Tool) toolDecision {
	const most = 4096
	s.mu.Lock()
	d, ok := s.decided[t]
	s.mu.Unlock()
	if ok {
		return d
	}
	d.judge = s.effects.judgeOf(t)
	d.AccessDecision = s.decideEffect(d.judge.ToolEffect())
	if rule := s.denyingRule(t); rule != "" {
		d.Verdict, d.Rule, d.Some = Deny, rule, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.decided == nil || len(s.decided) >= most {
		s.decided = map[*core.Tool]toolDecision{}
	}
	s.decided[t] = d
	return d
}

// decideEffect decides on a call by its effect and the permission levels alone.
func (s *principalSight) decideEffect(e core.EffectInfo) AccessDecision {
	d := s.decideGrade(e)
	for _, l := range s.layers {
		rule := l.prefix + "permissionLevel: " + string(l.level)
		switch {
		case l.level == ReadOnly && e.Kind > core.EffectRead:
			return AccessDecision{Verdict: Deny, Rule: rule, Effect: e, Some: true}
		case l.level == WriteRestricted && e.Kind == core.EffectIrreversible && d.Verdict == Allow && !(d.Eased && l.prefix == ""):
			d.Verdict, d.Rule = Ask, rule
		}
	}
	return d
}

// decideGrade decides on an irreversible effect by the rules for grades alone.
func (s *principalSight) decideGrade(e core.EffectInfo) AccessDecision {
	d := AccessDecision{Verdict: Allow, Effect: e}
	if e.Kind != core.EffectIrreversible {
		return d
	}
	switch s.grades[e.Grade] {
	case GradeAsk:
		d.Verdict, d.Rule = Ask, GradeSetting(e.Grade)+": "+string(GradeAsk)
	case GradeApprove:
		d.Eased = true
	}
	return d
}

// GradeSetting returns the name of the setting with the rule for a grade.
func GradeSetting(g core.EffectGrade) string { return "approval.irreversible." + g.String() }

func (s *principalSight) decideCall(principal string, t *core.Tool, args json.RawMessage) AccessDecision {
	tool := s.decideTool(t)
	if tool.Verdict == Deny {
		return tool.AccessDecision
	}
	d := s.decideEffect(tool.judge.CallEffect(args))
	if d.Verdict == Deny {
		return d
	}
	variables := conditionVariables(t, principal, args)
	for _, l := range s.layers {
		if rule := l.brokenCondition(t, variables); rule != "" {
			return AccessDecision{Verdict: Deny, Rule: rule, Effect: d.Effect, Some: true}
		}
	}
	return d
}

// denyingRule returns the cached rule that denies a tool with any arguments, or "" if none does.
func (s *principalSight) denyingRule(t *core.Tool) string {
	s.mu.Lock()
	rule, ok := s.judged[t]
	s.mu.Unlock()
	if ok {
		return rule
	}
	return s.judgeTool(t)
}

func (s *principalSight) judgeTool(t *core.Tool) string {
	of := func() core.EffectInfo { return s.effects.effectOf(t) }
	for _, l := range s.layers {
		if rule := l.denyingRule(t, of); rule != "" {
			return rule
		}
	}
	return ""
}

func (s *principalSight) visibleToolset(whole *core.Toolset) *core.Toolset {
	if !s.canHideTools() {
		return whole
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == whole {
		return s.visible
	}
	judged := make(map[*core.Tool]string, whole.CountTools())
	for _, server := range whole.Servers {
		for _, t := range server.Tools {
			rule, ok := s.judged[t]
			if !ok {
				rule = s.judgeTool(t)
			}
			judged[t] = rule
		}
	}
	s.seen, s.judged = whole, judged
	s.visible = whole.WithoutRefused(func(t *core.Tool) *core.Error {
		rule, ok := judged[t]
		if !ok {
			rule = s.judgeTool(t)
		}
		if rule == "" {
			return nil
		}
		return AccessDecision{Verdict: Deny, Rule: rule}.Error(t)
	})
	return s.visible
}

// canHideTools reports whether any rule can hide a tool.
func (s *principalSight) canHideTools() bool {
	for _, l := range s.layers {
		if l.level == ReadOnly || l.closed != "" {
			return true
		}
		for _, rules := range l.servers {
			if rules.allow != nil || len(rules.deny) > 0 {
				return true
			}
		}
	}
	return false
}
