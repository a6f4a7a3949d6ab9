package pipeline

import (
	"encoding/json"

	"retort/internal/run"
)

// asked records that a server asks the client in the midst of a call, before it does, and then
// what came of it. a has no personal data any more.
func (r *record) asked(a run.Asked) (came func(json.RawMessage, *run.Error), refused *run.Error) {
	about := r.event(run.EventAsked)
	about.Server, about.Tool = a.Server, a.Tool
	asks := about
	asks.Status, asks.Facts = "asked", map[string]any{"method": a.Method}
	asks.Body = bodyOf(asked{Arguments: r.json(a.Params)})
	if refused := r.add(asks, true); refused != nil {
		return nil, refused.At(a.Server, a.Tool)
	}
	return func(answer json.RawMessage, failed *run.Error) {
		about.Facts = map[string]any{"method": a.Method}
		var said struct {
			Action string `json:"action"`
			Model  string `json:"model"`
		}
		switch about.Status = "answered"; {
		case failed != nil:
			about.Status = string(failed.Kind)
		case json.Unmarshal(answer, &said) == nil && said.Action != "":
			about.Status = said.Action
		}
		_ = r.add(about, false)
	}, nil
}
