package engine

import (
	"context"
	"slices"
	"strings"

	"retort/internal/core"
	"retort/internal/skills/extract"
)

// RecordedProgram represents a program from the audit log, and how it ended.
type RecordedProgram struct {
	Code     string // with tokens for what is personal
	Language core.Language
	Status   Status
}

// SaveSkillFrom saves the program of a successful execution as a skill, and turns its literals into parameters. A
// literal stays if the check would refuse it as a parameter. The Outcome is that of SaveSkill. lifted has the names
// of the parameters.
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
		skip = append(skip, wrongly(made, o.Error.Line)...)
	}
}

// wrongly returns the parameters that occur in a line that the check refused; if none do, all parameters.
func wrongly(made extract.ExtractedFunction, line int) (names []string) {
	lines := strings.Split(made.Code, "\n")
	for _, p := range made.Params {
		if line >= 1 && line <= len(lines) && slices.Contains(strings.FieldsFunc(lines[line-1], notInName), p.Name) &&
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

func notInName(r rune) bool {
	return r != '_' && r != '$' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
}
