package web_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"retort/internal/devel/testenv"
	"retort/internal/engine"
	"retort/internal/mcp/server/web"
)

// openPlain opens a listener for an engine that has no upstream servers.
func openPlain(t *testing.T) *web.Listener {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: t.TempDir(), Keys: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	l, err := web.OpenListener(web.Options{Addr: "127.0.0.1:0", Engine: func(p string, g []string) web.Engine { return e.As(p, g...) }, Limits: web.ListenerLimits{Requests: 1 << 40}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestOddMessagesOverHTTP checks that the listener, the session and other requests continue to work, whatever a client
// posts.
func TestOddMessagesOverHTTP(t *testing.T) {
	l := openPlain(t)
	for _, modern := range []bool{false, true} {
		t.Run(fmt.Sprint("modern ", modern), func(t *testing.T) {
			c := httpPoster{l, t.Context(), modern, ""}
			if !modern {
				c.session = c.post(hello).Header().Get("Mcp-Session-Id")
			}
			for i, m := range testenv.OddMessages(`"running"`, `"NEXT"`, `"next-0"`, "1") {
				id := fmt.Sprint("next-", i) // a client may not use an id twice
				ctx, end := context.WithCancel(t.Context())
				done := make(chan *httptest.ResponseRecorder, 1)
				go func() { done <- httpPoster{l, ctx, modern, c.session}.post(strings.ReplaceAll(m.Text, "NEXT", id)) }()
				var answer *httptest.ResponseRecorder
				if strings.HasPrefix(m.Name, "cancels ") { // at the same time, it could rightly cancel the next request
					answer = testenv.Receive(t, done, "the answer to a cancellation")
				}
				next := c.post(strings.Replace(c.list(), "next", id, 1))
				end() // some requests last
				if answer == nil {
					answer = testenv.Receive(t, done, "the answer to what was sent")
				}
				if next.Code != 200 || !strings.Contains(next.Body.String(), `"execute_code"`) {
					t.Fatalf("after %s the next request got %d %s", m.Name, next.Code, next.Body)
				}
				if answer.Code < 200 || answer.Code >= 500 || strings.Contains(answer.Body.String(), "Retort failed while") {
					t.Errorf("%s got %d %.300s", m.Name, answer.Code, answer.Body)
				}
			}
		})
	}
}

// TestOddConnections checks that a connection that carries something other than HTTP, or ends too early, affects no
// other connection.
func TestOddConnections(t *testing.T) {
	p := open(t, nil)
	head := "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: " + accepts + "\r\nContent-Type: application/json\r\n"
	for name, text := range map[string]string{
		"no line end": `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "NUL": "\x00\x00\x00\x00", "half a line": "POST /mc", "half a head": head, "too short a body": head + "Content-Length: 500\r\n\r\n{}", "no body": head + "Content-Length: 5\r\n\r\n",
		"too long a body": head + "Content-Length: 2\r\n\r\n{}{}{}", "negative length": head + "Content-Length: -1\r\n\r\n{}", "two lengths": head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "huge length": head + "Content-Length: 99999999999999999999\r\n\r\n{}",
		"half a chunk": head + "Transfer-Encoding: chunked\r\n\r\nff\r\n{}", "odd chunk": head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", "length and chunks": head + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"TLS": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "invalid UTF-8 in a header": strings.Replace(head, "localhost", "local\xffhost", 1) + "\r\n", "NUL in a header": strings.Replace(head, "localhost", "local\x00host", 1) + "\r\n",
	} {
		conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(p.url, "http://"), web.Path))
		if err != nil {
			t.Fatal(name, err)
		}
		if _, err := io.WriteString(conn, text); err != nil {
			t.Error(name, err)
		}
		_ = conn.(*net.TCPConn).CloseWrite()
		if answer, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
			if answer.StatusCode >= 500 && answer.StatusCode != http.StatusNotImplemented && answer.StatusCode != http.StatusHTTPVersionNotSupported {
				t.Errorf("%s: %s", name, answer.Status)
			}
			_ = answer.Body.Close()
		}
		_ = conn.Close()
		if r, body := p.send("POST", "/mcp", hello); r.StatusCode != 200 || !strings.Contains(body, "serverInfo") {
			t.Fatalf("after %s: %s %s", name, r.Status, body)
		}
	}
}
