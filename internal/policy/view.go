package policy

import (
	"cmp"
	"encoding/json"
	"sync"
	"sync/atomic"

	"retort/internal/core"
	"retort/internal/policy/effect"
)

// View represents the policy for one principal. The View of a Policy never changes. The View of a Current follows it.
// A View that has begun allows what was allowed when it began, less what was taken away since.
type View struct {
	principal string
	began     *Policy  // nil: it follows
	current   *Current // nil: it never changes
}

// Current holds the Policy in force. It is safe for concurrent use.
type Current struct{ policy atomic.Pointer[Policy] }

// NewCurrent returns a Current that holds p.
func NewCurrent(p *Policy) *Current {
	c := &Current{}
	c.policy.Store(p)
	return c
}

// Replace puts p in force: for every decision from now on where it allows less, and where it allows more for
// Views that begin from now on.
func (c *Current) Replace(p *Policy) { c.policy.Store(p) }

// For returns Policy.For, of the Policy that is in force whenever the View decides.
func (c *Current) For(principal string) *View { return &View{principal: principal, current: c} }

// Principal is for whom the View is; empty is whoever sits at this machine.
func (v *View) Principal() string { return v.principal }

// Begin returns a View for something that starts now, such as an execution. What it does must be allowed by the
// Policy in force now and by those that replace it meanwhile. A View that has begun returns itself.
func (v *View) Begin() *View {
	if v.began != nil {
		return v
	}
	return &View{principal: v.principal, began: v.InForce(), current: v.current}
}

// InForce returns the Policy in force. It is another one whenever it was replaced.
func (v *View) InForce() *Policy {
	if v.current == nil {
		return v.began
	}
	return v.current.policy.Load()
}

// policies returns those that have to allow something: the Policy in force, that with which the View began, and those
// that they are under.
func (v *View) policies() []*Policy {
	p := v.InForce()
	all := p.all()
	if v.began != nil && v.began != p {
		all = append(all, v.began.all()...)
	}
	return all
}

// each calls f with the sight of each policy.
func (v *View) each(f func(s *sight)) {
	for _, p := range v.policies() {
		f(p.sight(v.principal))
	}
}

// Version returns that of the Policy in force.
func (v *View) Version() string { return v.InForce().version }

// Approval returns what needs no person.
func (v *View) Approval() Approval {
	a := Approval{true, true, true}
	for _, p := range v.policies() {
		a = Approval{a.Low && p.approval.Low, a.Medium && p.approval.Medium, a.High && p.approval.High}
	}
	return a
}

// Refused returns why nothing at all is allowed to the principal now, or nil.
func (v *View) Refused() (refused *core.Error) {
	for _, p := range v.InForce().all() {
		for _, l := range p.sight(v.principal).layers {
			if l.closed != "" && refused == nil {
				refused = core.Errorf(core.KindPolicy, "policy", "nothing more is done for %s: %s", v.whom(), l.closed).
					WithHint("what had been sent before is in the audit log; only the person who runs Retort can change the settings")
			}
		}
	}
	return refused
}

func (v *View) whom() string {
	if v.principal == "" {
		return "anybody"
	}
	return v.principal
}

// ReadOnly returns the rule by which nothing may be changed, "" if there is none.
func (v *View) ReadOnly() (rule string) {
	v.each(func(s *sight) { rule = cmp.Or(rule, s.readOnly()) })
	return rule
}

// Tool decides on a tool before anything is known of arguments.
func (v *View) Tool(t *core.Tool) Decision {
	return v.decision(func(s *sight) Decision { return s.decide(t).Decision })
}

// Call decides on a call by its arguments, one JSON object. What Tool denies stays denied. The
// effect is that of the call, which can be further than the tool's, or less far if the tool
// runs queries and this one only reads.
func (v *View) Call(t *core.Tool, args json.RawMessage) Decision {
	return v.decision(func(s *sight) Decision { return s.call(v.principal, t, args) })
}

// decision returns the strictest of those by all policies.
func (v *View) decision(decide func(*sight) Decision) (d Decision) {
	v.each(func(s *sight) { d = stricter(d, decide(s)) })
	return d
}

// stricter returns the stricter of two decisions on one call. Its effect is the further one.
func stricter(a, b Decision) Decision {
	effect := a.Effect
	if effect.Reason == "" || b.Effect.Kind > effect.Kind {
		effect = b.Effect
	}
	if b.Verdict > a.Verdict || b.Verdict == a.Verdict && a.Some && !b.Some {
		a = b
	}
	a.Effect = effect
	return a
}

// Toolset returns what of a toolset the principal may see: what Tool does not deny. It is the same for the same
// toolset, and costs nothing again while the rules stay.
func (v *View) Toolset(whole *core.Toolset) *core.Toolset {
	v.each(func(s *sight) { whole = s.toolset(whole) })
	return whole
}

// sight describes what principals with the same rules can see and call.
type sight struct {
	layers   []*layer // a call must pass all of them
	trusted  map[string]bool
	commands []Command

	mu      sync.Mutex
	seen    *core.Toolset // of which visible was made
	visible *core.Toolset
	judged  map[*core.Tool]string // rules that deny tools of seen; "" denies nothing
	decided map[*core.Tool]judged
}

// judged represents a Decision on a tool, and what judges its calls.
type judged struct {
	Decision
	judge *effect.Judge
}

func (s *sight) readOnly() string {
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

func (s *sight) decide(t *core.Tool) judged {
	const most = 4096
	s.mu.Lock()
	d, ok := s.decided[t]
	s.mu.Unlock()
	if ok {
		return d
	}
	d.judge = effect.NewJudge(t, s.trusted[t.Server])
	d.Decision = s.allowed(d.judge.Tool())
	if rule := s.denial(t); rule != "" {
		d.Verdict, d.Rule, d.Some = Deny, rule, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.decided == nil || len(s.decided) >= most {
		s.decided = map[*core.Tool]judged{}
	}
	s.decided[t] = d
	return d
}

// allowed decides on an effect by the permission levels.
func (s *sight) allowed(e core.Effect) Decision {
	d := Decision{Verdict: Allow, Effect: e}
	for _, l := range s.layers {
		rule := l.prefix + "permissionLevel: " + string(l.level)
		switch {
		case l.level == ReadOnly && e.Kind > core.EffectRead:
			return Decision{Verdict: Deny, Rule: rule, Effect: e, Some: true}
		case l.level == WriteRestricted && e.Kind == core.EffectDestructive && d.Verdict == Allow:
			d.Verdict, d.Rule = Ask, rule
		}
	}
	return d
}

func (s *sight) call(principal string, t *core.Tool, args json.RawMessage) Decision {
	tool := s.decide(t)
	if tool.Verdict == Deny {
		return tool.Decision
	}
	d := s.allowed(tool.judge.Call(args))
	if d.Verdict == Deny {
		return d
	}
	variables := arguments(t, principal, args)
	for _, l := range s.layers {
		if rule := l.broken(t, variables); rule != "" {
			return Decision{Verdict: Deny, Rule: rule, Effect: d.Effect, Some: true}
		}
	}
	return d
}

// denial returns the rule by which Tool denies, "" if it does not.
func (s *sight) denial(t *core.Tool) string {
	s.mu.Lock()
	rule, ok := s.judged[t]
	s.mu.Unlock()
	if ok {
		return rule
	}
	return s.judge(t)
}

func (s *sight) judge(t *core.Tool) string {
	of := func() core.Effect { return effect.OfTool(t, s.trusted[t.Server]) }
	for _, l := range s.layers {
		if rule := l.denial(t, of); rule != "" {
			return rule
		}
	}
	return ""
}

func (s *sight) toolset(whole *core.Toolset) *core.Toolset {
	if !s.hides() {
		return whole
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == whole {
		return s.visible
	}
	judged := make(map[*core.Tool]string, whole.Count())
	for _, server := range whole.Servers {
		for _, t := range server.Tools {
			rule, ok := s.judged[t]
			if !ok {
				rule = s.judge(t)
			}
			judged[t] = rule
		}
	}
	s.seen, s.judged = whole, judged
	s.visible = whole.Without(func(t *core.Tool) *core.Error {
		rule, ok := judged[t]
		if !ok {
			rule = s.judge(t)
		}
		if rule == "" {
			return nil
		}
		return Decision{Verdict: Deny, Rule: rule}.Error(t)
	})
	return s.visible
}

// hides reports whether any rule can hide a tool.
func (s *sight) hides() bool {
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
