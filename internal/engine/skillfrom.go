package engine

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"retort/internal/core"
	"retort/internal/skills/extract"
)

// Ran is a program from the audit log, and how it ended.
type Ran struct {
	Code     string // with tokens for what is personal
	Language core.Language
	Status   Status
}

// ProgramOf returns the program of an execution from the audit log.
func ProgramOf(ctx context.Context, c Config, execution string) (Ran, error) {
	page, err := RecordedExecution(ctx, c, execution)
	if err != nil {
		return Ran{}, err
	}
	var r Ran
	for _, e := range page.Entries {
		switch e.Kind {
		case core.EventRequest:
			var body struct{ Code string }
			var facts struct{ Language core.Language }
			_ = json.Unmarshal(e.Body, &body) // without it there is no code, which is said
			_ = json.Unmarshal(e.Facts, &facts)
			r.Code, r.Language = body.Code, facts.Language
		case core.EventEnd:
			r.Status = Status(e.Status)
		}
	}
	if r.Code == "" {
		return r, core.Errorf(core.KindInvalidArguments, "skills.from", "the audit log has no program for the execution %q", execution).
			WithHint("it was a single call, or its program has been erased; with auditLogging: false no program is recorded")
	}
	return r, nil
}

// SaveSkillFrom saves the program of a successful execution as a skill, and turns its literals into parameters. A
// literal stays if the check would refuse it as a parameter. The Outcome is that of SaveSkill. lifted has the names
// of the parameters.
func (e *Engine) SaveSkillFrom(ctx context.Context, r Request, ran Ran, d SkillDraft) (o Outcome, lifted []string, err error) {
	if ran.Status != core.StatusOK {
		return o, nil, core.Errorf(
			core.KindInvalidArguments, "skills.from", "the execution has not succeeded: %s", ran.Status,
		).WithHint("choose an execution that succeeded")
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
