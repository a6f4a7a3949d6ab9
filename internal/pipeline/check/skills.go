package check

import (
	"context"
	"errors"
	"slices"

	"retort/internal/core"
	"retort/internal/pipeline/check/source"
)

// Examined describes a skill that passed its check.
type Examined struct {
	Functions []source.Function // that it exports
	Tools     []*core.Tool      // that it can call by itself; all of them if Unknown
	Unknown   bool
	Uses      []string // other skills
	Warnings  []string
}

// maxSkillCode bounds a skill's source, in bytes.
const maxSkillCode = 256 << 10

// Examine checks a skill that has not been saved, in the same way as a program that imports it. The skill replaces
// the one of the same name in others.
func (g *Gate) Examine(ctx context.Context, skill core.Skill, tools *core.Toolset, others source.Library) (Examined, *core.Error) {
	if len(skill.Code) > maxSkillCode {
		return Examined{}, core.Errorf(core.KindLimit, "gate.skills", "the skill has %d bytes, %d are allowed", len(skill.Code), maxSkillCode).
			WithHint("put data into a workspace file")
	}
	library := replaced{others, skill}
	var e Examined
	var refusal *core.Error
	if skill.Language == core.Python {
		e, refusal = g.examineSnake(ctx, skill, library, tools)
	} else {
		e, refusal = g.examineScript(ctx, skill, library, tools)
	}
	if refusal == nil && !slices.ContainsFunc(e.Functions, func(f source.Function) bool { return f.Name != "" }) {
		refusal = noFunctions(skill)
	}
	return e, refusal
}

func (g *Gate) examineScript(ctx context.Context, skill core.Skill, library source.Library, tools *core.Toolset) (Examined, *core.Error) {
	s, refusal := g.typescript.Examine(ctx, skill, g.level, library, tools)
	if refusal != nil {
		return Examined{}, refusal
	}
	return Examined{Functions: s.Functions, Tools: s.Tools, Unknown: s.Unknown, Uses: s.Uses, Warnings: s.Warnings}, nil
}

func (g *Gate) examineSnake(ctx context.Context, skill core.Skill, library source.Library, tools *core.Toolset) (Examined, *core.Error) {
	if g.python == nil {
		return Examined{}, notBuilt("running Python programs").WithHint("write the skill in TypeScript")
	}
	s, refusal := g.python.Examine(ctx, skill, g.level, library, tools)
	if refusal != nil {
		return Examined{}, refusal
	}
	return Examined{Functions: s.Functions, Tools: s.Tools, Unknown: s.Unknown, Uses: s.Uses, Warnings: s.Warnings}, nil
}

// ErrNoFunctions is the cause of refusing a skill that exports nothing.
var ErrNoFunctions = errors.New("the skill exports no function, so nothing could use it")

func noFunctions(skill core.Skill) *core.Error {
	e := core.Errorf(core.KindType, "gate.skills", "%w", ErrNoFunctions)
	if skill.Language == core.Python {
		return e.WithHint("define one at the top level: def %s(name: str) -> dict: …", core.SkillIdentifier(skill.Name, core.Python))
	}
	return e.WithHint("export one: export async function %s(name: string) { … }", core.SkillIdentifier(skill.Name, core.TypeScript))
}

// replaced wraps a library and replaces the code of one skill.
type replaced struct {
	source.Library
	skill core.Skill
}

func (r replaced) Skill(name string, lang core.Language) (core.Skill, *core.Error) {
	if name == r.skill.Name && lang == r.skill.Language {
		return r.skill, nil
	}
	if r.Library == nil {
		return source.NoSkills{}.Skill(name, lang)
	}
	return r.Library.Skill(name, lang)
}
