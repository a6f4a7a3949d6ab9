package pipeline

import (
	"encoding/json"
	"fmt"
	"testing"

	"retort/internal/pipeline/gate/approval"
	"retort/internal/run"
)

// A server that asks the client without end reaches it as often as the bounds say.
func TestServersQuestionsAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		answer string // of the client; empty: it fails
		equal  bool
		want   int
	}{
		"declined":          {`{"action":"decline"}`, false, 5},
		"cancelled":         {`{"action":"cancel"}`, false, 5},
		"failed":            {"", false, 5},
		"equal, declined":   {`{"action":"decline"}`, true, 1},
		"accepted":          {`{"action":"accept","content":{}}`, false, 50},
		"equal, accepted":   {`{"action":"accept","content":{}}`, true, 50},
		"a model's answers": {`{"role":"assistant","content":{"type":"text","text":"x"}}`, false, 50},
	} {
		t.Run(name, func(t *testing.T) {
			begun := make(chan struct{})
			close(begun)
			f := &flight{theirs: newTheirs(approval.Bounds{}), record: &record{begun: begun}}
			reached := 0
			ask := func(server string, n int) *run.Error {
				if c.equal {
					n = 0
				}
				came, refused := f.asked(run.Asked{Server: server, Tool: "t", Method: run.MethodElicit, Params: json.RawMessage(fmt.Sprintf(`{"message":"%d"}`, n))})
				if refused != nil {
					return refused
				}
				reached++
				var failed *run.Error
				if c.answer == "" {
					failed = run.Errorf(run.KindToolError, "test", "no")
				}
				came(json.RawMessage(c.answer), failed)
				return nil
			}
			for i := range 3000 {
				if refused := ask("sly", i); refused != nil && (refused.Kind != run.KindLimit || refused.Server != "sly") {
					t.Fatalf("%+v", refused)
				}
			}
			if reached != c.want {
				t.Errorf("the client was asked %d times, want %d", reached, c.want)
			}
			if refused := ask("other", 1); (refused == nil) != (c.want < 50) {
				t.Errorf("another server: %v", refused)
			}
		})
	}
}
