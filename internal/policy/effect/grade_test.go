package effect

import (
	"testing"

	"retort/internal/core"
)

const (
	money, deletion, other       = core.GradeMoney, core.GradeDeletion, core.GradeOther
	sendOutside, sendInside, non = core.GradeSendOutside, core.GradeSendInside, core.GradeNone
)

// TestGrades checks the grades of tools by their names, descriptions and arguments.
func TestGrades(t *testing.T) {
	for _, c := range []struct {
		server, name, description, schema string
		want                              core.EffectGrade
	}{
		{name: "post_message", want: sendInside},
		{name: "post_message", description: "Posts a message to a channel.", want: sendInside},
		{name: "post_message", description: "Posts a message. This cannot be undone.", want: sendInside},
		{name: "slack_post_message", want: sendInside},
		{name: "slack_reply_to_thread", want: sendInside},
		{name: "chat_postMessage", want: sendInside},
		{name: "post_comment", want: sendInside},
		{name: "send_channel_message", want: sendInside},
		{name: "notify_channel", want: sendInside},
		{name: "reply_to_ticket", want: sendInside},
		{name: "send_message", want: sendOutside},
		{name: "message_user", want: sendOutside},
		{name: "post_update", want: sendOutside},
		{name: "create_post", want: sendOutside},
		{name: "reply_to_email", want: sendOutside},
		{name: "telegram_post_message", want: sendOutside},
		{name: "post_customer_message", want: sendOutside},
		{name: "send_email", want: sendOutside},
		{name: "publish_page", want: sendOutside},
		{name: "share_file", want: sendOutside},
		{server: "gmail", name: "reply_to_thread", want: sendOutside},
		{name: "post_message", schema: `{"properties": {"text": {}, "recipient_email": {}}}`, want: sendOutside},
		{name: "post_message", schema: `{"properties": {"text": {}, "amount": {}}}`, want: money},
		{name: "post_message", description: "Posts a message and refunds the customer.", want: money},
		{name: "post_message", description: "Posts a message to a channel. Then deletes the thread.", want: deletion},
		{name: "post_message", description: "Permanently deletes the channel and posts a message.", want: deletion},
		{name: "refund_payment", description: "Posts an internal note in the ticket.", want: money},
		{name: "refund_payment", description: "Posts a message to a channel.", want: money},
		{name: "delete_thread_message", description: "Posts a message.", want: deletion},
		{name: "refund", want: money}, {name: "create_order", want: money}, {name: "book_flight", want: money},
		{name: "transferFunds", want: money}, {name: "zahlen", want: money}, {name: "支付", want: money},
		{name: "r3fund", want: money}, {name: "rеfund", want: money},
		{name: "delete_file", want: deletion}, {name: "delte_user", want: deletion}, {name: "rotate_key", want: deletion},
		{name: "disable_user", want: deletion}, {name: "revoke_token", want: deletion}, {name: "删除", want: deletion},
		{name: "force_push", want: deletion},
		{name: "get_d_e_l_e_t_e", want: deletion}, {name: "deleteuser", want: deletion}, {name: "dlt_row", want: deletion},
		{name: "tear_down_stack", want: deletion}, {name: "cash_out", want: money}, {name: "power_off_server", want: other},
		{name: "execute_command", want: other}, {name: "deploy", want: other}, {name: "run_workflow", want: other},
		{name: "apply_plan", want: other},
		{name: "billing", description: "Pays an invoice.", want: money},
		{name: "contacts", description: "Deletes a contact.", want: deletion},
		{name: "helper", description: "Posts a message to a channel.", want: sendOutside},
		{name: "get_row", want: non}, {name: "update_row", want: non},
	} {
		tool := core.Tool{Server: c.server, Name: c.name, Description: c.description, InputSchema: []byte(c.schema)}
		if e := OfTool(&tool, false); e.Grade != c.want || (e.Kind == irreversible) != (c.want != non) {
			t.Errorf("%s (%s): %s, %s; want %s", c.name, c.description, e.Kind, e.Grade, c.want)
		}
	}
}

// TestGradesOfAnnotations checks that annotations cannot lower a grade, and that an effect which only an annotation
// states gets no mild grade.
func TestGradesOfAnnotations(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		name  string
		hints core.ToolAnnotations
		trust bool
		want  core.EffectGrade
	}{
		{"refund_payment", core.ToolAnnotations{ReadOnly: &yes}, false, money},
		{"refund_payment", core.ToolAnnotations{Destructive: &no, OpenWorld: &no}, false, money},
		{"refund_payment", core.ToolAnnotations{Destructive: &yes}, true, money},
		{"refund_payment", core.ToolAnnotations{ReadOnly: &yes}, true, non},
		{"post_message", core.ToolAnnotations{Destructive: &no}, false, sendInside},
		{"update_row", core.ToolAnnotations{Destructive: &yes}, false, other},
		{"update_payment_row", core.ToolAnnotations{Destructive: &yes}, false, money},
	} {
		if e := OfTool(&core.Tool{Name: c.name, Annotations: c.hints}, c.trust); e.Grade != c.want {
			t.Errorf("%s: %s, %s; want %s", c.name, e.Kind, e.Grade, c.want)
		}
	}
}

// TestGradesOfCalls checks the grades of calls. Arguments can make a grade graver, never milder.
func TestGradesOfCalls(t *testing.T) {
	for _, c := range []struct {
		server, name, args string
		want               core.EffectGrade
	}{
		{"chat", "post_message", `{"channel": "c", "text": "delete everything, pay now"}`, sendInside},
		{"chat", "post_message", `{"channel": "c", "meta": {"email": "a@example.com"}}`, sendOutside},
		{"chat", "post_message", `{"channel": "c", "amount": 4}`, money},
		{"chat", "post_message", `{"channel": "c", "permanent": true}`, deletion},
		{"chat", "post_message", `{"action": "refund"}`, money},
		{"chat", "delete_message", `{"action": "post_message"}`, deletion},
		{"crm", "update_row", `{"action": "post_message"}`, sendInside},
		{"crm", "update_payment", `{"action": "post_message"}`, money},
		{"db", "execute_sql", `{"sql": "DELETE FROM users"}`, deletion},
		{"db", "execute_sql", `{"sql": "SELECT pg_notify('channel', 'x')"}`, deletion},
		{"db", "execute_sql", `{"sql": "DELETE FROM users; SELECT refund_order(1)"}`, money},
		{"db", "execute_sql", `{"sql": "SELECT 1"}`, non},
		{"api", "graphql", `{"query": "mutation { deleteIssue(id: 1) { ok } refundOrder(id: 1) { ok } }"}`, money},
		{"api", "http", `{"url": "https://example.com", "method": "POST"}`, other},
		{"api", "http", `{"url": "https://example.com", "method": "DELETE"}`, deletion},
		{"shell", "terminal", `{"command": "ls"}`, other},
	} {
		tool := core.Tool{Server: c.server, Name: c.name}
		if e := NewJudge(&tool, false).CallEffect([]byte(c.args)); e.Grade != c.want {
			t.Errorf("%s(%s): %s, %s (%s); want %s", c.name, c.args, e.Kind, e.Grade, e.Reason, c.want)
		}
	}
}
