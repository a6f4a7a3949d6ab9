//go:build unix

package client

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
)

// newsOf records the notifications that a pool reports: the changed resources, and the principals that own the
// instances that received the notifications.
type newsOf struct {
	mu     sync.Mutex
	uris   []string
	owners map[string]bool // principals whose instances received the notifications
}

func (h *newsOf) news(_ string, owner core.Caller, method string, params json.RawMessage) {
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

// watchable returns a server that supports subscriptions, a function that connects to the server, and the function
// cut, which closes the newest connection.
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

// TestSubscriptionsOutliveSessions checks that a server that has ended is restarted and subscribed to again without
// any call. Updates stop when the last of several subscribers has unsubscribed.
func TestSubscriptionsOutliveSessions(t *testing.T) {
	for _, protocol := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, dial, cut := watchable(t, protocol)
				var h newsOf
				p := inBubble(t, Options{OnNews: h.news}, ServerSpec{Name: "s", Dial: dial})
				heard := func() bool {
					h.forget()
					_ = s.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "test://a"})
					synctest.Wait()
					return h.of("test://a")
				}
				for range 2 {
					if err := p.SubscribeResource(t.Context(), "s", "test://a", true); err != nil {
						t.Fatal(err)
					}
				}
				if !heard() {
					t.Error("no update arrived after the subscription")
				}
				cut()
				synctest.Wait()
				if st := p.StatusOf("s"); st.State == StateReady {
					t.Errorf("the session did not end: %+v", st)
				}
				time.Sleep(time.Minute)
				if !heard() {
					t.Error("no update arrived after the server was restarted")
				}
				for n := range 2 {
					if err := p.SubscribeResource(t.Context(), "s", "test://a", false); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					if told := heard(); told != (n == 0) {
						t.Errorf("after %d of 2 have unsubscribed: update arrived: %v", n+1, told)
					}
				}
			})
		})
	}
}

// TestSubscriptionsOfPrincipals checks that principals with their own instances subscribe separately, and that an
// instance does not end while it has subscriptions. If each session has its own instance, subscribing is refused.
func TestSubscriptionsOfPrincipals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dial, _ := watchable(t, "2025-11-25")
		var h newsOf
		p := inBubble(t, Options{OnNews: h.news},
			ServerSpec{Name: "s", Dial: dial, Isolation: IsolationPrincipal, Idle: time.Minute}, ServerSpec{Name: "apart", Dial: dial, Isolation: IsolationSession})
		as := func(principal string) context.Context {
			return core.WithCaller(t.Context(), core.Caller{Principal: principal, Session: "one"})
		}
		for _, principal := range []string{"ana", "ana", "ben"} {
			if err := p.SubscribeResource(as(principal), "s", "test://a", true); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour) // longer than Idle, without a call
		_ = s.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "test://a"})
		synctest.Wait()
		if !h.owners["ana"] || !h.owners["ben"] || h.owners[""] {
			t.Errorf("updates came for %v, want ana and ben", h.owners)
		}
		for _, enough := range []struct {
			principal string
			instances int // number of instances that still run
		}{{"ana", 2}, {"ben", 1}, {"ana", 0}} {
			if err := p.SubscribeResource(as(enough.principal), "s", "test://a", false); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if n := p.StatusOf("s").Instances; n != enough.instances {
				t.Errorf("%d instances after %s unsubscribed, want %d", n, enough.principal, enough.instances)
			}
		}
		if err := p.SubscribeResource(as("ana"), "apart", "test://a", true); core.AsError(err).Kind != core.KindPolicy {
			t.Errorf("a subscription at a server with isolated sessions: %v, want a policy error", err)
		}
	})
}

// TestSubscriptionsRefusedOverHTTP checks that subscribing fails immediately if the server refuses the stream of the
// subscription or answers with something else.
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
			err := p.SubscribeResource(t.Context(), "s", "test://a", true)
			if e := core.AsError(err); e == nil || e.Server != "s" || e.Kind == core.KindUpstreamTimeout {
				t.Errorf("%v, want the server's refusal", err)
			}
		})
	}
}
