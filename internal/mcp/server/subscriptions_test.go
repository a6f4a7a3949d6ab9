package server_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/devel/testenv"
)

// watchable is a server with resources that counts the subscriptions of each resource.
type watchable struct {
	*mcp.Server
	mu    sync.Mutex
	heard map[string]int
}

func newWatchable(protocols ...string) *watchable {
	w := &watchable{heard: map[string]int{}}
	count := func(uri string, n int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.heard[uri] += n
	}
	w.Server = mcp.NewServer(&mcp.Implementation{Name: "watchable", Version: "1"}, &mcp.ServerOptions{
		SupportedProtocolVersions: protocols,
		SubscribeHandler:          func(_ context.Context, r *mcp.SubscribeRequest) error { count(r.Params.URI, 1); return nil },
		UnsubscribeHandler:        func(_ context.Context, r *mcp.UnsubscribeRequest) error { count(r.Params.URI, -1); return nil },
	})
	for _, uri := range []string{"test://a", "test://b", "test://c"} {
		w.AddResource(&mcp.Resource{URI: uri, Name: uri}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{}, nil
		})
	}
	return w
}

func (w *watchable) hears(uri string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.heard[uri]
}

// TestSubscriptions checks for all pairs of protocol versions that clients are notified of changes of the resources
// that they have subscribed to, and of no others, and that the server is unsubscribed in the end.
func TestSubscriptions(t *testing.T) {
	t.Parallel()
	for i := range 8 {
		era, theirs, wire := eras[i&1], eras[i>>1&1], []string{"pipe", "http"}[i>>2]
		t.Run(era+" to "+theirs+" by "+wire, func(t *testing.T) {
			t.Parallel()
			w := newWatchable(theirs)
			up := upstream("up", w.Server)
			if wire == "http" {
				up = serverOverHTTP(t, "up", w.Server, theirs == eras[1])
			}
			var mu sync.Mutex
			var news []string
			s := connectEngine(t, exposedServers, era, &mcp.ClientOptions{ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
				mu.Lock()
				defer mu.Unlock()
				news = append(news, r.Params.URI)
			}}, up)
			heard := func(uri string) bool {
				mu.Lock()
				defer mu.Unlock()
				return slices.Contains(news, uri)
			}
			for _, uri := range []string{"test://a", "test://b"} {
				if err := s.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
					t.Fatal(err)
				}
			}
			tell := func(uri string) {
				_ = w.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: uri})
			}
			testenv.WaitUntil(t, "updates of a and b arrive", func() bool {
				tell("test://a")
				tell("test://b")
				tell("test://c")
				return heard("test://a") && heard("test://b")
			})
			if heard("test://c") {
				t.Error("told of what nobody asked for")
			}
			if err := s.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: "test://a"}); err != nil {
				t.Fatal(err)
			}
			testenv.WaitUntil(t, "a has no subscriber and b still has one", func() bool { return w.hears("test://a") == 0 && w.hears("test://b") == 1 })
			if _, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://none"}); err == nil {
				t.Error("read what is not there")
			}
			_ = s.Close() // without a word about b
			testenv.WaitUntil(t, "b has no subscriber", func() bool { return w.hears("test://b") == 0 })
		})
	}
}

// TestSubscriptionRefused checks that a client gets an error when it subscribes at a server without subscriptions.
func TestSubscriptionRefused(t *testing.T) {
	t.Parallel()
	for _, theirs := range eras {
		s := connectEngine(t, exposedServers, eras[0], nil, upstream("up", everythingDeaf(theirs)))
		if err := s.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "test://a"}); err == nil {
			t.Errorf("%s: subscribed to a server without subscriptions", theirs)
		}
	}
}

func everythingDeaf(protocols ...string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "deaf", Version: "1"}, &mcp.ServerOptions{SupportedProtocolVersions: protocols})
	s.AddResource(&mcp.Resource{URI: "test://a", Name: "a"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{}, nil
	})
	return s
}

// TestUpdatesOfOthers checks that a server's notification about another server's resource is not forwarded.
func TestUpdatesOfOthers(t *testing.T) {
	t.Parallel()
	a, b := newWatchable(eras[0]), newWatchable(eras[0])
	b.RemoveResources("test://a")
	var mu sync.Mutex
	var news []string
	s := connectEngine(t, "servers: {a: {expose: direct}, b: {expose: direct}}", eras[0], &mcp.ClientOptions{ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
		mu.Lock()
		defer mu.Unlock()
		news = append(news, r.Params.URI)
	}}, upstream("a", a.Server), upstream("b", b.Server))
	for _, uri := range []string{"test://a", "retort://b/test://b"} {
		if err := s.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
			t.Fatal(err)
		}
	}
	_ = b.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "test://a"})
	testenv.WaitUntil(t, "an update of b arrives", func() bool {
		_ = b.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "test://b"})
		mu.Lock()
		defer mu.Unlock()
		return len(news) > 0
	})
	mu.Lock()
	defer mu.Unlock()
	if slices.Contains(news, "test://a") {
		t.Error(fmt.Sprint(news))
	}
}
