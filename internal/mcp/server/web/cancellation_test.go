package web

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"retort/internal/mcp/server"
)

// TestCancellationsBeforeTheirRequest checks which messages of a body pass: a cancellation passes only if its request
// has come before, in the same session.
func TestCancellationsBeforeTheirRequest(t *testing.T) {
	const (
		call   = `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`
		cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`
		other  = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"7"}}`
		ping   = `{"jsonrpc":"2.0","id":8,"method":"ping"}`
	)
	var l requestLedger
	post := func(session, body string) string {
		t.Helper()
		a, refused := server.ExamineMessage([]byte(body))
		if refused != nil {
			t.Fatal(refused.Error)
		}
		r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
		w := httptest.NewRecorder()
		end, ok := l.admitMessages(w, r, session, a)
		defer end()
		if !ok {
			return fmt.Sprint(w.Code)
		}
		passed, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(passed)
	}
	for _, step := range []struct{ session, body, want string }{
		{"a", cancel, "202"},
		{"a", "[" + cancel + "," + ping + "]", "[" + ping + "]"},
		{"a", "[" + cancel + "," + other + "]", "202"},
		{"a", call, call},
		{"a", cancel, cancel},
		{"a", other, "202"},
		{"b", cancel, "202"},
		{"a", "[" + ping + "," + cancel + "]", "[" + ping + "," + cancel + "]"},
		{"a", `{"jsonrpc":"2.0","method":"notifications/cancelled"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled"}`},
	} {
		if got := post(step.session, step.body); got != step.want {
			t.Errorf("in session %s, %s: got %s, want %s", step.session, step.body, got, step.want)
		}
	}
}

// TestLedgerForgets checks that ended requests are forgotten in the order in which they ended, and open ones never.
func TestLedgerForgets(t *testing.T) {
	var l requestLedger
	l.begin(1)
	for n := range uint64(2 * maxEndedRequests) {
		l.begin(n + 100)
		l.end(n + 100)
	}
	switch last := uint64(2*maxEndedRequests + 99); {
	case !l.isKnown(1):
		t.Error("the open request was forgotten")
	case l.isKnown(100):
		t.Error("the oldest ended request is still known")
	case !l.isKnown(last):
		t.Error("the newest ended request was forgotten")
	case len(l.known) != maxEndedRequests+1:
		t.Errorf("%d requests are known", len(l.known))
	}
}
