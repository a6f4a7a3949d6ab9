package pipeline

import (
	"encoding/json"
	"testing"

	"retort/internal/core"
	"retort/internal/policy"
)

type deaf struct{}

func (deaf) Record(core.AuditEvent, bool) *core.Error { return nil }
func (deaf) Digest([]byte) string                     { return "" }

func TestTokenRun(t *testing.T) {
	for _, c := range []struct {
		arguments []string
		want      any
	}{
		{[]string{`{"a":"[EMAIL_1]"}`, `{"a":"[EMAIL_2]"}`}, nil},
		{[]string{`["[EMAIL_1]","[EMAIL_2]","[EMAIL_2]","[EMAIL_3]","[EMAIL_4]","[EMAIL_5]"]`, `["[EMAIL_6]","[EMAIL_7]","[EMAIL_8]","[EMAIL_9]","[EMAIL_10]"]`}, 10},
		{[]string{`["[EMAIL_1]","[PHONE_2]","[EMAIL_3]","[PHONE_4]","[EMAIL_5]","[PHONE_6]","[EMAIL_7]","[PHONE_8]","[EMAIL_9]","[PHONE_10]","[EMAIL_11]"]`}, nil},
		{[]string{`["[EMAIL_99999999999999999999]"]`, `[`, ``}, nil},
	} {
		x := &execution{pipeline: &Pipeline{Policy: &policy.PrincipalView{}, Recorder: deaf{}}}
		for _, a := range c.arguments {
			x.noteTokens(json.RawMessage(a))
		}
		e := x.callEvent(&core.Tool{Server: "s", Name: "t"}, core.ToolCall{}, policy.AccessDecision{})
		if e.Facts["token_run"] != c.want {
			t.Errorf("%q: %v, want %v", c.arguments, e.Facts["token_run"], c.want)
		}
	}
}
