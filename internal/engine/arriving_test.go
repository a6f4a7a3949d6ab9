package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/engine"
)

// TestComputedNameWaitsForServers checks that a program that computes a tool's name waits for servers that are still
// starting. The server of this test starts only once the program runs.
func TestComputedNameWaitsForServers(t *testing.T) {
	running := make(chan struct{})
	ready := &scriptedServer{tools: func() string { return definitionOf("Notes.", readsOnly) }, answer: func(string, json.RawMessage) string { close(running); return textResult("ready") }}
	late := &scriptedServer{tools: ready.tools, answer: func(string, json.RawMessage) string { return textResult("late") }}
	dial := func(ctx context.Context) (io.ReadWriteCloser, error) {
		select {
		case <-running:
			return late.dial(ctx)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	e, err := engine.Open(t.Context(), engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: t.TempDir(), Servers: []engine.Server{{Name: "ready", Dial: ready.dial}, {Name: "late", Dial: dial}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.WaitForServers(t.Context(), "ready")
	o := e.Execute(t.Context(), engine.Request{Code: `await ready.note(); return await callMCPTool(['late', 'note'].join('__'), {}) + ' ' + await callMCPTool(['late', 'note'].join('.'), {})`})
	if o.Status != core.StatusOK || string(o.Result) != `"late late"` || o.Stats.ToolCalls != 3 || o.Stats.Tools["late.note"] != 2 {
		t.Errorf("%s %s %+v %+v", o.Status, o.Result, o.Error, o.Stats)
	}
}

// TestNameWaitsForServers checks that a program waits for the server of a tool that its code names. The server of
// this test starts only once the program was submitted.
func TestNameWaitsForServers(t *testing.T) {
	for code, language := range map[string]core.Language{`return await late.note()`: "typescript", `import {note} from './servers/late'; return await note()`: "typescript", `late.note()`: "python"} {
		come := make(chan struct{})
		late := &scriptedServer{tools: func() string { return definitionOf("Notes.", readsOnly) }, answer: func(string, json.RawMessage) string { return textResult("late") }}
		dial := func(ctx context.Context) (io.ReadWriteCloser, error) {
			select {
			case <-come:
				return late.dial(ctx)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		e, err := engine.Open(t.Context(), engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: t.TempDir(), Servers: []engine.Server{{Name: "late", Dial: dial}}})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		ended := make(chan engine.Outcome, 1)
		go func() { ended <- e.Execute(t.Context(), engine.Request{Code: code, Language: language}) }()
		testenv.WaitUntil(t, "the program has come", func() bool { return e.CountRunning() == 1 })
		close(come)
		if o := <-ended; o.Status != core.StatusOK || string(o.Result) != `"late"` {
			t.Errorf("%s: %s %s %+v", code, o.Status, o.Result, o.Error)
		}
	}
}

// TestToolOfServerThatIsDown checks that the error for a tool of a configured server that is down says that the
// server is down, and not that the tool is unknown.
func TestToolOfServerThatIsDown(t *testing.T) {
	down := func(context.Context) (io.ReadWriteCloser, error) { return nil, errors.New("the disk is on fire") }
	e := openOne(t, "", down)
	for code, language := range map[string]core.Language{
		`return await callMCPTool(['eye', 'note'].join('__'), {})`: "", `return await callMCPTool('eye__note', {})`: "",
		`return await eye.note({})`: "", `const {note} = eye; return 1`: "", `return {eye}`: "", `return nothing.x + eye.note()`: "", `return eye.note()`: "javascript",
		`import {note} from './servers/eye'; return await note({})`: "",
		`eye.note()`: "python", `x = [eye]`: "python", `from servers import eye`: "python", "nothing\neye.note()": "python",
	} {
		o := e.Execute(t.Context(), engine.Request{Code: code, Language: language})
		if o.Error == nil || o.Error.Kind != core.KindToolNotFound || !strings.Contains(o.Error.Message, "the server eye is configured, but its tools could not be listed") || !strings.Contains(o.Error.Message, "the disk is on fire") {
			t.Errorf("%s: %s %+v", code, o.Status, o.Error)
		}
	}
	for code, language := range map[string]core.Language{`return await eyes.note({})`: "", `return eye_note`: "", `return nothing`: "", `eyes.note()`: "python"} {
		if o := e.Execute(t.Context(), engine.Request{Code: code, Language: language}); o.Error == nil || o.Error.Kind != core.KindType || strings.Contains(o.Error.Message, "configured") {
			t.Errorf("%s: %s %+v", code, o.Status, o.Error)
		}
	}
	o := e.Call(t.Context(), engine.Request{}, "eye.note", nil)
	if o.Error == nil || !strings.Contains(o.Error.Message, "the disk is on fire") {
		t.Errorf("%+v", o.Error)
	}
	if o := e.Call(t.Context(), engine.Request{}, "eyes.note", nil); o.Error == nil || strings.Contains(o.Error.Message, "configured") {
		t.Errorf("%+v", o.Error)
	}
}
