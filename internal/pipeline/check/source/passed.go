package source

import (
	"retort/internal/core"
	"retort/internal/pipeline/check/rules"
)

// CheckedSkill describes a skill that has passed the check, in the form that an importing program needs.
type CheckedSkill struct {
	core.Skill
	Module    core.SkillModule // without its global
	Functions []SkillFunction
	Tools     []*core.Tool // those it can reach by itself; all of them if Unknown
	Unknown   bool
	Uses      []string // skills that it imports, sorted
	Warnings  []string
	Report    rules.RuleReport
	// Locate converts a line and column in the code of the generated module to a line and column in the skill's own
	// code.
	Locate func(line, column int) (int, int)
}
