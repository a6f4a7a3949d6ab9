package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"retort/internal/core"
	"retort/internal/pipeline"
	"retort/internal/pipeline/check"
	"retort/internal/skills"
	"retort/internal/skills/extract"
)

// Aliases of the types of skills.
type (
	SkillDraft  = core.SkillDraft  // a skill to save
	SavedSkill  = core.SavedSkill  // the result of saving a skill
	SkillInfo   = core.SkillInfo   // a skill in a list
	LoadedSkill = core.LoadedSkill // a skill with its code
)

// SaveSkill saves a program's functions as a skill, so that other programs can use them. The functions must pass
// the check of programs. Code with a return outside of functions becomes the body of one function with the skill's
// name. The Outcome's result is a SavedSkill. Like that of Execute, the Outcome may be pending.
func (e *Engine) SaveSkill(ctx context.Context, r Request, d SkillDraft) Outcome {
	o := e.pipeline.SaveSkill(ctx, r, d)
	lang := pipeline.LanguageOf(Request{Language: d.Language, Code: d.Code})
	if o.Error != nil && errors.Is(o.Error, check.ErrNoFunctions) && extract.HasReturn(d.Code, lang) {
		d.Code, d.Language = extract.WrapBody(d.Code, lang, strings.ReplaceAll(d.Name, "_", "-")).Code, lang
		o = e.pipeline.SaveSkill(ctx, r, d)
	}
	return e.logOutcome("saved a skill", o)
}

// LoadSkill returns a skill with its code. version may be a prefix; if it is empty, LoadSkill returns the newest
// version.
func (e *Engine) LoadSkill(name, version string) (LoadedSkill, error) {
	return plainError(e.pipeline.LoadSkill(name, version, sessionName("")))
}

// ShowSkill is like LoadSkill, for a person: personal values replace the tokens that models see.
func (e *Engine) ShowSkill(name, version string) (LoadedSkill, error) {
	return plainError(e.pipeline.ShowSkill(name, version))
}

// ListSkills returns the skills that match a query and have all tags, best match first.
func (e *Engine) ListSkills(query string, tags []string) ([]SkillInfo, error) {
	return plainError(e.pipeline.ListSkills(query, tags, sessionName("")))
}

// plainError converts err to the type error. It returns nil for a nil *Error: an implicit conversion would make an
// error that is not nil.
func plainError[T any](v T, err *Error) (T, error) {
	if err != nil {
		return v, err
	}
	return v, nil
}

// RemoveSkill removes a skill with all its versions, and returns its description.
func (e *Engine) RemoveSkill(name string) (SkillInfo, error) {
	if refused := e.pipeline.RecordSkillChange(name, "remove"); refused != nil {
		return SkillInfo{}, refused
	}
	s, err := e.pipeline.Skills.RemoveSkill(name)
	if err != nil {
		return SkillInfo{}, err
	}
	return SkillInfo{
		Name: s.Name, Description: s.Description, Language: s.Language, Version: s.Version, Tags: s.Tags,
		Origin: string(s.Origin),
	}, nil
}

// ExportSkill writes a skill into dir as an Agent Skills folder of its name, and returns that folder. The name
// using-retort exports a skill that explains how to use Retort.
func (e *Engine) ExportSkill(name, dir string) (string, error) {
	if name == skills.GuideName {
		return plainError(skills.ExportGuide(dir))
	}
	s, err := e.pipeline.Skills.Get(name, "")
	if err != nil {
		return "", err
	}
	return plainError(skills.ExportSkill(s, dir))
}

// ImportSkill saves the contents of an Agent Skills folder as a skill, as SaveSkill does.
func (e *Engine) ImportSkill(ctx context.Context, r Request, dir string, forUser bool) Outcome {
	s, err := skills.ReadFolder(dir)
	if err != nil {
		return Outcome{Status: core.StatusRejected, Error: err}
	}
	return e.SaveSkill(
		ctx, r,
		SkillDraft{
			Name: s.Name, Code: s.Code, Description: s.Description, Language: s.Language, Tags: s.Tags,
			Triggers: s.Triggers, Instructions: skillInstructions(s), Document: s.Text, ForUser: forUser,
		},
	)
}

// skillInstructions returns the text of a skill that has no code, or "" if it has code.
func skillInstructions(s skills.Skill) string {
	if s.Language != "" {
		return ""
	}
	return s.Usage
}

// CallOfSkill returns a request for a program that calls one function of a skill. An empty function means the only
// function, or the one with the skill's name. values maps the names of parameters to JSON values.
func (e *Engine) CallOfSkill(ctx context.Context, name, function string, values map[string]json.RawMessage) (Request, error) {
	s, err := e.pipeline.Skills.Get(strings.ReplaceAll(name, "_", "-"), "")
	if err != nil {
		return Request{}, err
	}
	if s.Functions, err = e.pipeline.SkillFunctions(ctx, s); err != nil {
		return Request{}, err
	}
	f, err := findFunction(s, function)
	if err != nil {
		return Request{}, err
	}
	args, err := orderArguments(f, values)
	if err != nil {
		return Request{}, err
	}
	var code strings.Builder
	if s.Language == core.Python {
		fmt.Fprintf(
			&code, "import inspect, json\nfrom skills.%s import %s as f\n\nanswer = f(",
			core.SkillIdentifier(s.Name, core.Python), f.Name,
		)
		for _, a := range args {
			if a.value != nil {
				text, _ := json.Marshal(string(a.value)) // a string is always JSON, and its JSON is Python
				fmt.Fprintf(&code, "%s=json.loads(%s), ", a.name, text)
			}
		}
		code.WriteString(")\nresult = await answer if inspect.isawaitable(answer) else answer\n")
	} else {
		clause := "{ " + f.Name + " as f }"
		if f.Name == "default" {
			clause = "f"
		}
		fmt.Fprintf(&code, "import %s from './skills/%s';\nreturn await f(", clause, s.Name)
		for _, a := range args {
			fmt.Fprintf(&code, "%s, ", literalOrUndefined(a.value))
		}
		code.WriteString(");\n")
	}
	return Request{Language: s.Language, Code: code.String()}, nil
}

// literalOrUndefined returns a JSON value as a JavaScript expression; "undefined" for nil.
func literalOrUndefined(value json.RawMessage) string {
	if value == nil {
		return "undefined"
	}
	return string(value)
}

// findFunction returns the function of a skill called name; if name is empty, the only function or the one with the
// skill's name.
func findFunction(s skills.Skill, name string) (skills.SkillFunction, *Error) {
	var names []string
	for _, f := range s.Functions {
		names = append(names, f.Name)
	}
	wanted := name
	if wanted == "" && len(names) == 1 {
		wanted = names[0]
	}
	if wanted == "" {
		wanted = core.SkillIdentifier(s.Name, s.Language)
	}
	if i := slices.Index(names, wanted); i >= 0 {
		return s.Functions[i], nil
	}
	return skills.SkillFunction{}, core.Errorf(core.KindInvalidArguments, "skills.run", "the skill %s does not have the function %q", s.Name, wanted).
		WithHint("choose one of %s", strings.Join(names, ", "))
}

// skillArgument represents an argument of a skill's function.
type skillArgument struct {
	name  string
	value json.RawMessage // nil if the caller gives none
}

// orderArguments returns the arguments of a call, in the order of the parameters. It omits trailing parameters without
// a value.
func orderArguments(f skills.SkillFunction, values map[string]json.RawMessage) ([]skillArgument, *Error) {
	params := skills.ParamNames(f)
	for name := range values {
		if !slices.Contains(params, name) {
			return nil, core.Errorf(
				core.KindInvalidArguments, "skills.run", "%s has no parameter %q", f.Name, name,
			).WithHint("it has %s", strings.Join(params, ", "))
		}
	}
	if f.Whole {
		whole, err := json.Marshal(values)
		if err != nil {
			return nil, core.Errorf(core.KindInvalidArguments, "skills.run", "%w", err)
		}
		return []skillArgument{{"", whole}}, nil
	}
	var args []skillArgument
	last := 0
	for i, name := range params {
		args = append(args, skillArgument{name, values[name]})
		if values[name] != nil {
			last = i + 1
		}
	}
	return args[:last], nil
}
