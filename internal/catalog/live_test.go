package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"retort/internal/core"
)

// testLister is a ToolLister for one server, whose tools change without a notification.
type testLister struct {
	mu       sync.Mutex
	tools    []string
	listings int
	link     int
	up       bool
	slow     time.Duration
	err      error
}

func (s *testLister) List(ctx context.Context, _ string) ([]json.RawMessage, string, error) {
	s.mu.Lock()
	s.listings++
	slow, all, err := s.slow, definitions(s.tools...), s.err
	s.mu.Unlock()
	over, cancel := context.WithTimeout(ctx, slow)
	defer cancel()
	if <-over.Done(); ctx.Err() != nil {
		return nil, "", ctx.Err()
	}
	return all, "", err
}

func (s *testLister) Link(string) (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link, s.up
}

func (s *testLister) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// newLiveCatalog returns three things: a ToolLister for the server "s", a LiveCatalog that has listed this server,
// and "a", the only tool of the server. It may only be called in a synctest bubble.
func newLiveCatalog(t *testing.T, policy core.ChangePolicy) (*testLister, *LiveCatalog, *core.Tool) {
	t.Helper()
	c, err := Open(Options{Changes: func(string) core.ChangePolicy { return policy }})
	if err != nil {
		t.Fatal(err)
	}
	s := &testLister{tools: []string{define("a", "Adds.")}, link: 1, up: true}
	l := NewLive(c, s, LiveOptions{Servers: []string{"s"}, Count: func(string) int { return 1 }})
	t.Cleanup(func() { _ = l.Close() })
	l.WaitForListing(t.Context())
	tool, ok := l.Toolset().FindExact("s", "a")
	if !ok {
		t.Fatal("no tool")
	}
	return s, l, tool
}

func TestVetNoticesWithoutNotification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l, tool := newLiveCatalog(t, core.ChangesBlock)
		s.set(func() { s.tools = []string{define("a", "Evil.")} })
		if _, _, err := l.VetTool(t.Context(), tool, time.Time{}); err != nil || s.listings != 1 {
			t.Errorf("%v after %d listings", err, s.listings)
		}
		time.Sleep(freshListing)
		var all sync.WaitGroup
		for range 50 { // who calls at once, waits for one listing
			all.Go(func() {
				if _, _, err := l.VetTool(t.Context(), tool, time.Time{}); err == nil || err.Kind != core.KindToolChanged {
					t.Errorf("vetted: %v", err)
				}
			})
		}
		all.Wait()
		if s.listings > 2 {
			t.Errorf("%d listings", s.listings)
		}
		s.set(func() { s.tools = []string{define("a", "Adds.")} })
		time.Sleep(freshListing)
		if _, _, err := l.VetTool(t.Context(), tool, time.Time{}); err != nil {
			t.Errorf("what is trusted again is refused: %v", err)
		}
	})
}

func TestVetListsOverANewConnection(t *testing.T) {
	for name, change := range map[string]func(*testLister){
		"another connection": func(s *testLister) { s.link = 2 },
		"no connection":      func(s *testLister) { s.up = false },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, l, tool := newLiveCatalog(t, core.ChangesBlock)
				s.set(func() { s.tools = []string{define("a", "Evil.")}; s.slow = 20 * time.Second; change(s) })
				if _, _, err := l.VetTool(t.Context(), tool, time.Time{}); err == nil || err.Kind != core.KindToolChanged {
					t.Errorf("vetted: %v", err)
				}
			})
		})
	}
}

func TestBackgroundListings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _ := newLiveCatalog(t, core.ChangesBlock)
		time.Sleep(relistInterval + time.Second)
		synctest.Wait()
		if s.listings != 2 {
			t.Errorf("%d listings", s.listings)
		}
		s.set(func() { s.up = false }) // nobody needs it, so it is not started
		time.Sleep(10 * relistInterval)
		if s.listings != 2 {
			t.Errorf("%d listings of a server that is down", s.listings)
		}
	})
}

func TestVetDoesNotHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l, tool := newLiveCatalog(t, core.ChangesBlock)
		time.Sleep(freshListing)
		s.set(func() { s.slow = time.Hour })
		began := time.Now()
		if _, _, err := l.VetTool(t.Context(), tool, time.Time{}); err != nil || time.Since(began) != listTimeout {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		s.set(func() { s.slow, s.err = 0, errors.New("no") })
		if _, _, err := l.VetTool(t.Context(), tool, time.Time{}); err != nil {
			t.Error(err)
		}
	})
}

func TestVetByPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l, tool := newLiveCatalog(t, core.ChangesNote)
		s.set(func() { s.tools = []string{define("a", "Evil.")} })
		time.Sleep(freshListing)
		if _, warning, err := l.VetTool(t.Context(), tool, time.Time{}); err != nil || !strings.Contains(warning, "retort tools --changed s") {
			t.Errorf("%q, %v", warning, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s, l, tool := newLiveCatalog(t, core.ChangesAsk)
		s.set(func() { s.tools = []string{define("a", "Evil.")} })
		time.Sleep(freshListing)
		if _, _, err := l.VetTool(t.Context(), tool, time.Time{}); err == nil { // who knows it as it was, would not be asked
			t.Error("a call left without a question")
		}
		now, _ := l.Toolset().FindExact("s", "a")
		if _, _, err := l.VetTool(t.Context(), now, time.Time{}); err != nil {
			t.Errorf("the question can't be put: %v", err)
		}
	})
}

// BenchmarkVet measures VetTool, which runs before each call.
func BenchmarkVet(b *testing.B) {
	c, err := Open(Options{})
	if err != nil {
		b.Fatal(err)
	}
	l := NewLive(c, &testLister{tools: []string{define("a", "Adds.")}, link: 1, up: true}, LiveOptions{Servers: []string{"s"}, Count: func(string) int { return 1 }})
	defer l.Close()
	l.WaitForListing(b.Context())
	tool, _ := l.Toolset().FindExact("s", "a")
	for b.Loop() {
		if _, _, err := l.VetTool(b.Context(), tool, time.Time{}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestDropAndAddAgain checks that a dropped server is no longer listed and delays no call. After it was added again,
// its tools are compared with the trusted definitions as usual.
func TestDropAndAddAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l, tool := newLiveCatalog(t, core.ChangesBlock)
		s.set(func() { s.slow = time.Hour })
		l.NotifyChanged("s")
		synctest.Wait()
		began := time.Now()
		l.DropServer("s") // in the midst of a listing
		l.catalog.UnlistServer("s")
		if _, ok := l.Toolset().FindExact("s", "a"); ok || len(l.PendingServers()) > 0 {
			t.Error("it is there still")
		}
		listings := s.listings
		if _, _, err := l.VetTool(t.Context(), tool, time.Time{}); err != nil || time.Since(began) > 0 || s.listings != listings {
			t.Errorf("%v after %v and %d listings", err, time.Since(began), s.listings-listings)
		}
		s.set(func() { s.slow, s.tools = 0, []string{define("a", "Evil.")} }) // over a connection with the number of the old one
		l.Add("s")
		l.WaitForListing(t.Context(), "s")
		if _, _, err := l.VetTool(t.Context(), tool, time.Time{}); err == nil || err.Kind != core.KindToolChanged {
			t.Errorf("another definition of a server that was added again is vetted: %v", err)
		}
	})
}

// TestDropEndsWaiting checks that a call stops waiting for the listing of a server when the server is dropped.
func TestDropEndsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l, tool := newLiveCatalog(t, core.ChangesBlock)
		s.set(func() { s.slow, s.up = time.Hour, false })
		began, done := time.Now(), make(chan struct{})
		go func() { defer close(done); _, _, _ = l.VetTool(t.Context(), tool, time.Time{}) }()
		synctest.Wait()
		l.DropServer("s")
		if <-done; time.Since(began) > 0 {
			t.Errorf("it waited %v", time.Since(began))
		}
	})
}
