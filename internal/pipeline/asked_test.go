package pipeline

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"retort/internal/core"
	"retort/internal/pipeline/approval"
	"retort/internal/policy"
)

// TestServersQuestionsAreBounded checks how often a server that asks without end reaches the client: 50 times if the
// client accepts, 5 times if it declines, and once if it declines an equal question.
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
			f := &execution{pipeline: &Pipeline{Policy: &policy.PrincipalView{}}, theirs: newTheirs(approval.QuestionBounds{}, "", &questionCounts{}), begun: begun}
			reached := 0
			ask := func(server string, n int) *core.Error {
				if c.equal {
					n = 0
				}
				came, refused := f.admitServerRequest(core.ServerRequest{Server: server, Tool: "t", Method: core.MethodElicit, Params: json.RawMessage(fmt.Sprintf(`{"message":"%d"}`, n))})
				if refused != nil {
					return refused
				}
				reached++
				var failed *core.Error
				if c.answer == "" {
					failed = core.Errorf(core.KindToolError, "test", "no")
				}
				came(json.RawMessage(c.answer), failed)
				return nil
			}
			for i := range 3000 {
				if refused := ask("sly", i); refused != nil && (refused.Kind != core.KindLimit || refused.Server != "sly") {
					t.Fatalf("%+v", refused)
				}
			}
			if reached != c.want {
				t.Errorf("servers have already asked the client %d times, want %d", reached, c.want)
			}
			if refused := ask("other", 1); (refused == nil) != (c.want < 50) {
				t.Errorf("another server: %v", refused)
			}
		})
	}
}

// refusals is an audit log recorder that collects only the questions that were kept from the client.
type refusals struct{ servers []string }

func (r *refusals) Record(e core.AuditEvent, _ bool) *core.Error {
	if e.Kind == core.EventAsked && e.Status == "refused" {
		r.servers = append(r.servers, e.Server+" "+e.Facts["method"].(string))
	}
	return nil
}

func (*refusals) Digest([]byte) string { return "" }

// TestServersQuestionsOfAllExecutions checks the bounds per minute and per hour on the questions of one server and of
// all servers in many executions. Of each execution, only the first refusal is recorded.
func TestServersQuestionsOfAllExecutions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := make(chan struct{})
		close(begun)
		all, entries := &questionCounts{}, &refusals{}
		// asks has a server ask in new executions, and returns how many questions reach the client.
		asks := func(principal, server string, executions int) (reached int) {
			for i := range executions {
				f := &execution{
					pipeline: &Pipeline{Policy: &policy.PrincipalView{}, Recorder: entries},
					theirs:   newTheirs(approval.QuestionBounds{Questions: 10}, principal, all), begun: begun,
				}
				for n := range 6 {
					came, refused := f.admitServerRequest(core.ServerRequest{Server: server, Tool: "t", Method: core.MethodSample, Params: json.RawMessage(fmt.Sprintf(`{"n":%d}`, 10*i+n))})
					if refused == nil {
						came(json.RawMessage(`{"action":"accept"}`), nil)
						reached++
					} else if refused.Kind != core.KindLimit || refused.Server != server || !strings.Contains(refused.Message, "ask again after") {
						t.Fatalf("%+v", refused)
					}
				}
			}
			return reached
		}
		check := func(what string, got, want int) {
			if got != want {
				t.Errorf("%s: %d questions reached the client, want %d", what, got, want)
			}
		}
		check("one server", asks("ann", "sly", 20), 10)
		if want := slices.Repeat([]string{"sly " + core.MethodSample}, 19); !slices.Equal(entries.servers, want) {
			t.Errorf("entries: %d", len(entries.servers))
		}
		check("another server", asks("ann", "other", 20), 10)
		check("all servers", asks("ann", "third", 20), 0)
		check("another principal", asks("bob", "sly", 20), 10)
		for range 3 {
			time.Sleep(time.Minute)
			check("after a minute", asks("ann", "sly", 20), 10)
		}
		time.Sleep(time.Minute)
		check("within an hour", asks("ann", "sly", 20), 0)
		time.Sleep(time.Hour)
		check("after an hour", asks("ann", "sly", 20), 10)
		for i := range maxAskers + maxAskers/4 {
			asks("ann", fmt.Sprint(i), 1)
		}
		if n := len(all.askers); n > maxAskers+1 {
			t.Errorf("%d askers are kept", n)
		}
	})
}
