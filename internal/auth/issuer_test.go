package auth

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

const audience = "https://retort.example.com/mcp"

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// issuer is an authorization server for tests. It signs with real keys.
type issuer struct {
	*httptest.Server
	t       *testing.T
	fetches atomic.Int32

	mu        sync.Mutex
	keys      []jose.JSONWebKey
	intercept func(w http.ResponseWriter, r *http.Request) (done bool) // intercepts requests; may be nil
}

var (
	rsaKey     = sync.OnceValue(func() *rsa.PrivateKey { k, _ := rsa.GenerateKey(rand.Reader, 2048); return k })
	otherRSA   = sync.OnceValue(func() *rsa.PrivateKey { k, _ := rsa.GenerateKey(rand.Reader, 2048); return k })
	ecKey      = sync.OnceValue(func() *ecdsa.PrivateKey { k, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader); return k })
	edKey      = sync.OnceValue(func() ed25519.PrivateKey { _, k, _ := ed25519.GenerateKey(rand.Reader); return k })
	weakKey    = sync.OnceValue(func() *rsa.PrivateKey { k, _ := rsa.GenerateKey(rand.Reader, 1024); return k })
	sharedKeys = map[string]func() crypto.Signer{
		"rsa": func() crypto.Signer { return rsaKey() }, "ec": func() crypto.Signer { return ecKey() }, "ed": func() crypto.Signer { return edKey() },
	}
)

func newIssuer(t *testing.T) *issuer {
	s := &issuer{t: t}
	for id, key := range sharedKeys {
		s.keys = append(s.keys, jose.JSONWebKey{Key: key().Public(), KeyID: id, Use: "sig"})
	}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func (s *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	intercept, set := s.intercept, jose.JSONWebKeySet{Keys: s.keys}
	s.mu.Unlock()
	if r.URL.Path == "/keys" {
		s.fetches.Add(1)
	}
	switch {
	case intercept != nil && intercept(w, r):
	case r.URL.Path == "/keys":
		_ = json.NewEncoder(w).Encode(set)
	case r.URL.Path == "/.well-known/openid-configuration":
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": s.URL, "jwks_uri": s.URL + "/keys"})
	default:
		http.NotFound(w, r)
	}
}

func (s *issuer) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// resource returns a verifier that accepts the tokens of s, with a clock that the test sets.
func (s *issuer) resource(change func(*OAuthOptions)) *clocked {
	s.t.Helper()
	o := OAuthOptions{Issuer: s.URL, Audience: audience}
	if change != nil {
		change(&o)
	}
	r, err := NewResource(o, slog.New(slog.DiscardHandler))
	if err != nil {
		s.t.Fatal(err)
	}
	c := &clocked{JWTVerifier: r}
	c.set(noon)
	r.now, r.keys.now = c.get, c.get
	return c
}

type clocked struct {
	*JWTVerifier
	at atomic.Pointer[time.Time]
}

func (c *clocked) set(t time.Time)         { c.at.Store(&t) }
func (c *clocked) get() time.Time          { return *c.at.Load() }
func (c *clocked) advance(d time.Duration) { c.set(c.get().Add(d)) }
func (c *clocked) shows(token string) error {
	_, err := c.authenticateToken(context.Background(), token)
	return err
}

// validClaims returns the claims of a valid token.
func (s *issuer) validClaims() map[string]any {
	return map[string]any{"iss": s.URL, "aud": audience, "sub": "anna", "exp": noon.Add(time.Hour).Unix(), "iat": noon.Unix(), "scope": "mcp:tools openid"}
}

// changedClaims returns the claims of a valid token with one claim changed, or removed if value is nil.
func (s *issuer) changedClaims(claim string, value any) map[string]any {
	c := s.validClaims()
	if c[claim] = value; value == nil {
		delete(c, claim)
	}
	return c
}

// sign returns a signed token with these claims. headers may be nil.
func (s *issuer) sign(algorithm string, key any, id string, headers map[jose.HeaderKey]any, claims map[string]any) string {
	s.t.Helper()
	o := (&jose.SignerOptions{}).WithHeader("kid", id)
	for name, value := range headers {
		o = o.WithHeader(name, value)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(algorithm), Key: key}, o)
	if err != nil {
		s.t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

func (s *issuer) good(claims map[string]any) string {
	return s.sign("RS256", rsaKey(), "rsa", nil, claims)
}
