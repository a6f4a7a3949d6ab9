package pipeline

import (
	"encoding/json"

	"retort/internal/pii/screen"
	"retort/internal/run"
)

// privacy is the screen of an execution, as the relay asks for it.
type privacy struct{ *screen.Session }

func (p privacy) Restore(server string, arguments json.RawMessage) (json.RawMessage, string, *run.Error) {
	restored, crossings, refused := p.Session.Restore(server, arguments)
	if refused != nil || len(crossings) == 0 {
		return restored, "", refused
	}
	return restored, screen.Rule(server, crossings), nil
}

// hide gives an execution its screen, and the program tokens for what it names itself.
func (x *execution) hide() (err error) {
	x.code = x.req.Code
	p := x.pipeline
	if p.Privacy == nil {
		return nil
	}
	if x.screen, err = p.Privacy.Session(p.Policy.Principal() + "\x00" + x.req.Session); err != nil {
		return err
	}
	if x.plan != nil {
		x.plan.mask = x.masked
	}
	x.code, err = x.screen.Program(x.req.Code)
	return err
}

// masked is JSON as the model may see it.
func (x *execution) masked(raw json.RawMessage) json.RawMessage {
	if x.screen == nil || len(raw) == 0 {
		return raw
	}
	out, err := x.screen.Outgoing(raw)
	if err != nil {
		return json.RawMessage(`"(hidden)"`)
	}
	return out
}

// hidden is an Outcome as the model may see it. The tokens in it are durable.
func (x *execution) hidden(o run.Outcome) run.Outcome {
	if x.screen == nil {
		return o
	}
	o.Result = x.masked(o.Result)
	o.Output = x.screen.Text(o.Output)
	for i := range o.Warnings {
		o.Warnings[i] = x.screen.Text(o.Warnings[i])
	}
	for i := range o.Artifacts {
		o.Artifacts[i].Preview = x.screen.Text(o.Artifacts[i].Preview)
	}
	if o.Error != nil {
		e := *o.Error
		for _, text := range []*string{&e.Message, &e.Hint, &e.Frame, &e.Stack} {
			*text = x.screen.Text(*text)
		}
		o.Error = &e
	}
	if err := x.screen.Sync(); err != nil {
		return run.Outcome{ExecutionID: o.ExecutionID, Status: run.StatusError, Error: run.AsError(err), Stats: o.Stats}
	}
	return o
}
