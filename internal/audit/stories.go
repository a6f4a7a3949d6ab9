package audit

import (
	"fmt"

	"retort/internal/core"
)

// openExecutions tracks which executions of a chain have begun and not ended.
type openExecutions struct {
	whole bool // the chain is read from its first entry
	open  map[string]*executionState
}

// executionState tracks the calls of an execution that have no answer yet.
type executionState struct {
	partial bool           // it began in another chain, so answers may appear without their calls
	calls   map[string]int // number of calls without an answer, by tool
}

// applyRow processes the next row. If the row contradicts earlier ones, it returns a description of the
// contradiction, otherwise "".
func (s *openExecutions) applyRow(r *LogRow) string {
	if r.Execution == "" {
		return ""
	}
	kind, known := core.EventKind(r.Kind), s.open[r.Execution]
	switch {
	case kind == core.EventRequest && known != nil:
		return fmt.Sprintf("execution %s is requested a second time", r.Execution)
	case kind == core.EventRequest:
		if s.open == nil {
			s.open = map[string]*executionState{}
		}
		s.open[r.Execution] = &executionState{}
	case kind == core.EventEnd && known != nil:
		delete(s.open, r.Execution)
	case kind == core.EventEnd && s.whole:
		return fmt.Sprintf("the log has an end of execution %s, which had not started or had already ended", r.Execution)
	case known != nil:
		return known.applyRow(r)
	}
	return ""
}

// continueExecutions marks the given executions as open. They began in another chain and continue in this one.
func (s *openExecutions) continueExecutions(executions []string) {
	if s.open == nil {
		s.open = map[string]*executionState{}
	}
	for _, id := range executions {
		s.open[id] = &executionState{partial: true}
	}
}

func (s *executionState) applyRow(r *LogRow) string {
	tool := r.Server + "." + r.Tool
	switch core.EventKind(r.Kind) {
	case core.EventCall:
		if s.calls == nil {
			s.calls = map[string]int{}
		}
		s.calls[tool]++
	case core.EventAnswer:
		if s.calls[tool] == 0 && s.partial {
			return ""
		}
		if s.calls[tool] == 0 {
			return fmt.Sprintf("there is a result of %s in execution %s, but no call", tool, r.Execution)
		}
		s.calls[tool]--
	}
	return ""
}
