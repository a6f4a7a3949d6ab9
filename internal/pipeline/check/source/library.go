package source

import (
	"fmt"

	"retort/internal/core"
)

// SkillLibrary provides the source code of skills. An execution asks for each skill only once, so that the code that
// was checked is the code that runs.
type SkillLibrary interface {
	// FindSkill returns the skill with this name. If it does not exist in the language, the error says so, with a
	// hint.
	FindSkill(name string, lang core.Language) (core.Skill, *core.Error)
}

// NoSkills implements a SkillLibrary without any skills.
type NoSkills struct{}

// FindSkill returns an error that says that there are no skills.
func (NoSkills) FindSkill(name string, _ core.Language) (core.Skill, *core.Error) {
	return core.Skill{}, core.Errorf(
		core.KindType, "gate.skills", "there is no skill %q", name,
	).WithHint("list the skills with list_skills, or save one with save_skill")
}

// SkillFunction describes an exported function of a skill, in the syntax of its language.
type SkillFunction struct {
	Name   string
	Params []FunctionParam
	Result string // its type as written; "" if it is not written
	Async  bool
	Doc    string
}

// FunctionParam describes a parameter of a SkillFunction.
type FunctionParam struct {
	Name     string
	Type     string // as written; "" if it is not written
	Schema   string // its JSON Schema, as far as the source shows it; {} if it does not
	Default  string // as written; "" if absent or unknown
	Optional bool
	Rest     bool
}

// ListExported returns a text that lists the functions that a skill exports.
func ListExported(skill string, functions []SkillFunction) string {
	var names []string
	for _, f := range functions {
		names = append(names, f.Name)
	}
	return skill + " has " + OrList(names)
}

// Bounds on the skills of one program: maxSkills on their number, maxChain on how deeply imports are nested.
const (
	maxSkills = 64
	maxChain  = 16
)

// ImportChain lists the skills that are currently being checked. Each skill is imported by the previous one.
type ImportChain []string

// WithSkill returns the chain with one more skill. It returns an error if the skill is already in the chain or if a
// bound is reached. seen is the number of skills checked so far.
func (c ImportChain) WithSkill(name string, seen int) (ImportChain, *core.Error) {
	for i, n := range c {
		if n == name {
			cycle := append(append(ImportChain{}, c[i:]...), name)
			e := core.Errorf(core.KindType, "gate.skills", "skills import each other in a cycle: %s", cycle.String()).
				WithHint("move the shared code into a separate skill")
			e.Skill = name
			return nil, e
		}
	}
	if len(c) >= maxChain || seen >= maxSkills {
		return nil, core.Errorf(
			core.KindLimit, "gate.skills", "the program uses too many skills (at most %d, at most %d levels deep)", maxSkills,
			maxChain,
		)
	}
	return append(append(ImportChain{}, c...), name), nil
}

func (c ImportChain) String() string {
	text := ""
	for i, n := range c {
		if i > 0 {
			text += " → "
		}
		text += n
	}
	return text
}

// InSkill converts an error in a skill to an error of the program that uses the skill. The error names the skill and
// contains the place in its code.
func InSkill(s core.Skill, e *core.Error) *core.Error {
	if e.Skill != "" {
		return e
	}
	c := *e
	c.Skill = s.Name
	c.Message = "the skill " + s.Name + " cannot be used: " + s.FileName() + errorPlace(e) + ": " + e.Message
	if e.Kind != core.KindInternal && e.Kind != core.KindCancelled {
		c.Hint = "repair the skill (read it with load_skill, and save it again with save_skill)"
		if e.Hint != "" {
			c.Hint = e.Hint + "; " + c.Hint
		}
	}
	c.Line, c.Column = 0, 0
	return &c
}

func errorPlace(e *core.Error) string {
	if e.Line == 0 {
		return ""
	}
	return fmt.Sprintf(":%d:%d", e.Line, e.Column)
}

// LinkSkill returns the checked skill with this name. It calls the function check only if the map linked does not
// contain the skill yet. All programs and skills of one execution share that map.
func LinkSkill[S any](
	linked map[string]*S, library SkillLibrary, name string, lang core.Language, chain ImportChain,
	check func(core.Skill, ImportChain) (*S, *core.Error),
) (*S, *core.Error) {
	chain, refusal := chain.WithSkill(name, len(linked))
	if refusal != nil {
		return nil, refusal
	}
	if s, ok := linked[name]; ok {
		return s, nil
	}
	found, refusal := library.FindSkill(name, lang)
	if refusal != nil {
		return nil, refusal
	}
	s, refusal := check(found, chain)
	if refusal != nil {
		return nil, InSkill(found, refusal)
	}
	linked[name] = s
	return s, nil
}
