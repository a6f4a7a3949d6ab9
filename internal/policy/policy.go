// Package policy decides who may call what with which arguments. A rule can only
// subtract: whatever is added to Rules, nothing is allowed that was not before. One
// decision hides a tool from listing and refuses its call.
package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"retort/internal/core"
	"retort/internal/policy/cel"
)

// Level describes how far the effects of calls may go.
type Level string

// The levels, strictest first.
const (
	ReadOnly        Level = "read_only"        // tools that only read
	WriteRestricted Level = "write_restricted" // all tools; a person is asked about each call that can't be taken back
	ExecuteFull     Level = "execute_full"     // all tools
)

// Rules holds the whole policy. The zero Rules are the level write_restricted and allow every tool.
type Rules struct {
	Limits                       // for everybody
	Trusted    map[string]bool   // servers whose hints may lower the effects of their tools
	Principals map[string]Limits // for one principal, on top of those for everybody
	Commands   []Command         // that programs may start; none where a level is ReadOnly, unless Levels say which
	Levels     map[Level]LevelRules
	// Removed are principals whom earlier settings named. Nothing is allowed to them: without
	// their own rules they would have those for everybody, which allow more.
	Removed []string `json:"-"`
	// Disabled is the setting by which nothing is allowed to anybody; "" if there is none.
	Disabled string   `json:"-"`
	Approval Approval `json:"-"`
	// Version is a text that differs if the rules do. What a person has approved counts for one version.
	Version string `json:"-"`
}

// Approval describes which programs and calls need no person, by their risk. The zero Approval has a person asked
// about all.
type Approval struct{ Low, Medium, High bool }

// Limits narrow what may be called.
type Limits struct {
	Level   Level // for everybody, WriteRestricted if empty; for a principal, not stated
	Servers map[string]Server
}

// Server narrows what may be called on one server. Patterns are for raw names of
// tools; * stands for any characters and ? for one. Those of Deny and Conditions
// match in any case of letters.
type Server struct {
	Allow      []string          // nil: every tool; empty: none
	Deny       []string          // stronger than Allow
	Conditions map[string]string // pattern → expression of package cel that must be true
}

// Variables returns the names that conditions see: the arguments, and the raw names.
func Variables() []string { return []string{"args", "tool", "server", "principal"} }

// Verdict describes what becomes of a call.
type Verdict uint8

// The verdicts, mildest first.
const (
	Allow Verdict = iota
	Ask           // a person is asked
	Deny
)

// Decision represents a verdict with the rule that it comes from: "permissionLevel: read_only", "servers.crm.deny:
// delete_*". An Allow has no rule.
type Decision struct {
	Verdict Verdict
	Rule    string
	Effect  core.EffectInfo // of the tool
	Some    bool            // other arguments may be allowed
}

// Error returns what a program hears of a Deny: the rule, and not what lies behind it.
func (d Decision) Error(t *core.Tool) *core.Error {
	what, hint := "", "do without this tool"
	if d.Some {
		what, hint = "these arguments of ", "other arguments may be allowed"
	}
	return core.Errorf(core.KindPolicy, "policy", "the policy refuses %s%s.%s: %s", what, t.Server, t.Name, d.Rule).
		WithHint("%s; only the person who runs Retort can change the rule", hint).AtTool(t.Server, t.Name)
}

// Policy represents a set of rules, ready to decide. It is safe for concurrent use.
type Policy struct {
	everybody *principalSight
	named     map[string]*principalSight
	approval  Approval
	version   string
	under     []*Policy // that have to allow something, too
}

// New checks rules. Its error is a *core.Error of kind invalid_arguments.
func New(r Rules) (*Policy, error) {
	if r.Level == "" {
		r.Level = WriteRestricted
	}
	base, err := newLayer("", r.Limits, r.Levels)
	if err != nil {
		return nil, err
	}
	base.closed = r.Disabled
	if refused := validCommands(r.Commands); refused != nil {
		return nil, refused
	}
	trusted, commands := maps.Clone(r.Trusted), slices.Clone(r.Commands)
	p := &Policy{
		everybody: &principalSight{layers: []*limitLayer{base}, trusted: trusted, commands: commands},
		named:     map[string]*principalSight{}, approval: r.Approval, version: r.Version,
	}
	for name, limits := range r.Principals {
		l, err := newLayer("principals."+name+".", limits, r.Levels)
		if err != nil {
			return nil, err
		}
		p.named[name] = &principalSight{layers: []*limitLayer{base, l}, trusted: trusted, commands: commands}
	}
	for _, name := range r.Removed {
		gone := &limitLayer{closed: "principals." + name + " was removed from the settings"}
		p.named[name] = &principalSight{layers: []*limitLayer{base, gone}, trusted: trusted, commands: commands}
	}
	return p, nil
}

// For returns the policy as it is for one principal; the empty one is whoever sits at
// this machine. One that no rule names has the rules for everybody.
func (p *Policy) For(principal string) *View { return &View{principal: principal, began: p} }

// maxUnder bounds the policies above one.
const maxUnder = 16

// RestrictedBy returns a Policy that allows what p and other allow, or false if there are too many of them above each other.
func (p *Policy) RestrictedBy(other *Policy) (*Policy, bool) {
	narrow := *p
	narrow.under = append(slices.Clone(p.under), other.allPolicies()...)
	narrow.version += "\x00" + other.version
	return &narrow, len(narrow.under) <= maxUnder
}

// allPolicies returns the Policy itself and those that it is under.
func (p *Policy) allPolicies() []*Policy { return append([]*Policy{p}, p.under...) }

func (p *Policy) sightOf(principal string) *principalSight {
	if s, ok := p.named[principal]; ok {
		return s
	}
	return p.everybody
}

// limitLayer represents one set of limits, compiled.
type limitLayer struct {
	closed  string // the rule that denies everything; "" if there is none
	prefix  string // of the names of its rules
	level   Level
	rules   LevelRules // of the level
	servers map[string]*serverRules
}

type serverRules struct {
	allow      []string
	deny       []namePattern
	conditions []callCondition
}

// namePattern matches in any case of letters.
type namePattern struct{ written, folded string }

type callCondition struct {
	namePattern
	expr  *cel.Expr
	names map[string]string // that the expression asks for, by their folded form
}

func newLayer(prefix string, l Limits, levels map[Level]LevelRules) (*limitLayer, error) {
	if l.Level != "" && !slices.Contains([]Level{ReadOnly, WriteRestricted, ExecuteFull}, l.Level) {
		return nil, invalidRules("%spermissionLevel: there is no level %q", prefix, l.Level)
	}
	made := &limitLayer{prefix: prefix, level: l.Level, rules: levels[l.Level], servers: map[string]*serverRules{}}
	for name, s := range l.Servers {
		compiled, err := newServer(s)
		if err != nil {
			return nil, invalidRules("%sservers.%s.%w", prefix, name, err)
		}
		made.servers[name] = compiled
	}
	return made, nil
}

func invalidRules(format string, args ...any) error {
	return core.Errorf(core.KindInvalidArguments, "policy.new", format, args...)
}

func newServer(s Server) (*serverRules, error) {
	made := &serverRules{allow: slices.Clone(s.Allow)}
	for _, p := range slices.Concat(s.Allow, s.Deny, slices.Collect(maps.Keys(s.Conditions))) {
		if _, err := path.Match(p, ""); err != nil {
			return nil, fmt.Errorf("%q is no pattern", p)
		}
	}
	for _, p := range s.Deny {
		made.deny = append(made.deny, namePattern{p, cel.Fold(p)})
	}
	for _, p := range slices.Sorted(maps.Keys(s.Conditions)) {
		expr, err := cel.Compile(s.Conditions[p], Variables()...)
		if err != nil {
			return nil, fmt.Errorf("conditions.%s: %w", p, err)
		}
		c := callCondition{namePattern: namePattern{p, cel.Fold(p)}, expr: expr, names: map[string]string{}}
		for _, name := range expr.Names() {
			c.names[cel.Fold(name)] = name
		}
		made.conditions = append(made.conditions, c)
	}
	return made, nil
}

// denyingRule returns the rule that denies a tool whatever the arguments are, "" if none does. effect is asked for only if
// it matters.
func (l *limitLayer) denyingRule(t *core.Tool, effect func() core.EffectInfo) string {
	if l.closed != "" {
		return l.closed
	}
	if s := l.servers[t.Server]; s != nil {
		folded := cel.Fold(t.Name)
		for _, p := range s.deny {
			if matchesPattern(p.folded, folded) {
				return l.prefix + "servers." + t.Server + ".deny: " + p.written
			}
		}
		if s.allow != nil && !slices.ContainsFunc(s.allow, func(p string) bool { return matchesPattern(p, t.Name) }) {
			return l.prefix + "servers." + t.Server + ".allow"
		}
	}
	if l.level == ReadOnly && effect().Kind != core.EffectRead {
		return l.prefix + "permissionLevel: " + string(ReadOnly)
	}
	return ""
}

// matchesPattern holds a name to a pattern; * stands for slashes too.
func matchesPattern(pattern, name string) bool {
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", "\x00"), strings.ReplaceAll(name, "/", "\x00"))
	return ok && err == nil
}

// brokenCondition returns the condition that a call does not meet, "" if there is none. What can't be evaluated is not met.
func (l *limitLayer) brokenCondition(t *core.Tool, variables func() (map[string]any, error)) string {
	s := l.servers[t.Server]
	if s == nil {
		return ""
	}
	folded := cel.Fold(t.Name)
	for _, c := range s.conditions {
		if matchesPattern(c.folded, folded) && !c.isMet(variables) {
			return l.prefix + "servers." + t.Server + ".conditions: " + c.written
		}
	}
	return ""
}

func (c callCondition) isMet(variables func() (map[string]any, error)) bool {
	v, err := variables()
	if err != nil || c.isDisguisedKey(v["args"]) {
		return false
	}
	ok, err := c.expr.True(v)
	return ok && err == nil
}

// isDisguisedKey reports whether a key is one that the condition asks for, but for the
// case of letters. The condition would miss it, and some servers would read it.
func (c callCondition) isDisguisedKey(v any) bool {
	switch x := v.(type) {
	case []any:
		return slices.ContainsFunc(x, c.isDisguisedKey)
	case map[string]any:
		for key, value := range x {
			if name, ok := c.names[cel.Fold(key)]; ok && name != key || c.isDisguisedKey(value) {
				return true
			}
		}
	}
	return false
}

// conditionVariables returns the variables of conditions, read when first asked for.
func conditionVariables(t *core.Tool, principal string, args json.RawMessage) func() (map[string]any, error) {
	var made map[string]any
	var failed error
	return func() (map[string]any, error) {
		if made == nil && failed == nil {
			v, err := cel.Value(args)
			made, failed = map[string]any{"args": v, "tool": t.Name, "server": t.Server, "principal": principal}, err
		}
		return made, failed
	}
}
