package gate

import (
	"retort/internal/pipeline/gate/rules"
	"retort/internal/policy/effect"
	"retort/internal/run"
)

// riskOf weighs what a program can call and what the rules found in it.
func (g *Gate) riskOf(r rules.Report, tools *run.Toolset, reached []*run.Tool, unknown bool) rules.Risk {
	loops := map[*run.Tool]bool{}
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

func (g *Gate) effect(t *run.Tool) run.Effect {
	return effect.OfTool(t, g.trusted != nil && g.trusted(t.Server))
}
