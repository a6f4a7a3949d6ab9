package source

import (
	"fmt"

	"retort/internal/core"
)

// Library provides the source of skills. An execution asks for each skill once, so that the checked code is what
// runs.
type Library interface {
	// Skill returns the skill of this name. The error says that there is none in that language, and what to do.
	Skill(name string, lang core.Language) (core.Skill, *core.Error)
}

// NoSkills implements Library without skills.
type NoSkills struct{}

// Skill returns an error: there are no skills.
func (NoSkills) Skill(name string, _ core.Language) (core.Skill, *core.Error) {
	return core.Skill{}, core.Errorf(core.KindType, "gate.skills", "there is no skill %q", name).WithHint("list_skills lists them, save_skill saves one")
}

// Function describes an exported function of a skill, in the syntax of its language.
type Function struct {
	Name   string
	Params []Param
	Result string // its type as written; "" if it is not written
	Async  bool
	Doc    string
}

// Param describes a parameter of a Function.
type Param struct {
	Name     string
	Type     string // as written; "" if it is not written
	Schema   string // its JSON Schema, as far as the source shows it; {} if it does not
	Default  string // as written; "" if there is none or it is unknown
	Optional bool
	Rest     bool
}

// Exported describes which functions a skill has.
func Exported(skill string, functions []Function) string {
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

// Chain lists the skills being followed. Each is imported by the one before.
type Chain []string

// With returns the chain with one more skill. It returns an error that names the cycle if the skill would close one.
func (c Chain) With(name string, seen int) (Chain, *core.Error) {
	for i, n := range c {
		if n == name {
			cycle := append(append(Chain{}, c[i:]...), name)
			e := core.Errorf(core.KindType, "gate.skills", "skills import each other in a circle: %s", cycle.String()).
				WithHint("move what they share into a skill of its own")
			e.Skill = name
			return nil, e
		}
	}
	if len(c) >= maxChain || seen >= maxSkills {
		return nil, core.Errorf(core.KindLimit, "gate.skills", "the program uses more skills than are followed (%d, %d deep)", maxSkills, maxChain)
	}
	return append(append(Chain{}, c...), name), nil
}

func (c Chain) String() string {
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
	c.Message = "the skill " + s.Name + " cannot be used: " + s.File() + at(e) + ": " + e.Message
	if e.Kind != core.KindInternal && e.Kind != core.KindCancelled {
		c.Hint = "mend the skill (load_skill shows it, save_skill saves it again)"
		if e.Hint != "" {
			c.Hint = e.Hint + "; " + c.Hint
		}
	}
	c.Line, c.Column = 0, 0
	return &c
}

func at(e *core.Error) string {
	if e.Line == 0 {
		return ""
	}
	return fmt.Sprintf(":%d:%d", e.Line, e.Column)
}

// Link returns the checked skill of this name, checking it on first use. linked caches the results for all importers.
func Link[S any](linked map[string]*S, library Library, name string, lang core.Language, chain Chain, check func(core.Skill, Chain) (*S, *core.Error)) (*S, *core.Error) {
	chain, refusal := chain.With(name, len(linked))
	if refusal != nil {
		return nil, refusal
	}
	if s, ok := linked[name]; ok {
		return s, nil
	}
	found, refusal := library.Skill(name, lang)
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
