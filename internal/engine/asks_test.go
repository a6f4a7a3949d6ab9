package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"retort/internal/core"
	"retort/internal/engine"
)

// askedTools lists tools with their definitions, and the arguments of calls of each.
var askedTools = []struct {
	name, definition string
	calls            []string
}{
	{"list_rows", `{}`, []string{`{}`}},
	{"update_row", `{}`, []string{`{}`, `{"text":"delete it"}`}},
	{"post_message", `{"text":{"type":"string"}}`, []string{`{}`, `{"text":"refund it"}`}},
	{"send_mail", `{}`, []string{`{}`}},
	{"delete_row", `{}`, []string{`{}`}},
	{"run_job", `{}`, []string{`{}`}},
	{"refund_payment", `{}`, []string{`{}`}},
	{"post_invoice_message", `{"amount":{"type":"number"}}`, []string{`{}`, `{"amount":1}`}},
	{"execute_sql", `{"sql":{"type":"string"}}`, []string{`{"sql":"SELECT 1"}`, `{"sql":"DELETE FROM t"}`}},
	{"query_database", `{"sql":{"type":"string"}}`, []string{`{"sql":"SELECT 1"}`, `{"sql":"DELETE FROM t"}`}},
	{"manage_rows", `{"action":{"type":"string","enum":["list","delete"]}}`, []string{`{"action":"list"}`, `{"action":"delete"}`}},
}

// TestAsksMarks checks that the definition of a tool carries @asks if each call of it asks, "@asks sometimes" if some
// calls ask, and nothing if none asks, in both languages and with different settings and users.
func TestAsksMarks(t *testing.T) {
	var listed []string
	for _, tool := range askedTools {
		listed = append(listed, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object","properties":%s}}`, tool.name, tool.definition))
	}
	p := &scriptedServer{
		tools:  func() string { return strings.Join(listed, ",") },
		answer: func(string, json.RawMessage) string { return `{"content":[]}` },
	}
	for _, settings := range []string{
		"", "permissionLevel: execute_full", "{permissionLevel: execute_full, approval: {autoApproveHigh: true}}",
		"approval: {autoApproveMedium: false}",
		"approval: {irreversible: {send_inside: approve}}",
		"approval: {autoApproveMedium: false, irreversible: {send_inside: approve}}",
		"approval: {irreversible: {deletion: approve, other: approve, money: ask}}",
		"{permissionLevel: execute_full, approval: {autoApproveHigh: true, irreversible: {money: ask, deletion: ask}}}",
		"servers: {tracker: {effects: {'*_row*': money, execute_sql: deletion, post_message: read}}}",
		"{permissionLevel: execute_full, approval: {autoApproveHigh: true}, principals: {ada: {permissionLevel: write_restricted}}}",
		"{approval: {irreversible: {send_inside: approve}}, principals: {ada: {permissionLevel: write_restricted}}}",
	} {
		e := openTracker(t, t.TempDir(), settings, p)
		for _, principal := range []string{"", "ada"} {
			compareMarks(t, e.As(principal), settings+" for "+principal)
		}
	}
}

func compareMarks(t *testing.T, e *engine.Engine, settings string) {
	for _, tool := range askedTools {
		asking := 0
		for _, arguments := range tool.calls {
			var asked atomic.Int64
			ctx := core.WithChannel(t.Context(), fixedAnswer(core.ApprovalAnswer{Approve: true}, &asked))
			o := e.Call(ctx, engine.Request{}, "tracker."+tool.name, json.RawMessage(arguments))
			if o.Status != core.StatusOK || asked.Load() > 1 {
				t.Errorf("%s: %s(%s): %s, %v, asked %d times", settings, tool.name, arguments, o.Status, o.Error, asked.Load())
			}
			asking += int(asked.Load())
		}
		want := "@asks sometimes"
		switch asking {
		case 0:
			want = ""
		case len(tool.calls):
			want = "@asks"
		}
		for _, lang := range []core.Language{core.TypeScript, core.Python} {
			d, err := e.Describe(t.Context(), []string{"tracker." + tool.name}, lang)
			if err != nil {
				t.Fatal(err)
			}
			if got := markIn(d[0].Definition); got != want {
				t.Errorf("%s: %s in %s has the mark %q, and %d of %d calls ask\n%s", settings, tool.name, lang, got, asking, len(tool.calls), d[0].Definition)
			}
		}
	}
}

// markIn returns the mark in a definition.
func markIn(definition string) string {
	for _, mark := range []string{"@asks sometimes", "@asks"} {
		if strings.Contains(definition, mark) {
			return mark
		}
	}
	return ""
}

// TestReloadOfGrades checks that a changed rule for a grade, and a changed statement about a tool, take effect without
// a restart.
func TestReloadOfGrades(t *testing.T) {
	const stated = "servers: {eye: {effects: {add_note: send_inside}}}\n"
	for _, c := range []struct {
		before, after string
		asks          int64
	}{
		{"", stated, 1}, {stated, "enabled: true", 0}, // an empty file would change nothing
		{stated, stated + "approval: {irreversible: {send_inside: approve}}", 0},
		{stated + "approval: {irreversible: {send_inside: approve}}", stated + "approval: {irreversible: {send_inside: ask}}", 1},
	} {
		r := reloadable(t, c.before)
		r.WaitForServers(t.Context())
		r.writeSettings(c.after)
		var asked atomic.Int64
		ctx := core.WithChannel(t.Context(), fixedAnswer(core.ApprovalAnswer{Approve: true}, &asked))
		if o := r.Call(ctx, engine.Request{}, "eye.add_note", json.RawMessage(`{}`)); o.Status != core.StatusOK || asked.Load() != c.asks {
			t.Errorf("%q, then %q: %s, %v, asked %d times", c.before, c.after, o.Status, o.Error, asked.Load())
		}
	}
}
