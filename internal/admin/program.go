package admin

import (
	"context"
	"encoding/json"

	"retort/internal/core"
	"retort/internal/engine"
)

// FindProgram returns the program of an execution from the audit log.
func FindProgram(ctx context.Context, c engine.Config, execution string) (engine.RecordedProgram, error) {
	page, err := QueryExecution(ctx, c, execution)
	if err != nil {
		return engine.RecordedProgram{}, err
	}
	var r engine.RecordedProgram
	for _, e := range page.Entries {
		switch e.Kind {
		case core.EventRequest:
			var body struct{ Code string }
			var facts struct{ Language core.Language }
			_ = json.Unmarshal(e.Body, &body) // without it there is no code, which is said
			_ = json.Unmarshal(e.Facts, &facts)
			r.Code, r.Language = body.Code, facts.Language
		case core.EventEnd:
			r.Status = core.OutcomeStatus(e.Status)
		}
	}
	if r.Code == "" {
		return r, core.Errorf(core.KindInvalidArguments, "skills.from", "the audit log does not contain a program for the execution %q", execution).
			WithHint("it was a single call, or its program was erased; with auditLogging: false, no program is recorded")
	}
	return r, nil
}
