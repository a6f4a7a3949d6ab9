package engine_test

import (
	"context"
	"encoding/json"
	"os/user"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"retort/internal/admin"
	"retort/internal/core"
	"retort/internal/engine"
)

// collectQuestions executes a program with an approval channel that denies everything, and returns the questions. It
// fails the test if none is found.
func collectQuestions(t *testing.T, e *engine.Engine, code string) []core.Approval {
	t.Helper()
	var all []core.Approval
	o := e.Execute(core.WithChannel(t.Context(), func(_ context.Context, a core.Approval) (core.ApprovalAnswer, bool) {
		all = append(all, a)
		return core.ApprovalAnswer{}, true
	}), engine.Request{Code: code})
	if len(all) == 0 {
		t.Fatalf("%s: nobody was asked: %s %+v", code, o.Status, o.Error)
	}
	return all
}

// TestQuestionImpact checks that a question lists the tools, servers and other things that a program or a call may
// touch.
func TestQuestionImpact(t *testing.T) {
	e, _ := openJudged(t, "approval: {autoApproveLow: false}\ncommands: [{command: ls, args: [\"*\"]}]")
	for _, c := range []struct {
		code string
		want core.Impact
	}{
		{`return 1`, core.Impact{Reversible: true}},
		{`import fs from 'fs/promises'; await fs.writeFile('out.csv', 'x'); await fs.copyFile('a', 'b.csv'); await fs.writeFile(String(Math.random()), 'x')`,
			core.Impact{FilesAffected: []string{"out.csv", "b.csv", "(a name that the program computes)"}, DataModified: true, Reversible: true}},
		{`import fs from 'fs/promises'; await fs.rm('out.csv')`, core.Impact{FilesAffected: []string{"out.csv"}, DataModified: true}},
		{`await fetch('https://API.openai.com/v1/x')`, core.Impact{NetworksAccessed: []string{"api.openai.com"}, Reversible: true}},
		{`const u = ['https:', '', 'x'].join('/'); await fetch(u)`, core.Impact{NetworksAccessed: []string{"(a name that the program computes)"}, Reversible: true}},
		{`await exec('ls', ['-la'])`, core.Impact{CommandsExecuted: []string{"ls -la"}, DataModified: true}},
		{`return files.listDirectory({path: '/srv/nordlys'})`, core.Impact{Reversible: true}},
		{`await files.writeFile({path: '/srv/nordlys/x', content: 'see https://example.org/a'})`, core.Impact{NetworksAccessed: []string{"example.org"}, DataModified: true}},
	} {
		q := collectQuestions(t, e, c.code)[0]
		if got, want := text(t, q.Impact), text(t, c.want.ForQuestion()); got != want {
			t.Errorf("%s:\n%s, want\n%s", c.code, got, want)
		}
		if shown := q.RenderText(); !strings.Contains(shown, "impact, as far as") || !strings.Contains(shown, "  reversible: "+map[bool]string{true: "yes", false: "no"}[c.want.Reversible]) {
			t.Errorf("a person is shown\n%s", shown)
		}
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestCallImpact checks that the question about a call lists what its arguments touch, with real values for the
// person and tokens for a model.
func TestCallImpact(t *testing.T) {
	e, _ := openJudged(t, "")
	q := collectQuestions(t, e, `await files.writeFile({path: '/srv/nordlys/bob.jones@example.org', content: 'at https://example.org/a'})`)[0]
	if !q.IsCall() || text(t, q.Impact) != `{"filesAffected":["/srv/nordlys/bob.jones@example.org"],"networksAccessed":["example.org"],"commandsExecuted":[],"dataModified":true,"reversible":false}` {
		t.Errorf("%s", text(t, q.Impact))
	}
	if m := q.ForModel(); strings.Contains(text(t, m.Impact), "bob.jones") || !strings.Contains(text(t, m.Impact), "[EMAIL_1]") {
		t.Errorf("a model sees %s", text(t, m))
	}
}

// TestCriticalCallsAreAsked checks that a person is asked about every critical call, whatever the settings or earlier
// approvals allow.
func TestCriticalCallsAreAsked(t *testing.T) {
	shell := &scriptedServer{answer: func(string, json.RawMessage) string { return `{"content":[{"type":"text","text":"ok"}]}` }, tools: func() string {
		return `{"name":"run_command","inputSchema":{"type":"object","properties":{"command":{},"note":{"type":"string"}}}}`
	}}
	c := engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: t.TempDir(), Limits: unlimitedTime, Settings: "approval: {autoApproveHigh: true}\npermissionLevel: execute_full",
		Servers: []engine.Server{{Name: "host", Dial: shell.dial}}}
	e, err := engine.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	e.WaitForServers(t.Context())
	var n atomic.Int64
	yes := core.WithChannel(t.Context(), fixedAnswer(core.ApprovalAnswer{Approve: true, Scope: core.ScopeAlways}, &n))
	for i, c := range []struct {
		arguments string
		asked     int64
	}{
		{`{"command":"ls"}`, 0}, {`{"note":"remove a file with rm"}`, 0}, {`{"command":"rm -rf /"}`, 1}, {`{"command":"rm -rf /"}`, 2}, {`{"command":["sudo","id"]}`, 3}, {`{"command":"ls -l"}`, 3},
	} {
		if o := e.Call(yes, engine.Request{}, "host.run_command", json.RawMessage(c.arguments)); !o.Success() || n.Load() != c.asked {
			t.Errorf("%d: %s: %s, asked %d times, want %d: %+v", i, c.arguments, o.Status, n.Load(), c.asked, o.Error)
		}
	}
	o := e.Execute(yes, engine.Request{Code: `for (let i = 0; i < 2; i++) await host.runCommand({ command: [Object.keys({ rm: 1 })[0], '-rf', '/'] })`})
	if !o.Success() || n.Load() < 5 {
		t.Errorf("%s, asked %d times: %+v", o.Status, n.Load(), o.Error)
	}
}

// TestRecordTellsWho checks that the audit log has an execution's principal and client, the model that the client
// names, the result, and what the settings approved. It also checks that erasing covers the result as well as the
// request.
func TestRecordTellsWho(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	home := t.TempDir()
	e, _ := judgedAt(t, home, "approval: {autoApproveHigh: true}\npermissionLevel: execute_full")
	o := e.Execute(t.Context(), engine.Request{Session: "s", Model: "m-1", ModelVersion: "2026-01", Code: deletes + ` `})
	big := e.Execute(t.Context(), engine.Request{Session: "s", Code: `console.log('to ann.smith' + '@' + 'example.org'); return 'pear'`})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	c := engine.Config{NoFiles: true, Home: home}
	page, err := admin.QueryAudit(t.Context(), c, admin.AuditQuery{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, entry := range page.Entries {
		facts, body := string(entry.Facts), string(entry.Body)
		switch entry.Kind {
		case core.EventRequest, core.EventEnd, core.EventStart:
			seen["user"] = seen["user"] || entry.UserID == me.Username
			if entry.UserID != me.Username {
				t.Errorf("%s of %q", entry.Kind, entry.UserID)
			}
		}
		switch {
		case entry.Execution == o.ExecutionID && entry.Kind == core.EventRequest:
			seen["model"] = strings.Contains(facts, `"model":"m-1"`) && strings.Contains(facts, `"model_version":"2026-01"`)
		case entry.Execution == o.ExecutionID && entry.Kind == core.EventDecision:
			seen["automatic"] = entry.Status == "automatic" && strings.Contains(facts, `"level":"high"`)
		case entry.Execution == o.ExecutionID && entry.Kind == core.EventCall:
			seen["call"] = strings.Contains(facts, `"approval":"automatic"`)
		case entry.Execution == o.ExecutionID && entry.Kind == core.EventEnd:
			seen["result"] = strings.Contains(body, `"result":"written"`)
		case entry.Execution == big.ExecutionID && entry.Kind == core.EventEnd:
			seen["output"] = strings.Contains(body, `to [EMAIL_1]`) && strings.Contains(body, `"pear"`) && !strings.Contains(body, "ann.smith")
		}
	}
	for _, what := range []string{"user", "model", "automatic", "call", "result", "output"} {
		if !seen[what] {
			t.Errorf("the audit log lacks: %s\n%s", what, text(t, page.Entries))
		}
	}
	r, err := admin.ReportAudit(t.Context(), c, "summary", admin.ReportPeriod{From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	a := r.Activity
	automatic := false
	for _, x := range a.Actions.List {
		automatic = automatic || x.Execution == o.ExecutionID && x.Approval == "automatic" && x.Tool == "files.write_file"
	}
	if a.Average == nil || *a.Average <= 0 || a.Returned == 0 || a.Actions.Total == 0 || !automatic || a.Approvals.Automatic != 2 || len(a.Approvals.Outcomes) != 0 {
		t.Errorf("%+v", a)
	}
	if _, err := admin.Erase(c, admin.EraseRequest{Session: "s"}); err != nil {
		t.Fatal(err)
	}
	page, err = admin.QueryAudit(t.Context(), c, admin.AuditQuery{Limit: 1000})
	if err != nil || strings.Contains(text(t, page.Entries), "pear") {
		t.Errorf("what came back is still there: %v", err)
	}
}
