package pipeline

import (
	"strings"

	"retort/internal/core"
	"retort/internal/pipeline/search/index"
	"retort/internal/skills"
)

// maxFoundSkills bounds the number of skills that a search for tools returns.
const maxFoundSkills = 3

// findSkills returns the skills that match a search for tools.
func (p *Pipeline) findSkills(q core.ToolQuery) []core.FoundSkill {
	var found []core.FoundSkill
	for _, s := range p.rankSkills(q.Text, maxFoundSkills) {
		info := p.infoOf(s)
		if q.Detail == core.DetailName {
			info.Description = ""
		}
		found = append(found, core.FoundSkill{Name: info.Name, Description: info.Description, Use: info.Use})
	}
	return found
}

// rankSkills returns the skills that match a question, best first, or all skills if the question is empty.
func (p *Pipeline) rankSkills(query string, limit int) []skills.Skill {
	all, _ := p.Skills.ListSkills()
	if strings.TrimSpace(query) == "" || len(all) == 0 {
		return all
	}
	byName := map[string]skills.Skill{}
	shelf := &core.ToolServer{Name: "skills"}
	for _, s := range all {
		byName[s.Name] = s
		text := s.Description + ". " + strings.Join(s.Tags, ", ") + ". " + strings.Join(s.Triggers, ", ") + "."
		for _, f := range s.Functions {
			text += " " + f.Name
		}
		shelf.Tools = append(shelf.Tools, &core.Tool{Server: "skills", Name: s.Name, Description: text, Pin: s.Version})
	}
	x := index.New()
	x.UpdateTools(core.NewToolset([]*core.ToolServer{shelf}))
	hits, _ := x.Search(query, index.SearchFilter{}, limit)
	var found []skills.Skill
	for _, h := range hits {
		found = append(found, byName[h.Tool.Name])
	}
	return found
}
