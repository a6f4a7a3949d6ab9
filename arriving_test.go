package retort_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"retort"
	"retort/internal/run"
)

// A tool that a program names in a text may be one of a server that is still starting. The server
// here starts only once the program runs.
func TestComputedNameWaitsForServers(t *testing.T) {
	running := make(chan struct{})
	ready := &party{tools: func() string { return definitionOf("Notes.", readsOnly) }, answer: func(string, json.RawMessage) string { close(running); return textResult("ready") }}
	late := &party{tools: ready.tools, answer: func(string, json.RawMessage) string { return textResult("late") }}
	dial := func(ctx context.Context) (io.ReadWriteCloser, error) {
		select {
		case <-running:
			return late.dial(ctx)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	e, err := retort.Open(t.Context(), retort.Config{NoFiles: true, Reserve: retort.ReserveNone, Home: t.TempDir(), Servers: []retort.Server{{Name: "ready", Dial: ready.dial}, {Name: "late", Dial: dial}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.Settle(t.Context(), "ready")
	o := e.Execute(t.Context(), retort.Request{Code: `await ready.note(); return await callMCPTool(['late', 'note'].join('__'), {}) + ' ' + await callMCPTool(['late', 'note'].join('.'), {})`})
	if o.Status != run.StatusOK || string(o.Result) != `"late late"` || o.Stats.ToolCalls != 3 || o.Stats.Tools["late.note"] != 2 {
		t.Errorf("%s %s %+v %+v", o.Status, o.Result, o.Error, o.Stats)
	}
}

// A tool of a server that is configured and down is not simply unknown.
func TestToolOfServerThatIsDown(t *testing.T) {
	down := func(context.Context) (io.ReadWriteCloser, error) { return nil, errors.New("the disk is on fire") }
	e := openOne(t, "", down)
	for _, code := range []string{`return await callMCPTool(['eye', 'note'].join('__'), {})`, `return await callMCPTool('eye__note', {})`} {
		o := e.Execute(t.Context(), retort.Request{Code: code})
		if o.Error == nil || o.Error.Kind != run.KindToolNotFound || !strings.Contains(o.Error.Message, "the server eye is configured, but its tools are not known") || !strings.Contains(o.Error.Message, "the disk is on fire") {
			t.Errorf("%s: %s %+v", code, o.Status, o.Error)
		}
	}
	o := e.Call(t.Context(), retort.Request{}, "eye.note", nil)
	if o.Error == nil || !strings.Contains(o.Error.Message, "the disk is on fire") {
		t.Errorf("%+v", o.Error)
	}
	if o := e.Call(t.Context(), retort.Request{}, "eyes.note", nil); o.Error == nil || strings.Contains(o.Error.Message, "configured") {
		t.Errorf("%+v", o.Error)
	}
}
