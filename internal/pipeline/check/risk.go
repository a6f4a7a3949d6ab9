package check

import (
	"retort/internal/core"
	"retort/internal/pipeline/check/rules"
	"retort/internal/policy/effect"
)

// riskOf weighs the tools that a program can call and the rules' findings.
func (g *Gate) riskOf(r rules.Report, tools *core.Toolset, reached []*core.Tool, unknown bool) rules.Risk {
	loops := map[*core.Tool]bool{}
	for _, c := range r.Impact.Calls {
		if t, ok := tools.Tool(c.Name); ok {
			loops[t] = loops[t] || c.Loop
		}
	}
	uses := make([]rules.Use, 0, len(reached))
	for _, t := range reached {
		uses = append(uses, rules.Use{Tool: tools.Qualified(t), Effect: g.effect(t), Loop: loops[t] || unknown})
	}
	return rules.Weigh(r, uses, unknown)
}

func (g *Gate) effect(t *core.Tool) core.Effect {
	return effect.OfTool(t, g.trusted != nil && g.trusted(t.Server))
}
