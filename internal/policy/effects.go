package policy

import (
	"maps"
	"path"
	"slices"
	"strings"

	"retort/internal/core"
	"retort/internal/policy/effect"
)

// effectRules holds what a person says about the effects of tools. It never changes.
type effectRules struct {
	trusted map[string]bool         // servers whose annotations count
	stated  map[string][]effectRule // by server
}

// effectRule states the effect of the tools whose names match a pattern.
type effectRule struct {
	pattern string
	exact   bool // the pattern is a name
	effect  core.EffectInfo
}

func newEffectRules(r Rules) (*effectRules, error) {
	made := &effectRules{trusted: maps.Clone(r.Trusted), stated: map[string][]effectRule{}}
	for server, patterns := range r.Effects {
		for _, p := range slices.Sorted(maps.Keys(patterns)) {
			e, ok := core.ParseEffectRule(patterns[p])
			if !ok {
				return nil, invalidRules("servers.%s.effects.%s: unknown effect %q", server, p, patterns[p])
			}
			if _, err := path.Match(p, ""); err != nil {
				return nil, invalidRules("servers.%s.effects: %q is not a valid pattern", server, p)
			}
			e.Reason = "your setting servers." + server + ".effects says so"
			made.stated[server] = append(made.stated[server], effectRule{
				pattern: p, exact: !strings.ContainsAny(p, `*?[\`), effect: e,
			})
		}
	}
	return made, nil
}

// statedFor returns the effect that a person has stated for a tool. Patterns match names exactly as they are written.
func (r *effectRules) statedFor(t *core.Tool) (e core.EffectInfo, ok bool) {
	exact := false
	for _, one := range r.stated[t.Server] {
		if !matchesPattern(one.pattern, t.Name) || exact && !one.exact {
			continue
		}
		if !ok || one.exact && !exact || one.effect.IsGraver(e) {
			e, ok, exact = one.effect, true, one.exact
		}
	}
	return e, ok
}

// effectOf returns the effect of a tool as long as the arguments of a call are not known.
func (r *effectRules) effectOf(t *core.Tool) core.EffectInfo {
	if e, ok := r.statedFor(t); ok {
		return e
	}
	return effect.OfTool(t, r.trusted[t.Server])
}

// judgeOf returns the EffectJudge of a tool.
func (r *effectRules) judgeOf(t *core.Tool) *effect.EffectJudge {
	j := effect.NewJudge(t, r.trusted[t.Server])
	if e, ok := r.statedFor(t); ok {
		j.FixEffect(e)
	}
	return j
}
