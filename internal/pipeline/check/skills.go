package check

import (
	"context"
	"errors"
	"slices"

	"retort/internal/core"
	"retort/internal/pipeline/check/source"
)

// SkillCheck describes a skill that has passed its check.
type SkillCheck struct {
	Functions []source.SkillFunction // that it exports
	Tools     []*core.Tool           // that it can call by itself; all of them if Unknown
	Unknown   bool
	Uses      []string // other skills
	Warnings  []string
}

// maxSkillCode bounds a skill's source, in bytes.
const maxSkillCode = 256 << 10

// ExamineSkill checks a skill that has not been saved yet, in the same way as a program that imports it. others
// provides all other skills; the new skill replaces one of the same name.
func (g *ProgramChecker) ExamineSkill(
	ctx context.Context, skill core.Skill, tools *core.Toolset, others source.SkillLibrary,
) (SkillCheck, *core.Error) {
	if len(skill.Code) > maxSkillCode {
		return SkillCheck{}, core.Errorf(core.KindLimit, "gate.skills", "the skill has %d bytes; at most %d are allowed", len(skill.Code), maxSkillCode).
			WithHint("put data into a workspace file")
	}
	library := replacedLibrary{others, skill}
	var e SkillCheck
	var refusal *core.Error
	if skill.Language == core.Python {
		e, refusal = g.examineSnake(ctx, skill, library, tools)
	} else {
		e, refusal = g.examineScript(ctx, skill, library, tools)
	}
	if refusal == nil && !slices.ContainsFunc(e.Functions, func(f source.SkillFunction) bool { return f.Name != "" }) {
		refusal = noFunctions(skill)
	}
	return e, refusal
}

func (g *ProgramChecker) examineScript(
	ctx context.Context, skill core.Skill, library source.SkillLibrary, tools *core.Toolset,
) (SkillCheck, *core.Error) {
	s, refusal := g.typescript.ExamineSkill(ctx, skill, g.level, library, tools)
	if refusal != nil {
		return SkillCheck{}, refusal
	}
	return SkillCheck{Functions: s.Functions, Tools: s.Tools, Unknown: s.Unknown, Uses: s.Uses, Warnings: s.Warnings}, nil
}

func (g *ProgramChecker) examineSnake(
	ctx context.Context, skill core.Skill, library source.SkillLibrary, tools *core.Toolset,
) (SkillCheck, *core.Error) {
	if g.python == nil {
		return SkillCheck{}, notBuilt("running Python programs").WithHint("write the skill in TypeScript")
	}
	s, refusal := g.python.ExamineSkill(ctx, skill, g.level, library, tools)
	if refusal != nil {
		return SkillCheck{}, refusal
	}
	return SkillCheck{Functions: s.Functions, Tools: s.Tools, Unknown: s.Unknown, Uses: s.Uses, Warnings: s.Warnings}, nil
}

// ErrNoFunctions is the cause of the error for a skill that exports no functions.
var ErrNoFunctions = errors.New("the skill exports no function, so programs could not use it")

func noFunctions(skill core.Skill) *core.Error {
	e := core.Errorf(core.KindType, "gate.skills", "%w", ErrNoFunctions)
	if skill.Language == core.Python {
		return e.WithHint("define one at the top level: def %s(name: str) -> dict: …", core.SkillIdentifier(skill.Name, core.Python))
	}
	return e.WithHint("export one: export async function %s(name: string) { … }", core.SkillIdentifier(skill.Name, core.TypeScript))
}

// replacedLibrary implements a skill library in which the code of one skill is replaced.
type replacedLibrary struct {
	source.SkillLibrary
	skill core.Skill
}

func (r replacedLibrary) FindSkill(name string, lang core.Language) (core.Skill, *core.Error) {
	if name == r.skill.Name && lang == r.skill.Language {
		return r.skill, nil
	}
	if r.SkillLibrary == nil {
		return source.NoSkills{}.FindSkill(name, lang)
	}
	return r.SkillLibrary.FindSkill(name, lang)
}
