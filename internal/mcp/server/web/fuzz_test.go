package web_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"retort/internal/devel/testenv"
	"retort/internal/engine"
	"retort/internal/mcp/server/web"
)

// FuzzBodies checks that a listener answers every request body with an HTTP status, and then answers a well-formed
// request. It covers protocol versions with and without sessions.
func FuzzBodies(f *testing.F) {
	e, err := engine.Open(f.Context(), engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: f.TempDir(), Keys: f.TempDir()})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = e.Close() })
	l, err := web.OpenListener(web.Options{Addr: "127.0.0.1:0", Engine: func(p string, g []string) web.Engine { return e.As(p, g...) }, Limits: web.ListenerLimits{Requests: 1 << 40}})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{`{}`, `[]`, `null`, `[{}]`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"a"}]`, "\x00", `{"jsonrpc":"2.0","id":true,"method":7}`} {
		f.Add(false, []byte(nil), []byte(seed))
		f.Add(true, []byte(nil), []byte(seed))
	}
	for i := range byte(60) {
		f.Add(i%2 == 0, []byte{i, 3 * i, 7 * i, 11 * i, i, i + 1, i + 2, i + 3, 13 * i, 17 * i}, []byte(nil))
	}
	f.Fuzz(func(t *testing.T, modern bool, choices, raw []byte) {
		if len(raw) > 1<<16 || len(choices) > 200 {
			t.Skip("more than is needed")
		}
		c := httpPoster{l, t.Context(), modern, ""}
		if !modern {
			c.session = c.post(hello).Header().Get("Mcp-Session-Id")
		}
		for body := range strings.SplitSeq(testenv.MakeMessages(choices)+"\n"+string(raw), "\n") {
			ctx, end := context.WithCancel(t.Context())
			odd := httpPoster{l, ctx, modern, c.session}
			done := make(chan *httptest.ResponseRecorder, 1)
			go func() { done <- odd.post(body) }()
			if next := c.post(c.list()); next.Code != 200 || !strings.Contains(next.Body.String(), `"execute_code"`) {
				t.Fatalf("after %q the next request got %d %s", body, next.Code, next.Body)
			}
			end() // some requests last
			answer := testenv.Receive(t, done, "the answer to what was sent")
			if answer.Code < 200 || answer.Code >= 500 || strings.Contains(answer.Body.String(), "an internal error occurred in Retort while") {
				t.Fatalf("%q got %d %s", body, answer.Code, answer.Body)
			}
		}
		if c.session != "" {
			r := httptest.NewRequestWithContext(t.Context(), "DELETE", "http://localhost/mcp", nil)
			r.Header.Set("Mcp-Session-Id", c.session)
			l.ServeHTTP(httptest.NewRecorder(), r)
		}
	})
}

// httpPoster sends requests of one protocol version to a listener.
type httpPoster struct {
	l       *web.Listener
	ctx     context.Context
	modern  bool
	session string
}

func (p httpPoster) list() string {
	if p.modern {
		return `{"jsonrpc":"2.0","id":"next","method":"tools/list","params":{` + meta + `}}`
	}
	return `{"jsonrpc":"2.0","id":"next","method":"tools/list","params":{}}`
}

func (p httpPoster) post(body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(p.ctx, "POST", "http://localhost/mcp", strings.NewReader(body))
	r.Header.Set("Accept", accepts)
	r.Header.Set("Content-Type", "application/json")
	if p.session != "" {
		r.Header.Set("Mcp-Session-Id", p.session)
		r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	}
	if p.modern {
		var m struct {
			Method string
			Params struct{ Name string }
		}
		_ = json.Unmarshal([]byte(body), &m) // headers that say what the body says
		r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		r.Header.Set("Mcp-Method", m.Method)
		r.Header.Set("Mcp-Name", m.Params.Name)
	}
	w := httptest.NewRecorder()
	p.l.ServeHTTP(w, r)
	return w
}
