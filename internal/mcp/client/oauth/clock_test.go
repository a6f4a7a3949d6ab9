package oauth_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/mcp/client/oauth"
	"retort/internal/mcp/client/oauth/oauthtest"
)

// benchInBubble is like newBench, but for use inside a testing/synctest bubble. A browser cannot connect to its
// server.
func benchInBubble(t *testing.T, r oauthtest.Rules) *bench {
	t.Helper()
	pipes := testenv.NewPipes()
	s := oauthtest.Serve(pipes, r)
	t.Cleanup(s.Close)
	return &bench{Server: s, t: t, dir: t.TempDir(), reportedSecrets: map[string]bool{}, dial: pipes.Dial}
}

// mustLoginWithCode logs in with a device code that the person has already entered.
func (b *bench) mustLoginWithCode(c *oauth.Client) {
	b.t.Helper()
	l, err := c.BeginLogin(b.t.Context(), oauth.LoginOptions{Device: true})
	if err != nil {
		b.t.Fatal(err)
	}
	b.Agree()
	if err := l.Wait(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

func TestDevice(t *testing.T) {
	b := newBench(t, oauthtest.Rules{})
	c := b.client()
	l, err := c.BeginLogin(t.Context(), oauth.LoginOptions{Device: true})
	if err != nil {
		t.Fatal(err)
	}
	if l.Code != "WDJB-MJHT" || l.URL != b.Root+"/activate" {
		t.Error(l.Code, l.URL)
	}
	var polls atomic.Int64
	b.Set(func(r *oauthtest.Rules) {
		r.Hook = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/token" && polls.Add(1) == 2 {
				b.Agree()
			}
			return false
		}
	})
	if err := l.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := polls.Load(); n != 2 {
		t.Errorf("asked %d times for the token, want once before and once after the person agreed", n)
	}
	if err := call(t, b.pool(c), "hello"); err != nil {
		t.Error(err)
	}
	without := newBench(t, oauthtest.Rules{Change: func(_ string, m map[string]any) { delete(m, "device_authorization_endpoint") }})
	if _, err := without.client().BeginLogin(t.Context(), oauth.LoginOptions{Device: true}); err == nil || !strings.Contains(err.Error(), "not support login with a code") {
		t.Error(err)
	}
}

// TestDevicePolls checks how a device login handles the server's answers while it polls for its token.
func TestDevicePolls(t *testing.T) {
	for name, c := range map[string]struct {
		polls []string
		hook  func(w http.ResponseWriter, r *http.Request) bool
		want  string // expected part of the error; empty if the login must succeed
		alone bool   // no person enters the code
		asks  int
		takes time.Duration
	}{
		"pending, then slow down": {polls: []string{"authorization_pending", "slow_down"}, asks: 3, takes: 5150 * time.Millisecond},
		"expired":                 {polls: []string{"authorization_pending", "expired_token"}, want: "the code expired before it was entered", asks: 2, takes: 100 * time.Millisecond},
		"denied":                  {polls: []string{"access_denied"}, want: "access_denied", asks: 1, takes: 50 * time.Millisecond},
		"something else":          {polls: []string{"invalid_scope"}, want: "invalid_scope", asks: 1, takes: 50 * time.Millisecond},
		"an outage":               {hook: failTokenRequests(3), asks: 1, takes: (1 + 2 + 4 + 8) * 50 * time.Millisecond},
		"a long outage":           {hook: failTokenRequests(99), want: "502", asks: 0, takes: (1 + 2 + 4 + 8 + 16 + 32) * 50 * time.Millisecond},
		"nobody types it in":      {alone: true, want: "before it was entered", asks: 8, takes: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := benchInBubble(t, oauthtest.Rules{Polls: c.polls, Hook: c.hook, Change: func(doc string, m map[string]any) {
					if doc == "device" && c.alone {
						m["interval"] = 7 // seconds; the code is valid for 60
					}
				}})
				l, err := b.client().BeginLogin(t.Context(), oauth.LoginOptions{Device: true})
				if err != nil {
					t.Fatal(err)
				}
				if !c.alone {
					b.Agree()
				}
				began := time.Now()
				err = l.Wait(t.Context())
				if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("%v, want %q", err, c.want)
				}
				if n := b.Count("token urn:ietf:params:oauth:grant-type:device_code"); n != c.asks {
					t.Errorf("asked %d times, want %d", n, c.asks)
				}
				if took := time.Since(began); took != c.takes {
					t.Errorf("it took %v, want %v", took, c.takes)
				}
				if name == "expired" || name == "denied" {
					if hint := core.AsError(err).Hint; !strings.Contains(hint, "retort auth login --device s") {
						t.Error(hint)
					}
				}
			})
		})
	}
}

// failTokenRequests returns a hook that makes the token endpoint fail the given number of times.
func failTokenRequests(times int64) func(http.ResponseWriter, *http.Request) bool {
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) bool {
		fails := r.URL.Path == "/token" && n.Add(1) <= times
		if fails {
			w.WriteHeader(http.StatusBadGateway)
		}
		return fails
	}
}

// TestTokenIsRenewedInTime checks that a token is renewed a minute before it expires, each time with the newest
// refresh token.
func TestTokenIsRenewedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := benchInBubble(t, oauthtest.Rules{Rotates: true, Lasts: 3600})
		c := b.client()
		b.mustLoginWithCode(c)
		seen := map[string]bool{}
		for n := range 3 {
			value, err := c.Authorization(t.Context())
			if err != nil || seen[value] || b.Count("token refresh_token") != n {
				t.Fatalf("%q, %v, after %d refreshes, want %d", value, err, b.Count("token refresh_token"), n)
			}
			seen[value] = true
			time.Sleep(59*time.Minute - time.Second)
			if again, err := c.Authorization(t.Context()); again != value || err != nil {
				t.Errorf("a valid token was renewed: %q, %v", again, err)
			}
			time.Sleep(time.Second)
		}
	})
}

// TestRefreshFails checks that a login survives a refresh that fails temporarily.
func TestRefreshFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := benchInBubble(t, oauthtest.Rules{Lasts: 3600})
		c := b.client()
		b.mustLoginWithCode(c)
		b.Set(func(r *oauthtest.Rules) { r.Hook = failTokenRequests(99) })
		time.Sleep(59*time.Minute + 30*time.Second)
		if value, err := c.Authorization(t.Context()); value == "" || err != nil {
			t.Error("while the token is valid:", value, err)
		}
		if n := b.Count("/token"); n != 2 {
			t.Errorf("%d requests for tokens, want the login and a refresh that failed", n)
		}
		time.Sleep(31 * time.Second)
		if _, err := c.Authorization(t.Context()); err == nil || errors.Is(err, core.ErrLogin) || !strings.Contains(err.Error(), "502") {
			t.Error("after the token has expired:", err)
		}
		b.Set(func(r *oauthtest.Rules) { r.Hook = nil })
		if value, err := c.Authorization(t.Context()); value == "" || err != nil {
			t.Error("when the endpoint works again:", value, err)
		}
	})
}
