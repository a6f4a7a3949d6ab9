package check

import (
	"retort/internal/core"
	"retort/internal/pipeline/check/rules"
	"retort/internal/policy/effect"
)

// riskOf computes the risk of a program from the tools that it can call and the rules' findings.
func (g *ProgramChecker) riskOf(r rules.RuleReport, tools *core.Toolset, reached []*core.Tool, unknown bool) rules.ProgramRisk {
	loops := map[*core.Tool]bool{}
	for _, c := range r.Impact.Calls {
		if t, ok := tools.FindTool(c.Name); ok {
			loops[t] = loops[t] || c.Loop
		}
	}
	uses := make([]rules.UsedTool, 0, len(reached))
	for _, t := range reached {
		uses = append(uses, rules.UsedTool{Tool: tools.QualifiedName(t), Effect: g.toolEffect(t), Loop: loops[t] || unknown})
	}
	return rules.WeighRisk(r, uses, unknown)
}

func (g *ProgramChecker) toolEffect(t *core.Tool) core.EffectInfo {
	if g.effect == nil {
		return effect.OfTool(t, false)
	}
	return g.effect(t)
}
