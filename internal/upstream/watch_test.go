package upstream

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/run"
)

// newsOf collects the resources of which a pool is told.
type newsOf struct {
	mu     sync.Mutex
	uris   []string
	owners map[string]bool // the principals whose instances were told
}

func (h *newsOf) news(_ string, owner run.Caller, method string, params json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if method == methodResourceUpdated {
		h.uris = append(h.uris, string(params))
		if h.owners == nil {
			h.owners = map[string]bool{}
		}
		h.owners[owner.Principal] = true
	}
}

func (h *newsOf) of(uri string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Contains(strings.Join(h.uris, " "), uri)
}

func (h *newsOf) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.uris = nil
}

// watchable is a server with subscriptions, of which the last connection can be cut.
func watchable(t *testing.T, protocol string) (s *mcp.Server, dial func(context.Context) (io.ReadWriteCloser, error), cut func()) {
	accept := func(context.Context, *mcp.SubscribeRequest) error { return nil }
	s = mcp.NewServer(&mcp.Implementation{Name: "w", Version: "1"}, &mcp.ServerOptions{
		SupportedProtocolVersions: []string{protocol}, SubscribeHandler: accept,
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	s.AddResource(&mcp.Resource{URI: "test://a", Name: "a"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{}, nil
	})
	var mu sync.Mutex
	var last net.Conn
	var serving sync.WaitGroup
	dial = func(context.Context) (io.ReadWriteCloser, error) {
		ours, theirs := net.Pipe()
		mu.Lock()
		last = theirs
		mu.Unlock()
		serving.Go(func() { _ = s.Run(context.Background(), &mcp.IOTransport{Reader: theirs, Writer: theirs}) })
		return ours, nil
	}
	cut = func() {
		mu.Lock()
		defer mu.Unlock()
		if last != nil {
			_ = last.Close()
		}
	}
	t.Cleanup(func() { cut(); serving.Wait() })
	return s, dial, cut
}

// Who has subscribed hears of a resource from a server that has ended and begun again, though
// nobody calls it; and each who subscribes counts.
func TestSubscriptionsOutliveSessions(t *testing.T) {
	for _, protocol := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(protocol, func(t *testing.T) {
			s, dial, cut := watchable(t, protocol)
			var h newsOf
			p := newPool(t, Options{OnNews: h.news}, Server{Name: "s", Dial: dial})
			tell := func() {
				_ = s.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "test://a"})
				time.Sleep(20 * time.Millisecond)
			}
			for range 2 {
				if err := p.Subscribe(t.Context(), "s", "test://a", true); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "told", func() bool { tell(); return h.of("test://a") })
			cut()
			eventually(t, "the session has ended", func() bool { return p.Status("s").State != StateReady })
			h.forget()
			eventually(t, "told after a new beginning", func() bool { tell(); return h.of("test://a") })
			for n := range 2 {
				if err := p.Subscribe(t.Context(), "s", "test://a", false); err != nil {
					t.Fatal(err)
				}
				time.Sleep(100 * time.Millisecond)
				h.forget()
				tell()
				time.Sleep(200 * time.Millisecond)
				if told := h.of("test://a"); told != (n == 0) {
					t.Errorf("after %d of 2 have had enough: told %v", n+1, told)
				}
			}
		})
	}
}

// Where principals are kept apart, each has their own instance tell, which does not end before they
// have had enough; where their sessions are, nobody is told.
func TestSubscriptionsOfPrincipals(t *testing.T) {
	s, dial, _ := watchable(t, "2025-11-25")
	var h newsOf
	p := newPool(t, Options{OnNews: h.news},
		Server{Name: "s", Dial: dial, Isolation: IsolationPrincipal, Idle: 50 * time.Millisecond}, Server{Name: "apart", Dial: dial, Isolation: IsolationSession})
	tell := func() bool {
		_ = s.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "test://a"})
		time.Sleep(20 * time.Millisecond)
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.owners["ana"] && h.owners["ben"] && !h.owners[""]
	}
	as := func(principal string) context.Context {
		return run.WithCaller(t.Context(), run.Caller{Principal: principal, Session: "one"})
	}
	for _, principal := range []string{"ana", "ana", "ben"} {
		if err := p.Subscribe(as(principal), "s", "test://a", true); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(300 * time.Millisecond) // nobody calls them
	eventually(t, "both are told", tell)
	left := func(want int) func() bool {
		return func() bool { return p.Status("s").Instances == want }
	}
	before := p.Status("s").Instances
	for n, principal := range []string{"ana", "ben", "ana"} {
		if err := p.Subscribe(as(principal), "s", "test://a", false); err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond)
		eventually(t, "the instances of who has had enough end", left(before-[]int{0, 1, 2}[n]))
	}
	if err := p.Subscribe(as("ana"), "apart", "test://a", true); run.AsError(err).Kind != run.KindPolicy {
		t.Errorf("sessions apart: %v", err)
	}
}

// A server that refuses the stream of a subscription, or answers with something else, fails the
// one who subscribes at once.
func TestSubscriptionsRefusedOverHTTP(t *testing.T) {
	for name, refuse := range map[string]func(http.ResponseWriter){
		"refused": func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) },
		"no stream": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, _ := watchable(t, "2026-07-28")
			sdk := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true})
			p := newPool(t, Options{}, serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Mcp-Method") == methodListen {
					body, _ := io.ReadAll(r.Body)
					if r.Body = io.NopCloser(strings.NewReader(string(body))); strings.Contains(string(body), "resourceSubscriptions") {
						refuse(w)
						return
					}
				}
				sdk.ServeHTTP(w, r)
			})))
			began := time.Now()
			err := p.Subscribe(t.Context(), "s", "test://a", true)
			if err == nil || time.Since(began) > 30*time.Second || run.AsError(err).Server != "s" {
				t.Errorf("%v after %s", err, time.Since(began))
			}
		})
	}
}
