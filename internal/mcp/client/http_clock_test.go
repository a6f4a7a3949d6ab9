//go:build unix

package client

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"retort/internal/core"
)

// TestHTTPTimeouts checks that a call ends at its timeout if the answer is not complete by then, and that the session
// can still be used.
func TestHTTPTimeouts(t *testing.T) {
	for _, name := range []string{"headers", "body", "endless stream"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				call := map[string]func(http.ResponseWriter, *http.Request){
					"headers": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
					"body": func(w http.ResponseWriter, r *http.Request) {
						w.Header().Set("Content-Type", "application/json")
						fmt.Fprint(w, "{")
						_ = http.NewResponseController(w).Flush()
						<-r.Context().Done()
					},
					"endless stream": func(w http.ResponseWriter, r *http.Request) {
						w.Header().Set("Content-Type", "text/event-stream")
						for tick := time.NewTicker(time.Millisecond); ; {
							fmt.Fprint(w, ": ping\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\n")
							_ = http.NewResponseController(w).Flush()
							select {
							case <-tick.C:
							case <-r.Context().Done():
								return
							}
						}
					},
				}[name]
				h := &httpScript{}
				h.call = func(w http.ResponseWriter, r *http.Request, req request) {
					if req.Params.Name == "t" {
						h.proper(w, req)
						return
					}
					call(w, r)
				}
				s := serveInBubble(t, h)
				s.CallTimeout = 3 * time.Second
				p := inBubble(t, Options{}, s)
				if _, err := p.List(t.Context(), "s"); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				_, err := p.Call(t.Context(), "s", "bad", nil)
				wantError(t, err, core.KindUpstreamTimeout, "did not answer within 3s")
				if took := time.Since(began); took != 3*time.Second || !errors.Is(err, ErrOutcomeUnknown) {
					t.Errorf("ended after %s with %v, want an unknown outcome after 3s", took, err)
				}
				mustCall(t, p, "s", "t")
				if n, st := h.calls.Load(), p.StatusOf("s"); n != 2 || st.Connects != 1 {
					t.Errorf("%d calls, want 2, and %+v", n, st)
				}
			})
		})
	}
}

// TestHTTPResume checks that a broken stream is resumed from the last event that arrived, after the
// retry delay that the server sent.
func TestHTTPResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var id atomic.Value
		var gets atomic.Int32
		var broken time.Time
		h := &httpScript{
			call: func(w http.ResponseWriter, _ *http.Request, req request) {
				id.Store(string(req.ID))
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, "id: e1\nretry: 700\ndata:\n\n")
				broken = time.Now()
			},
			get: func(w http.ResponseWriter, r *http.Request) {
				n := gets.Add(1)
				if waited := time.Since(broken); r.Header.Get("Last-Event-ID") != "" && waited != 700*time.Millisecond {
					t.Errorf("resumed after %s, want the 700 ms that the server sent", waited)
				}
				if want := fmt.Sprintf("e%d", min(n, 2)); r.Header.Get("Last-Event-ID") != want || r.Header.Get("Mcp-Session-Id") == "" {
					if r.Header.Get("Last-Event-ID") == "" { // the stream for notifications
						gets.Add(-1)
						w.WriteHeader(405)
						return
					}
					t.Errorf("resumed from event %q", r.Header.Get("Last-Event-ID"))
				}
				w.Header().Set("Content-Type", "text/event-stream")
				if n == 1 {
					fmt.Fprint(w, "id: e2\nretry: 700\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\n")
					broken = time.Now()
					return
				}
				fmt.Fprintf(w, "id: e3\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\ndata: \"result\":{\"content\":[]}}\n\n", id.Load())
			},
		}
		p := inBubble(t, Options{}, serveInBubble(t, h))
		if got := mustCall(t, p, "s", "t"); got != `{"content":[]}` {
			t.Errorf("got %s", got)
		}
		if h.calls.Load() != 1 || gets.Load() != 2 {
			t.Errorf("%d calls, %d resumptions", h.calls.Load(), gets.Load())
		}
	})
}

// TestHTTPListensFirst checks that the first call waits until the stream for the server's own
// requests is open, because the server may need to ask something during the call. It waits for
// listenPatience at most.
func TestHTTPListensFirst(t *testing.T) {
	for opens, called := range map[time.Duration]time.Duration{
		listenPatience / 2: listenPatience / 2,
		time.Hour:          listenPatience,
	} {
		t.Run(opens.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var after atomic.Int64
				h := &httpScript{
					get: func(w http.ResponseWriter, r *http.Request) {
						select {
						case <-time.After(opens):
						case <-r.Context().Done():
							return
						}
						w.Header().Set("Content-Type", "text/event-stream")
						w.WriteHeader(http.StatusOK)
						_ = http.NewResponseController(w).Flush()
						<-r.Context().Done()
					},
				}
				h.call = func(w http.ResponseWriter, _ *http.Request, req request) {
					after.Store(int64(time.Since(began)))
					h.proper(w, req)
				}
				mustCall(t, inBubble(t, Options{}, serveInBubble(t, h)), "s", "t")
				if got := time.Duration(after.Load()); got != called {
					t.Errorf("called after %s, want %s", got, called)
				}
			})
		})
	}
}

// TestHTTPNoticeHangs checks that a server that does not answer the cancellation notification delays
// neither the call nor Close.
func TestHTTPNoticeHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &httpScript{}
		var hangingServer atomic.Int64
		s := serveInBubble(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if strings.Contains(string(body), methodCancelled) || strings.Contains(string(body), methodCall) {
				hangingServer.Add(1)
				<-r.Context().Done()
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			h.ServeHTTP(w, r)
		}))
		s.CallTimeout = time.Second
		p := inBubble(t, Options{}, s)
		_, err := p.Call(t.Context(), "s", "t", nil)
		wantError(t, err, core.KindUpstreamTimeout)
		synctest.Wait()
		if n := hangingServer.Load(); n != 2 {
			t.Fatalf("%d requests came, want the call and the notification of its cancellation", n)
		}
		began := time.Now()
		if err := p.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("closing waited %s for the server", took)
		}
	})
}
