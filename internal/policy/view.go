package policy

import (
	"encoding/json"
	"sync"

	"retort/internal/policy/effect"
	"retort/internal/run"
)

// View is the policy for one principal.
type View struct {
	principal string
	*sight
}

// sight is what principals with the same rules can see and call.
type sight struct {
	layers   []*layer // a call must pass all of them
	trusted  map[string]bool
	commands []Command

	mu      sync.Mutex
	seen    *run.Toolset // of which visible was made
	visible *run.Toolset
	judged  map[*run.Tool]string // rules that deny tools of seen; "" denies nothing
	decided map[*run.Tool]judged
}

// judged is a Decision on a tool, and what judges its calls.
type judged struct {
	Decision
	judge *effect.Judge
}

// Principal is for whom the view is; empty is everybody whom no rule names.
func (v *View) Principal() string { return v.principal }

// ReadOnly is the setting by which nothing may be changed, "" if there is none.
func (v *View) ReadOnly() string {
	for _, l := range v.layers {
		if l.level == ReadOnly {
			return l.prefix + "permissionLevel: " + string(ReadOnly)
		}
	}
	return ""
}

// Tool decides on a tool before anything is known of arguments.
func (s *sight) Tool(t *run.Tool) Decision { return s.decide(t).Decision }

func (s *sight) decide(t *run.Tool) judged {
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
		s.decided = map[*run.Tool]judged{}
	}
	s.decided[t] = d
	return d
}

// allowed decides on an effect by the permission levels.
func (s *sight) allowed(e run.Effect) Decision {
	d := Decision{Verdict: Allow, Effect: e}
	for _, l := range s.layers {
		rule := l.prefix + "permissionLevel: " + string(l.level)
		switch {
		case l.level == ReadOnly && e.Kind > run.EffectRead:
			return Decision{Verdict: Deny, Rule: rule, Effect: e, Some: true}
		case l.level == WriteRestricted && e.Kind == run.EffectDestructive && d.Verdict == Allow:
			d.Verdict, d.Rule = Ask, rule
		}
	}
	return d
}

// Call decides on a call by its arguments, one JSON object. What Tool denies stays denied. The
// effect is that of the call, which can be further than the tool's, or less far if the tool
// runs queries and this one only reads.
func (v *View) Call(t *run.Tool, args json.RawMessage) Decision {
	tool := v.decide(t)
	if tool.Verdict == Deny {
		return tool.Decision
	}
	d := v.allowed(tool.judge.Call(args))
	if d.Verdict == Deny {
		return d
	}
	variables := arguments(t, v.principal, args)
	for _, l := range v.layers {
		if rule := l.broken(t, variables); rule != "" {
			return Decision{Verdict: Deny, Rule: rule, Effect: d.Effect, Some: true}
		}
	}
	return d
}

// denial is the rule by which Tool denies, "" if it does not.
func (s *sight) denial(t *run.Tool) string {
	s.mu.Lock()
	rule, ok := s.judged[t]
	s.mu.Unlock()
	if ok {
		return rule
	}
	return s.judge(t)
}

func (s *sight) judge(t *run.Tool) string {
	of := func() run.Effect { return effect.OfTool(t, s.trusted[t.Server]) }
	for _, l := range s.layers {
		if rule := l.denial(t, of); rule != "" {
			return rule
		}
	}
	return ""
}

// Toolset is what of a toolset the principal may see: what Tool does not deny. It is
// the same for the same toolset, and costs nothing again.
func (s *sight) Toolset(whole *run.Toolset) *run.Toolset {
	if !s.hides() {
		return whole
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == whole {
		return s.visible
	}
	judged := make(map[*run.Tool]string, whole.Count())
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
	s.visible = whole.Without(func(t *run.Tool) *run.Error {
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
		if l.level == ReadOnly {
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
