package egress

import (
	"errors"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"retort/internal/core"
)

// TestScopes checks that scopes never add hosts to those that a Network allows.
func TestScopes(t *testing.T) {
	n, err := New(Options{
		Allow: []Rule{{Domain: "*.example.com"}, {Domain: "other.test"}},
		Deny:  []string{"banned.example.com", "93.184.0.0/16"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		scopes         []AccessScope
		reached, never []string
	}{
		"none":         {nil, []string{"a.example.com", "other.test"}, []string{"banned.example.com", "evil.test"}},
		"some":         {[]AccessScope{{Allow: []string{"a.example.com", "evil.test"}}}, []string{"a.example.com"}, []string{"b.example.com", "other.test", "evil.test"}},
		"every":        {[]AccessScope{{Allow: []string{"*"}, Deny: []string{"*.example.com"}}}, []string{"other.test"}, []string{"a.example.com", "evil.test"}},
		"two":          {[]AccessScope{{Allow: []string{"*.example.com"}}, {Allow: []string{"a.example.com", "other.test"}}}, []string{"a.example.com"}, []string{"b.example.com", "other.test"}},
		"only denials": {[]AccessScope{{Deny: []string{"other.test"}}}, []string{"a.example.com"}, []string{"other.test"}},
		"nothing":      {[]AccessScope{{Allow: []string{}}}, nil, []string{"a.example.com", "other.test"}},
	} {
		narrowed, err := n.WithScopes(c.scopes...)
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range c.reached {
			if _, _, refused := narrowed.checkTarget(Target{host, 443, https}, https); refused != nil {
				t.Errorf("%s: %s: %v", name, host, refused)
			}
		}
		for _, host := range c.never {
			if _, _, refused := narrowed.checkTarget(Target{host, 443, https}, https); refused == nil || refused.Kind != core.KindPolicy {
				t.Errorf("%s: %s is reached", name, host)
			}
		}
		if narrowed.IsClosed() != (name == "nothing") {
			t.Errorf("%s: closed: %v", name, narrowed.IsClosed())
		}
	}
	narrowed, err := n.WithScopes(AccessScope{Deny: []string{"8.8.8.0/24"}, Rule: "permission_levels.x.network"})
	if err != nil {
		t.Fatal(err)
	}
	if why := narrowed.addressRefusal(netip.MustParseAddr("8.8.8.8"), nil); !strings.Contains(why, "permission_levels.x.network.deny") || n.addressRefusal(netip.MustParseAddr("8.8.8.8"), nil) != "" {
		t.Error(why)
	}
	if _, err := n.WithScopes(AccessScope{Allow: []string{"10.0.0.0/8"}}); err == nil {
		t.Error("a range is allowed")
	}
	for host, want := range map[string]bool{"banned.example.com": true, "93.184.1.1": true, "[::ffff:93.184.1.1]": true, "a.example.com": false, "1.1.1.1": false, "": false} {
		if n.IsBlacklisted(host) != want {
			t.Errorf("the blacklist names %q: %v", host, !want)
		}
	}
}

// TestNarrowedWhileOpen checks that stricter rules apply immediately, both to new requests and to open connections.
func TestNarrowedWhileOpen(t *testing.T) {
	for name, scope := range map[string]AccessScope{
		"another host only": {Allow: []string{"other.example.com"}, Rule: "permission_levels.x.network"},
		"nothing":           {Allow: []string{}, Rule: "permission_levels.x.network"},
		"not this host":     {Deny: []string{"api.example.com"}, Rule: "permission_levels.x.network"},
		"not this address":  {Deny: []string{"0.0.0.0/0", "::/0"}, Rule: "permission_levels.x.network"},
	} {
		t.Run(name, func(t *testing.T) {
			var now atomic.Pointer[Network]
			w := newWorld(t, func(_ *Options, x *ExecutionHooks) { x.InForce = now.Load })
			now.Store(w.net)
			get(t, w, Request{URL: "https://api.example.com/"})
			open, failed := w.connectTo(t.Context(), Target{"api.example.com", 443, https})
			if failed != nil {
				t.Fatal(failed)
			}
			defer open.Close()
			if _, err := open.Write([]byte{22}); err != nil {
				t.Fatal(err)
			}
			narrowed, err := w.net.WithScopes(scope)
			if err != nil {
				t.Fatal(err)
			}
			now.Store(narrowed)
			if _, failed := w.FetchURL(t.Context(), Request{URL: "https://api.example.com/"}); failed == nil || failed.Kind != core.KindPolicy {
				t.Errorf("a new request: %v", failed)
			}
			var refused *core.Error
			if _, err := open.Write([]byte{3}); !errors.As(err, &refused) || refused.Kind != core.KindPolicy {
				t.Errorf("writing to an open connection: %v", err)
			}
			if len(w.seen) != 1 {
				t.Errorf("%d requests arrived, want 1", len(w.seen))
			}
			now.Store(w.net)
			get(t, w, Request{URL: "https://api.example.com/"})
		})
	}
}

// TestSSHRule checks that a rule with the protocol ssh allows ssh at port 22 of its host only, and that it does not
// allow https at port 22.
func TestSSHRule(t *testing.T) {
	n, err := New(Options{Open: true, Allow: []Rule{{Domain: "git.example.com", Ports: []int{443, 22}, Protocols: []string{https, ssh}}, {Domain: "only.example.com", Protocols: []string{ssh}}}})
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[Target]bool{
		{"git.example.com", 22, ssh}: true, {"git.example.com", 443, https}: true, {"git.example.com", 443, ssh}: false, {"git.example.com", 22, https}: false,
		{"only.example.com", 22, ssh}: true, {"only.example.com", 443, ssh}: false, {"only.example.com", 443, https}: false, {"other.example.com", 22, ssh}: false,
	} {
		if _, _, refused := n.checkTarget(target, target.Protocol); (refused == nil) != want {
			t.Errorf("%v: %v", target, refused)
		}
	}
	if _, err := New(Options{Allow: []Rule{{Domain: "a.example.com", Ports: []int{2222}, Protocols: []string{ssh}}}}); err == nil || !strings.Contains(err.Error(), "only on port 22") {
		t.Error(err)
	}
}
