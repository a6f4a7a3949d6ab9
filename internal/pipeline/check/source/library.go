package source

import (
	"fmt"

	"retort/internal/core"
)

// SkillLibrary provides the source of skills. An execution asks for each skill once, so that the checked code is what
// runs.
type SkillLibrary interface {
	// FindSkill returns the skill of this name. The error says that it does not exist in that language, and what to do.
	FindSkill(name string, lang core.Language) (core.Skill, *core.Error)
}

// NoSkills implements Library without skills.
type NoSkills struct{}

// FindSkill returns an error: there are no skills.
func (NoSkills) FindSkill(name string, _ core.Language) (core.Skill, *core.Error) {
	return core.Skill{}, core.Errorf(
		core.KindType, "gate.skills", "there is no skill %q", name,
	).WithHint("list_skills lists them, save_skill saves one")
}

// SkillFunction describes an exported function of a skill, in the syntax of its language.
type SkillFunction struct {
	Name   string
	Params []FunctionParam
	Result string // its type as written; "" if it is not written
	Async  bool
	Doc    string
}

// FunctionParam describes a parameter of a Function.
type FunctionParam struct {
	Name     string
	Type     string // as written; "" if it is not written
	Schema   string // its JSON Schema, as far as the source shows it; {} if it does not
	Default  string // as written; "" if absent or unknown
	Optional bool
	Rest     bool
}

// ListExported describes which functions a skill has.
func ListExported(skill string, functions []SkillFunction) string {
	var names []string
	for _, f := range functions {
		names = append(names, f.Name)
	}
	return skill + " has " + OrList(names)
}

// maxSkills bounds how many skills one program imports, and maxChain how deep.
const (
	maxSkills = 64
	maxChain  = 16
)

// ImportChain lists the skills being followed. Each is imported by the one before.
type ImportChain []string

// WithSkill returns the chain with one more skill. It returns an error that names the cycle if the skill would close one.
func (c ImportChain) WithSkill(name string, seen int) (ImportChain, *core.Error) {
	for i, n := range c {
		if n == name {
			cycle := append(append(ImportChain{}, c[i:]...), name)
			e := core.Errorf(core.KindType, "gate.skills", "skills import each other in a circle: %s", cycle.String()).
				WithHint("move what they share into a skill of its own")
			e.Skill = name
			return nil, e
		}
	}
	if len(c) >= maxChain || seen >= maxSkills {
		return nil, core.Errorf(
			core.KindLimit, "gate.skills", "the program uses more skills than are followed (%d, %d deep)", maxSkills,
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

// InSkill converts an error in a skill to an error for the program that uses it.
func InSkill(s core.Skill, e *core.Error) *core.Error {
	if e.Skill != "" {
		return e
	}
	c := *e
	c.Skill = s.Name
	c.Message = "the skill " + s.Name + " cannot be used: " + s.FileName() + errorPlace(e) + ": " + e.Message
	if e.Kind != core.KindInternal && e.Kind != core.KindCancelled {
		c.Hint = "mend the skill (load_skill shows it, save_skill saves it again)"
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

// LinkSkill returns the checked skill of this name, checking it on first use. linked caches the results for all importers.
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
