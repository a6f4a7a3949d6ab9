package engine

import (
	"context"
	"slices"
	"strings"

	"retort/internal/core"
	"retort/internal/skills/extract"
)

// RecordedProgram holds a program from the audit log, and the status of its execution.
type RecordedProgram struct {
	Code     string // with tokens such as [EMAIL_1] in place of personal values
	Language core.Language
	Status   Status
}

// SaveSkillFrom saves the program of a successful execution as a skill, and turns the literals in its code into
// parameters. A literal stays if the check of the skill would refuse a parameter in its place. SaveSkillFrom returns
// the Outcome of SaveSkill and the names of the parameters.
func (e *Engine) SaveSkillFrom(ctx context.Context, r Request, ran RecordedProgram, d SkillDraft) (o Outcome, lifted []string, err error) {
	if ran.Status != core.StatusOK {
		return o, nil, core.Errorf(
			core.KindInvalidArguments, "skills.from", "the execution did not succeed: %s", ran.Status,
		).WithHint("choose a successful execution")
	}
	if refused := core.ValidSkillName(d.Name); refused != nil {
		return o, nil, refused
	}
	var skip []string
	for {
		made, refused := extract.FromProgram(ran.Code, ran.Language, d.Name, skip)
		if refused != nil {
			return o, nil, refused
		}
		d.Code, d.Language = made.Code, ran.Language
		o, lifted = e.SaveSkill(ctx, r, d), nil
		for _, p := range made.Params {
			lifted = append(lifted, p.Name)
		}
		if o.Status != core.StatusRejected || o.Error == nil || o.Error.Kind != core.KindType && o.Error.Kind != core.KindSyntax ||
			len(lifted) == 0 {
			return o, lifted, nil
		}
		skip = append(skip, refusedParams(made, o.Error.Line)...)
	}
}

// refusedParams returns the parameters of a new skill that occur in the line in which the check found an error. If no
// parameter occurs there, it returns all parameters.
func refusedParams(made extract.ExtractedFunction, line int) (names []string) {
	lines := strings.Split(made.Code, "\n")
	for _, p := range made.Params {
		if line >= 1 && line <= len(lines) && slices.Contains(strings.FieldsFunc(lines[line-1], isNameBoundary), p.Name) &&
			!strings.Contains(lines[line-1], "function ") {
			names = append(names, p.Name)
		}
	}
	if len(names) > 0 {
		return names
	}
	for _, p := range made.Params {
		names = append(names, p.Name)
	}
	return names
}

// isNameBoundary reports whether r cannot be part of an identifier.
func isNameBoundary(r rune) bool {
	return r != '_' && r != '$' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
}
