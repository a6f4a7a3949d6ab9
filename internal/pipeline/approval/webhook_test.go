package approval

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"retort/internal/core"
	"retort/internal/devel/testenv"
)

const webhookSecret = "a secret of more than 24 bytes"

// signature computes a signature as standardwebhooks.com specifies, independently of the tested code.
func signature(secret, id, at string, body []byte) string {
	h := hmac.New(sha256.New, []byte(secret))
	_, _ = io.WriteString(h, id+"."+at+"."+string(body))
	return "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// respond writes a signed response with an answer, as the service behind a webhook would.
func respond(w http.ResponseWriter, secret, id string, at time.Time, answer WebhookAnswer) {
	body, _ := json.Marshal(answer)
	seconds := strconv.FormatInt(at.Unix(), 10)
	w.Header().Set("webhook-id", id)
	w.Header().Set("webhook-timestamp", seconds)
	w.Header().Set("webhook-signature", "v1,other "+signature(secret, id, seconds, body))
	_, _ = w.Write(body)
}

// startWebhook starts an HTTP server that handles questions with answer, and returns an ApprovalWebhook for it. The
// webhook does not sleep between requests; it sends the length of each pause to pauses.
func startWebhook(t *testing.T, answer func(w http.ResponseWriter, n int64, q WebhookQuestion)) (hook *ApprovalWebhook, requests *atomic.Int64, pauses chan time.Duration) {
	t.Helper()
	requests = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		at := r.Header.Get("webhook-timestamp")
		var q WebhookQuestion
		if err := json.Unmarshal(body, &q); err != nil {
			t.Error(err)
		}
		if r.Header.Get("webhook-signature") != signature(webhookSecret, q.Data.ID, at, body) || r.Header.Get("webhook-id") != q.Data.ID {
			t.Errorf("the request is not signed: %v", r.Header)
		}
		answer(w, requests.Add(1), q)
	}))
	t.Cleanup(server.Close)
	hook, bad := NewWebhook(server.URL, webhookSecret, slog.New(slog.DiscardHandler))
	if bad != nil {
		t.Fatal(bad)
	}
	t.Cleanup(func() { _ = hook.Close() })
	pauses = make(chan time.Duration, 10)
	hook.sleep = func(_ context.Context, d time.Duration) bool { pauses <- d; return true }
	return hook, requests, pauses
}

func TestWebhook(t *testing.T) {
	yes := func(q WebhookQuestion) WebhookAnswer {
		return WebhookAnswer{q.Data.Digest, core.ApprovalAnswer{Approve: true, Scope: core.ScopeOnce}}
	}
	for _, c := range []struct {
		name     string
		answer   func(w http.ResponseWriter, n int64, q WebhookQuestion)
		want     string // the person's decision, or ""
		requests int64
	}{
		{"yes", func(w http.ResponseWriter, _ int64, q WebhookQuestion) {
			if !strings.Contains(q.Text, `"path": "/a"`) || q.Type != "approval.requested" || string(q.Data.Arguments) != `{"path":"/a"}` || q.Data.Code != "return 1" {
				t.Errorf("%+v", q)
			}
			respond(w, webhookSecret, q.Data.ID, time.Now(), yes(q))
		}, "yes", 1},
		{"no", func(w http.ResponseWriter, _ int64, q WebhookQuestion) {
			respond(w, webhookSecret, q.Data.ID, time.Now(), WebhookAnswer{q.Data.Digest, core.ApprovalAnswer{Note: "not now"}})
		}, "no: not now", 1},
		{"only told", func(w http.ResponseWriter, _ int64, _ WebhookQuestion) { _, _ = io.WriteString(w, `{"approve":true}`) }, "", 1},
		{"other secret", func(w http.ResponseWriter, _ int64, q WebhookQuestion) {
			respond(w, webhookSecret+"!", q.Data.ID, time.Now(), yes(q))
		}, "", 1},
		{"other question", func(w http.ResponseWriter, _ int64, q WebhookQuestion) {
			respond(w, webhookSecret, "other", time.Now(), yes(q))
		}, "", 1},
		{"other digest", func(w http.ResponseWriter, _ int64, q WebhookQuestion) {
			q.Data.Digest = strings.Repeat("0", 64)
			respond(w, webhookSecret, q.Data.ID, time.Now(), yes(q))
		}, "", 1},
		{"old answer", func(w http.ResponseWriter, _ int64, q WebhookQuestion) {
			respond(w, webhookSecret, q.Data.ID, time.Now().Add(-time.Hour), yes(q))
		}, "", 1},
		{"later", func(w http.ResponseWriter, n int64, q WebhookQuestion) {
			if n == 1 {
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(http.StatusAccepted)
				return
			}
			respond(w, webhookSecret, q.Data.ID, time.Now(), yes(q))
		}, "yes", 2},
		{"fails once", func(w http.ResponseWriter, n int64, q WebhookQuestion) {
			if n == 1 {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			respond(w, webhookSecret, q.Data.ID, time.Now(), yes(q))
		}, "yes", 2},
		{"refuses", func(w http.ResponseWriter, _ int64, q WebhookQuestion) {
			w.WriteHeader(http.StatusForbidden)
			respond(w, webhookSecret, q.Data.ID, time.Now(), yes(q))
		}, "", 1},
		{"sends on", func(w http.ResponseWriter, _ int64, _ WebhookQuestion) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			hook, requests, pauses := startWebhook(t, c.answer)
			q := core.Question{Execution: "x", Server: "files", Tool: "write_file", Arguments: json.RawMessage(`{"path":"/a"}`), Effect: "irreversible", Code: "return 1"}
			answer, answered := hook.AskApprover(testenv.Context(t), core.Approval{ID: "a", Question: q, Digest: q.ApprovalDigest()})
			said := ""
			switch {
			case answered && answer.Approve:
				said = "yes"
			case answered:
				said = "no: " + answer.Note
			}
			if said != c.want {
				t.Errorf("it was answered %q, want %q", said, c.want)
			}
			if n := requests.Load(); n != c.requests {
				t.Errorf("%d requests, want %d", n, c.requests)
			}
			want := map[string]time.Duration{"later": 7 * time.Second, "fails once": firstWebhook}[c.name]
			if n := len(pauses); n != int(c.requests)-1 || n > 0 && <-pauses != want {
				t.Errorf("%d pauses, want one of %v", n, want)
			}
		})
	}
}

// TestWebhookDecides checks that an answer from a webhook decides a question that waits in a table.
func TestWebhookDecides(t *testing.T) {
	for _, yes := range []bool{true, false} {
		hook, _, _ := startWebhook(t, func(w http.ResponseWriter, _ int64, q WebhookQuestion) {
			respond(w, webhookSecret, q.Data.ID, time.Now(), WebhookAnswer{q.Data.Digest, core.ApprovalAnswer{Approve: yes, Note: "not now"}})
		})
		table := New(testenv.Patience, nil)
		table.AddChannel(hook.AskApprover)
		err := table.AskQuestion(t.Context(), call("x", `{"id":1}`))
		if yes != (err == nil) || !yes && !strings.Contains(err.Message, "a person denied it: not now") {
			t.Errorf("%v: %v", yes, err)
		}
	}
}

// TestWebhookGroups checks that calls which wait at the same time are sent to a webhook as one question, whose answer
// decides all of them. Calls that come later are sent as another question.
func TestWebhookGroups(t *testing.T) {
	questions := make(chan WebhookQuestion, 10)
	hook, requests, _ := startWebhook(t, func(w http.ResponseWriter, _ int64, q WebhookQuestion) {
		questions <- q
		respond(w, webhookSecret, q.Data.ID, time.Now(), WebhookAnswer{q.Data.Digest, core.ApprovalAnswer{Approve: true}})
	})
	table := New(testenv.Patience, nil)
	begin := make(chan struct{})
	table.AddChannel(func(ctx context.Context, a core.Approval) (core.ApprovalAnswer, bool) {
		<-begin
		return hook.AskApprover(ctx, a)
	})
	ended := make(chan *core.Error)
	ask := func(arguments string) {
		go func() { ended <- table.AskQuestion(t.Context(), call("x", arguments)) }()
	}
	ask(`{"id":1}`)
	testenv.WaitUntil(t, "the first call waits", func() bool { return len(table.ListWaiting("x")) == 1 })
	for _, arguments := range []string{`{"id":2}`, `{"id":3}`, `{"id":4}`} {
		ask(arguments)
	}
	testenv.WaitUntil(t, "all calls wait", func() bool { return len(table.ListWaiting("x")) == 4 })
	close(begin)
	for range 4 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	asked := 0
	for len(questions) > 0 {
		asked += max(1, (<-questions).Data.Count)
	}
	if n := requests.Load(); n > 2 || asked != 4 {
		t.Errorf("%d requests about %d calls", n, asked) // two if the first was shown before the others came
	}
}

// TestWebhookSettings checks which addresses and secrets NewWebhook accepts.
func TestWebhookSettings(t *testing.T) {
	coded := "whsec_" + base64.StdEncoding.EncodeToString([]byte(webhookSecret))
	for _, c := range []struct {
		url, secret string
		ok          bool
	}{
		{"https://example.com/hook", webhookSecret, true},
		{"https://example.com/hook", coded, true},
		{"http://127.0.0.1:1/hook", webhookSecret, true},
		{"http://localhost/hook", webhookSecret, true},
		{"http://example.com/hook", webhookSecret, false},
		{"file:///etc/passwd", webhookSecret, false},
		{"https://example.com/hook", "short", false},
		{"https://example.com/hook", "", false},
		{"https://example.com/hook", "whsec_%%%", false},
	} {
		w, err := NewWebhook(c.url, c.secret, slog.New(slog.DiscardHandler))
		if (err == nil) != c.ok {
			t.Errorf("%s %s: %v", c.url, c.secret, err)
		}
		if w != nil {
			_ = w.Close()
		}
	}
}
