package auth

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"retort/internal/devel/testenv"
)

// rotate replaces the keys of the issuer by a single other key.
func (s *issuer) rotate(id string) {
	s.set(func() { s.keys = []jose.JSONWebKey{{Key: otherRSA().Public(), KeyID: id, Use: "sig"}} })
}

func TestRotation(t *testing.T) {
	s := newIssuer(t)
	r := s.resource(nil)
	old, next := s.good(s.validClaims()), s.sign("RS256", otherRSA(), "next", nil, s.validClaims())
	if err := r.shows(old); err != nil {
		t.Fatal(err)
	}
	s.rotate("next")
	if err := r.shows(next); !errors.Is(err, ErrToken) || s.fetches.Load() != 1 {
		t.Errorf("keys were fetched right again: %v, %d", err, s.fetches.Load())
	}
	r.advance(keyFetchPause)
	if err := r.shows(next); err != nil || s.fetches.Load() != 2 {
		t.Errorf("the new key does not count: %v, %d", err, s.fetches.Load())
	}
	if err := r.shows(old); !errors.Is(err, ErrToken) {
		t.Errorf("the old key still counts: %v", err)
	}
}

// TestWithdrawn checks that a key which the issuer no longer publishes is refused after a while, even if no token
// with an unknown key is presented.
func TestWithdrawn(t *testing.T) {
	s := newIssuer(t)
	r := s.resource(nil)
	token := s.good(s.validClaims())
	if err := r.shows(token); err != nil {
		t.Fatal(err)
	}
	s.rotate("next")
	r.advance(keyRefreshAge + time.Second)
	if err := r.shows(token); !errors.Is(err, ErrToken) {
		t.Errorf("it counts: %v", err)
	}
}

// TestUnknownKeys checks that many tokens with unknown keys cause only one request to the issuer.
func TestUnknownKeys(t *testing.T) {
	s := newIssuer(t)
	r := s.resource(nil)
	tokens := make([]string, 50)
	for i := range tokens {
		tokens[i] = s.sign("ES256", ecKey(), fmt.Sprint("k", i), nil, s.validClaims())
	}
	var wg sync.WaitGroup
	for _, token := range tokens {
		wg.Go(func() {
			if err := r.shows(token); !errors.Is(err, ErrToken) && !errors.Is(err, ErrUnavailable) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := s.fetches.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
	stranger := newIssuer(t)
	if _ = s.resource(nil).shows(stranger.good(stranger.validClaims())); s.fetches.Load() != 1 {
		t.Error("the token of another issuer has fetched keys")
	}
}

// TestIssuerDown checks that tokens stay valid for a limited time if the issuer is down or returns invalid responses.
func TestIssuerDown(t *testing.T) {
	broken := map[string]func(http.ResponseWriter, *http.Request) bool{
		"an error": func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(500); return true },
		"no keys": func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/keys" {
				_, _ = w.Write([]byte(`{"keys":[]}`))
			}
			return r.URL.Path == "/keys"
		},
		"a page": func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("{}"))
			return true
		},
		"a hang":  func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true },
		"cut off": func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) },
	}
	for name, intercept := range broken {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newIssuer(t)
			r := s.resource(nil)
			long := s.good(s.changedClaims("exp", noon.Add(24*time.Hour).Unix()))
			if err := r.shows(long); err != nil {
				t.Fatal(err)
			}
			s.set(func() { s.intercept = intercept })
			if name == "a hang" {
				r.keys.client.Timeout = 50 * time.Millisecond
			}
			for _, later := range []time.Duration{keyRefreshAge + time.Second, time.Hour} {
				r.advance(later)
				if err := r.shows(long); err != nil {
					t.Errorf("after %s: %v", later, err)
				}
			}
			r.advance(keyFetchPause)
			if err := r.shows(s.sign("RS256", otherRSA(), "next", nil, s.validClaims())); !errors.Is(err, ErrUnavailable) {
				t.Errorf("a key that can't be looked up: %v", err)
			}
			r.advance(keyMaxAge)
			if err := r.shows(long); !errors.Is(err, ErrUnavailable) {
				t.Errorf("after too long: %v", err)
			}
			s.set(func() { s.intercept = nil })
			testenv.WaitUntil(t, "no fetch is in flight", func() bool {
				r.keys.mu.Lock()
				defer r.keys.mu.Unlock()
				return r.keys.flight == nil
			})
			r.keys.client.Timeout = 0 // no timeout
			r.advance(keyFetchPause)
			if err := r.shows(long); err != nil {
				t.Errorf("the issuer is back: %v", err)
			}
		})
	}
}

// TestHostileIssuer checks that oversized responses of the issuer, redirects to another origin and unsuitable keys
// are refused.
func TestHostileIssuer(t *testing.T) {
	elsewhere := newIssuer(t)
	only := func(path string, f http.HandlerFunc) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == path {
				f(w, r)
			}
			return r.URL.Path == path
		}
	}
	for name, intercept := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"10 MB": only("/keys", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"keys":[],"x":"` + strings.Repeat("x", 10<<20) + `"}`))
		}),
		"many keys": only("/keys", func(w http.ResponseWriter, _ *http.Request) {
			public, _ := jose.JSONWebKey{Key: rsaKey().Public(), KeyID: "rsa"}.MarshalJSON()
			_, _ = w.Write([]byte(`{"keys":[` + strings.Repeat(string(public)+",", maxKeys) + string(public) + `]}`))
		}),
		"keys elsewhere": only("/keys", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+"/keys", http.StatusFound)
		}),
		"another issuer": only("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, elsewhere.URL, elsewhere.URL+"/keys")
		}),
		"a secret": only("/keys", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"keys":[{"kty":"oct","kid":"rsa","k":"c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"}]}`))
		}),
	} {
		t.Run(name, func(t *testing.T) {
			s := newIssuer(t)
			s.intercept = intercept
			if err := s.resource(nil).shows(s.good(s.validClaims())); !errors.Is(err, ErrUnavailable) {
				t.Error(err)
			}
		})
	}
	if elsewhere.fetches.Load() > 0 {
		t.Error("it went elsewhere")
	}
}

// TestKeysOverHTTP checks that keys are not fetched over plain http from another machine, because anyone on the way
// could replace them.
func TestKeysOverHTTP(t *testing.T) {
	s := newIssuer(t)
	s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		_, _ = fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":"http://login.example.com/keys"}`, "http://"+r.Host)
		return true
	}
	if address, err := s.resource(nil).keys.discoverAddress(t.Context()); err == nil || !strings.Contains(err.Error(), "does not name an https address") {
		t.Errorf("%s, %v", address, err)
	}
}

// TestOddKeys checks that keys which cannot be parsed do not affect the others.
func TestOddKeys(t *testing.T) {
	s := newIssuer(t)
	s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/keys" {
			return false
		}
		public, _ := jose.JSONWebKey{Key: rsaKey().Public(), KeyID: "rsa"}.MarshalJSON()
		_, _ = fmt.Fprintf(w, `{"keys":[{"kty":"MAGIC"},7,null,{"kty":"EC","crv":"P-999"},%s]}`, public)
		return true
	}
	if err := s.resource(nil).shows(s.good(s.validClaims())); err != nil {
		t.Error(err)
	}
}
