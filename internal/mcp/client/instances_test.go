//go:build unix

package client

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"retort/internal/core"
	"retort/internal/devel/testenv"
)

// rememberingServer returns a server that answers each call with everything that its process was ever sent, and with
// its process id.
func rememberingServer(isolation Isolation) ServerSpec {
	s := hostileServer("remembers")
	s.Isolation = isolation
	return s
}

// callWithText calls a server with a text on behalf of a caller. It returns everything that the server's process was
// ever sent, and its process id.
func callWithText(t *testing.T, p *Pool, principal, session, what string) (heard, pid string) {
	t.Helper()
	heard, pid, err := tells(t.Context(), p, principal, session, "t", what)
	if err != nil {
		t.Fatalf("%s/%s: %v", principal, session, err)
	}
	return heard, pid
}

func tells(ctx context.Context, p *Pool, principal, session, tool, what string) (heard, pid string, err error) {
	ctx = core.WithCaller(ctx, core.Caller{Principal: principal, Session: session})
	raw, err := p.Call(ctx, "s", tool, json.RawMessage(fmt.Sprintf(`{"%s":1}`, what)))
	if err != nil {
		return "", "", err
	}
	var r struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(raw, &r); err != nil || len(r.Content) != 2 {
		return "", "", fmt.Errorf("%w in %s", err, raw)
	}
	return r.Content[0].Text, r.Content[1].Text, nil
}

// TestIsolation checks that callers share a server process if their isolation allows it. Otherwise they get different
// processes and never see each other's data.
func TestIsolation(t *testing.T) {
	callers := []core.Caller{{Principal: "alice", Session: "1"}, {Principal: "alice", Session: "2"}, {Principal: "bob", Session: "1"}, {Principal: "bob", Session: "2"}, {Session: "1"}}
	for _, c := range []struct {
		isolation Isolation
		stateful  bool
		processes int
		shares    func(a, b core.Caller) bool
	}{
		{IsolationShared, false, 1, func(core.Caller, core.Caller) bool { return true }},
		{"", false, 1, func(core.Caller, core.Caller) bool { return true }},
		{IsolationShared, true, 1, func(core.Caller, core.Caller) bool { return true }},
		{"", true, 3, func(a, b core.Caller) bool { return a.Principal == b.Principal }},
		{IsolationPrincipal, false, 3, func(a, b core.Caller) bool { return a.Principal == b.Principal }},
		{IsolationSession, false, 5, func(a, b core.Caller) bool { return a == b }},
	} {
		t.Run(fmt.Sprintf("%s %v", c.isolation, c.stateful), func(t *testing.T) {
			s := rememberingServer(c.isolation)
			s.Stateful = c.stateful
			p := newPool(t, Options{}, s)
			pids, owners := map[string]bool{}, map[string]core.Caller{}
			for round := range 2 {
				for _, caller := range callers {
					heard, pid := callWithText(t, p, caller.Principal, caller.Session, fmt.Sprintf("%s%s%d", caller.Principal, caller.Session, round))
					pids[pid], owners[caller.Principal+caller.Session+fmt.Sprint(round)] = true, caller
					for word, other := range owners {
						if has := strings.Contains(heard, `"`+word+`"`); has != c.shares(caller, other) {
							t.Errorf("%v heard of %v's %q: %v, in %s", caller, other, word, has, heard)
						}
					}
				}
			}
			if len(pids) != c.processes {
				t.Errorf("%d processes, want %d", len(pids), c.processes)
			}
		})
	}
}

// TestListingNeedsNoOther checks that listing tools for a caller uses the main instance and starts no other instance.
func TestListingNeedsNoOther(t *testing.T) {
	p := newPool(t, Options{}, rememberingServer(IsolationPrincipal))
	for range 3 {
		if _, err := p.List(core.WithCaller(t.Context(), core.Caller{Principal: "alice"}), "s"); err != nil {
			t.Fatal(err)
		}
	}
	if st := p.StatusOf("s"); st.Instances != 0 || st.Connects != 1 || st.Isolation != IsolationPrincipal {
		t.Errorf("%+v", st)
	}
}

// TestIdleProcess checks that the process of an idle server ends, and that the next call starts
// another.
func TestIdleProcess(t *testing.T) {
	for _, caller := range []string{"", "alice"} {
		t.Run(caller, func(t *testing.T) {
			s := rememberingServer(IsolationPrincipal)
			s.Idle = 50 * time.Millisecond
			p := newPool(t, Options{}, s)
			_, first := callWithText(t, p, caller, "1", "a")
			testenv.WaitUntil(t, "the process has ended", func() bool {
				return len(markedProcesses(p.servers["s"].main.spec.Env[processMarker])) == 0 && p.StatusOf("s").PID == 0
			})
			if st := p.StatusOf("s"); st.LastError != nil || st.Failures != 0 {
				t.Errorf("being idle counts as a failure: %+v", st)
			}
			if heard, second := callWithText(t, p, caller, "1", "c"); second == first || strings.Contains(heard, `"a"`) {
				t.Errorf("%q by %s again", heard, second)
			}
		})
	}
}

func TestNeverIdle(t *testing.T) {
	for name, change := range map[string]func(*ServerSpec){
		"stateful": func(s *ServerSpec) { s.Stateful = true },
		"never":    func(s *ServerSpec) { s.Idle = -1 },
	} {
		s := ServerSpec{Command: "x"}
		change(&s)
		if s.idleTimeout(true) != 0 || s.idleTimeout(false) != 0 {
			t.Errorf("%s: %s, %s", name, s.idleTimeout(true), s.idleTimeout(false))
		}
	}
	if remote := (ServerSpec{URL: "http://x"}); remote.idleTimeout(true) != 0 || remote.idleTimeout(false) != defaultIdle {
		t.Error("a server elsewhere costs nothing here, but instances must not grow without end")
	}
	if both := (ServerSpec{Stateful: true, Idle: time.Hour}); both.idleTimeout(true) != time.Hour {
		t.Error("what is said counts")
	}
}

// TestInstanceCap checks what happens when the limit of instances is reached: the instance that has been idle longest
// ends to make room for a new one.
func TestInstanceCap(t *testing.T) {
	s := rememberingServer(IsolationPrincipal)
	s.Instances = 2
	p := newPool(t, Options{}, s)
	_, alice := callWithText(t, p, "alice", "1", "a")
	_, bob := callWithText(t, p, "bob", "1", "b")
	_, again := callWithText(t, p, "alice", "1", "a2")
	callWithText(t, p, "carol", "1", "c")
	if again != alice {
		t.Error("alice's process was taken although there was room")
	}
	if _, pid := callWithText(t, p, "alice", "1", "a3"); pid != alice {
		t.Error("bob was idle for longer than alice")
	}
	if heard, pid := callWithText(t, p, "bob", "1", "b2"); pid == bob || strings.Contains(heard, `"b"`) {
		t.Errorf("%q by %s again", heard, pid)
	}
	if n := p.StatusOf("s").Instances; n > 2 {
		t.Errorf("%d instances", n)
	}
}

// TestManyInstances checks that many concurrent callers with short-lived instances never see each other's data, and
// that the limit of instances holds.
func TestManyInstances(t *testing.T) {
	var m rememberingServers
	p := newPool(t, Options{}, ServerSpec{Name: "s", Dial: m.dial, Isolation: IsolationSession, Instances: 3, Idle: time.Millisecond})
	p.servers["s"].wait = testenv.Patience
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			who := fmt.Sprintf("p%d", i)
			for range 20 {
				heard, _, err := tells(t.Context(), p, who, "1", "t", who)
				if err != nil {
					t.Errorf("%s: %v", who, err)
				}
				for j := range 8 {
					if j != i && strings.Contains(heard, fmt.Sprintf(`"p%d"`, j)) {
						t.Errorf("%s heard %s", who, heard)
					}
				}
			}
		})
	}
	wg.Wait()
	if n := p.StatusOf("s").Instances; n > 3 {
		t.Errorf("%d instances", n)
	}
}
