// Package policy decides which principal may call which tool with which arguments. Rules can only restrict: adding a
// rule never allows anything that was denied before. A tool that a rule denies is hidden from lists, and calls of it
// are denied by the same decision.
package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/unicode/norm"

	"retort/internal/core"
	"retort/internal/policy/cel"
)

// PermissionLevel says which effects the calls of a principal may have.
type PermissionLevel string

// The levels are listed from the strictest to the most permissive.
const (
	ReadOnly        PermissionLevel = "read_only"        // tools that only read
	WriteRestricted PermissionLevel = "write_restricted" // all tools; a person is asked about each call that can't be taken back
	ExecuteFull     PermissionLevel = "execute_full"     // all tools
)

// Rules holds all settings of a policy. The zero value has the level write_restricted and allows every tool.
type Rules struct {
	AccessLimits                 // for everybody
	Trusted      map[string]bool // servers whose hints may lower the effects of their tools
	// Effects states the effects of tools, as core.ParseEffectRule reads them, by server and pattern of names. They
	// replace what Retort would assume. A name without * and ? is stronger than a pattern, and of several patterns
	// the one with the gravest effect counts.
	Effects map[string]map[string]string `json:",omitempty"`
	// Grades has rules for grades of irreversible effects. They are stronger than Approval.High and than the level of
	// everybody, but not than a level that Principals states.
	Grades map[core.EffectGrade]GradeRule `json:"-"`
	// Principals holds limits on top of those for everybody: for one principal by name, and for the members of a group
	// by core.GroupPrefix and the group's name. All entries that apply to a principal restrict it.
	Principals map[string]AccessLimits
	Commands   []AllowedCommand // that programs may start; none where a level is ReadOnly, unless Levels say which
	Levels     map[PermissionLevel]LevelRules
	// Removed lists principals that earlier settings named and the current ones do not. Everything is denied to these
	// principals. If they were not listed, the default rules would apply to them, which may allow more than their own
	// rules did.
	Removed []string `json:"-"`
	// Disabled names the setting that denies everything to every principal. It is "" if no setting does that.
	Disabled string        `json:"-"`
	Approval AutoApprovals `json:"-"`
	// Version differs between any two sets of rules that differ. A person's approval is valid only for the version
	// for which it was given.
	Version string `json:"-"`
}

// AutoApprovals says for which levels of risk programs and calls need no approval. The zero value requires an
// approval for all of them.
type AutoApprovals struct{ Low, Medium, High bool }

// GradeRule says whether a person is asked about irreversible calls of one grade.
type GradeRule string

// Values of GradeRule.
const (
	GradeAsk     GradeRule = "ask"     // about each call
	GradeApprove GradeRule = "approve" // only where a person is also asked about calls that write
)

// AccessLimits restricts which tools the principals may call.
type AccessLimits struct {
	Level   PermissionLevel // for everybody, WriteRestricted if empty; for a principal, not stated
	Servers map[string]ServerRules
}

// ServerRules restricts which tools of one server may be called. Patterns match the tool names that the server uses;
// * matches any characters and ? matches one. The patterns of Deny and Conditions ignore case.
type ServerRules struct {
	Allow      []string          // nil: every tool; empty: none
	Deny       []string          // stronger than Allow
	Conditions map[string]string // pattern → expression of package cel that must be true
}

// ConditionVariables returns the names of the variables that conditions can use: the arguments, and the names of the
// tool, the server and the principal.
func ConditionVariables() []string { return []string{"args", "tool", "server", "principal"} }

// AccessVerdict says whether a call is allowed, denied, or subject to a person's approval.
type AccessVerdict uint8

// The verdicts are ordered by strictness, the mildest first.
const (
	Allow AccessVerdict = iota
	Ask                 // a person is asked
	Deny
)

// AccessDecision holds a verdict together with the rule that led to it, such as "permissionLevel: read_only" or
// "servers.crm.deny: delete_*". With the verdict Allow, the rule is empty.
type AccessDecision struct {
	Verdict AccessVerdict
	Rule    string
	Effect  core.EffectInfo // of the tool
	Some    bool            // other arguments may be allowed
	Eased   bool            // the effect is irreversible, and its grade needs no more approval than a call that writes
}

// Error returns the error that a program gets for a denied call. It names the rule but reveals nothing else about the
// policy.
func (d AccessDecision) Error(t *core.Tool) *core.Error {
	what, hint := "", "continue without this tool"
	if d.Some {
		what, hint = "these arguments of ", "other arguments may be allowed"
	}
	return core.Errorf(core.KindPolicy, "policy", "the policy does not allow %s%s.%s: %s", what, t.Server, t.Name, d.Rule).
		WithHint("%s; only the person who runs Retort can change the rule", hint).AtTool(t.Server, t.Name)
}

// Policy holds a compiled set of rules. It is safe for concurrent use.
type Policy struct {
	everybody *principalSight
	named     map[string]*principalSight // by entryKey
	combined  *combinedSights
	forged    *principalSight // of principals whose names begin with core.GroupPrefix
	approval  AutoApprovals
	version   string
	under     []*Policy // that have to allow something, too
}

// New validates and compiles rules. Its error is a *core.Error of kind invalid_arguments.
func New(r Rules) (*Policy, error) {
	if r.Level == "" {
		r.Level = WriteRestricted
	}
	base, err := newLayer("", r.AccessLimits, r.Levels)
	if err != nil {
		return nil, err
	}
	base.closed = r.Disabled
	if refused := validCommands(r.Commands); refused != nil {
		return nil, refused
	}
	effects, err := newEffectRules(r)
	if err != nil {
		return nil, err
	}
	commands, grades := slices.Clone(r.Commands), maps.Clone(r.Grades)
	p := &Policy{
		everybody: &principalSight{layers: []*limitLayer{base}, effects: effects, grades: grades, commands: commands},
		named:     map[string]*principalSight{}, combined: &combinedSights{made: map[string]*principalSight{}},
		approval: r.Approval, version: r.Version,
	}
	forged := &limitLayer{closed: "the name of a user cannot begin with " + core.GroupPrefix}
	p.forged = &principalSight{layers: []*limitLayer{base, forged}, effects: effects, grades: grades, commands: commands}
	for name, limits := range r.Principals {
		l, err := newLayer("principals."+name+".", limits, r.Levels)
		if err != nil {
			return nil, err
		}
		p.addEntry(name, l)
	}
	for _, name := range r.Removed {
		gone := &limitLayer{closed: "principals." + name + " was removed from the settings"}
		p.addEntry(name, gone)
	}
	return p, nil
}

// addEntry adds the limits of an entry of the settings. If an entry for the same group exists in another spelling,
// both apply.
func (p *Policy) addEntry(name string, l *limitLayer) {
	key := entryKey(name)
	s := p.named[key]
	if s == nil {
		s = p.everybody.withLayers(p.everybody.layers)
		p.named[key] = s
	}
	s.layers = append(slices.Clip(s.layers), l)
}

// entryKey returns the key for looking up an entry of the settings. For groups it ignores case, Unicode form and
// surrounding blanks: entries for groups only restrict, so a difference in spelling that nobody sees must not keep one
// from applying. Other names are used as they are.
func entryKey(name string) string {
	group, found := strings.CutPrefix(name, core.GroupPrefix)
	if !found {
		return name
	}
	return core.GroupPrefix + cel.FoldCase(norm.NFKC.String(strings.TrimSpace(group)))
}

// ViewFor returns the policy as it applies to one principal and the groups of which the principal is a member. The
// empty principal is the user of this machine. A principal without rules of its own or of a group has the default
// rules. A principal whose name begins with core.GroupPrefix may do nothing.
func (p *Policy) ViewFor(principal string, groups ...string) *PrincipalView {
	v := newView(principal, groups)
	v.began = p
	return v
}

// maxUnder bounds how many other policies can restrict one policy.
const maxUnder = 16

// RestrictedBy returns a policy that allows only what both p and other allow. It returns false if the result would
// combine more than maxUnder policies.
func (p *Policy) RestrictedBy(other *Policy) (*Policy, bool) {
	narrow := *p
	narrow.under = append(slices.Clone(p.under), other.allPolicies()...)
	narrow.version += "\x00" + other.version
	return &narrow, len(narrow.under) <= maxUnder
}

// allPolicies returns the policy itself and the policies that restrict it.
func (p *Policy) allPolicies() []*Policy { return append([]*Policy{p}, p.under...) }

// sightOf returns the rules that apply to a view's principal.
func (p *Policy) sightOf(v *PrincipalView) *principalSight {
	if strings.HasPrefix(v.principal, core.GroupPrefix) {
		return p.forged
	}
	entries := p.matchingEntries(v.entries)
	switch len(entries) {
	case 0:
		return p.everybody
	case 1:
		return p.named[entries[0]]
	}
	return p.combined.sightFor(p, entries)
}

// matchingEntries returns those of the names for which the settings have an entry.
func (p *Policy) matchingEntries(names []string) (entries []string) {
	for _, name := range names {
		if _, ok := p.named[name]; ok {
			entries = append(entries, name)
		}
	}
	return entries
}

// combinedSights caches the rules of principals to which several entries of the settings apply, by the names of these
// entries. It is safe for concurrent use.
type combinedSights struct {
	mu   sync.Mutex
	made map[string]*principalSight
}

// maxCombined bounds how many combinations of entries are cached.
const maxCombined = 1024

// sightFor returns the rules of all these entries together. A call must pass each of them.
func (c *combinedSights) sightFor(p *Policy, entries []string) *principalSight {
	key := fmt.Sprintf("%q", entries)
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.made[key]; ok {
		return s
	}
	if len(c.made) >= maxCombined {
		clear(c.made)
	}
	s := p.everybody.withLayers(p.everybody.layers)
	for _, name := range entries {
		s.layers = slices.Concat(s.layers, p.named[name].layers[1:]) // the first applies to everybody
	}
	c.made[key] = s
	return s
}

// limitLayer holds one compiled set of limits, which applies to everybody, to one principal or to one group. It includes the
// rules of the permission level that belongs to these limits.
type limitLayer struct {
	closed  string // the rule that denies everything, or ""
	prefix  string // of the names of its rules
	level   PermissionLevel
	rules   LevelRules // of the level
	servers map[string]*serverRules
}

type serverRules struct {
	allow      []string
	deny       []namePattern
	conditions []callCondition
}

// namePattern holds a pattern for names as written and in the case-folded form that is used for comparisons.
type namePattern struct{ written, folded string }

type callCondition struct {
	namePattern
	expr  *cel.ConditionExpr
	names map[string]string // that the expression asks for, by their folded form
}

func newLayer(prefix string, l AccessLimits, levels map[PermissionLevel]LevelRules) (*limitLayer, error) {
	if l.Level != "" && !slices.Contains([]PermissionLevel{ReadOnly, WriteRestricted, ExecuteFull}, l.Level) {
		return nil, invalidRules("%spermissionLevel: unknown level %q", prefix, l.Level)
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

func newServer(s ServerRules) (*serverRules, error) {
	made := &serverRules{allow: slices.Clone(s.Allow)}
	for _, p := range slices.Concat(s.Allow, s.Deny, slices.Collect(maps.Keys(s.Conditions))) {
		if _, err := path.Match(p, ""); err != nil {
			return nil, fmt.Errorf("%q is not a valid pattern", p)
		}
	}
	for _, p := range s.Deny {
		made.deny = append(made.deny, namePattern{p, cel.FoldCase(p)})
	}
	for _, p := range slices.Sorted(maps.Keys(s.Conditions)) {
		expr, err := cel.Compile(s.Conditions[p], ConditionVariables()...)
		if err != nil {
			return nil, fmt.Errorf("conditions.%s: %w", p, err)
		}
		c := callCondition{namePattern: namePattern{p, cel.FoldCase(p)}, expr: expr, names: map[string]string{}}
		for _, name := range expr.VariableNames() {
			c.names[cel.FoldCase(name)] = name
		}
		made.conditions = append(made.conditions, c)
	}
	return made, nil
}

// denyingRule returns the rule that denies a tool with any arguments, or "" if none does. It calls effect only if a
// rule depends on the tool's effect.
func (l *limitLayer) denyingRule(t *core.Tool, effect func() core.EffectInfo) string {
	if l.closed != "" {
		return l.closed
	}
	if s := l.servers[t.Server]; s != nil {
		folded := cel.FoldCase(t.Name)
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

// matchesPattern reports whether a name matches a pattern. Unlike in path.Match, * also matches slashes.
func matchesPattern(pattern, name string) bool {
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", "\x00"), strings.ReplaceAll(name, "/", "\x00"))
	return ok && err == nil
}

// brokenCondition returns the first condition that a call does not meet, with the setting that holds it, such as
// "servers.github.conditions: args.limit <= 10". It returns "" if the call meets all conditions. A condition that
// cannot be evaluated counts as not met.
func (l *limitLayer) brokenCondition(t *core.Tool, variables func() (map[string]any, error)) string {
	s := l.servers[t.Server]
	if s == nil {
		return ""
	}
	folded := cel.FoldCase(t.Name)
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
	ok, err := c.expr.IsTrue(v)
	return ok && err == nil
}

// isDisguisedKey reports whether a value contains a key that differs only in case from a key that the condition
// reads. The condition would not see such a key, but some servers would accept it.
func (c callCondition) isDisguisedKey(v any) bool {
	switch x := v.(type) {
	case []any:
		return slices.ContainsFunc(x, c.isDisguisedKey)
	case map[string]any:
		for key, value := range x {
			if name, ok := c.names[cel.FoldCase(key)]; ok && name != key || c.isDisguisedKey(value) {
				return true
			}
		}
	}
	return false
}

// conditionVariables returns a function that provides the variables of conditions. The arguments are decoded at its
// first call.
func conditionVariables(t *core.Tool, principal string, args json.RawMessage) func() (map[string]any, error) {
	var made map[string]any
	var failed error
	return func() (map[string]any, error) {
		if made == nil && failed == nil {
			v, err := cel.DecodeJSON(args)
			made, failed = map[string]any{"args": v, "tool": t.Name, "server": t.Server, "principal": principal}, err
		}
		return made, failed
	}
}
