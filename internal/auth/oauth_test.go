package auth

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

func TestAccepted(t *testing.T) {
	s := newIssuer(t)
	typed := map[jose.HeaderKey]any{"typ": "at+jwt"}
	r := s.resource(nil)
	for name, token := range map[string]string{
		"RS256":             s.good(s.validClaims()),
		"PS256":             s.sign("PS256", rsaKey(), "rsa", nil, s.validClaims()),
		"ES256":             s.sign("ES256", ecKey(), "ec", nil, s.validClaims()),
		"EdDSA":             s.sign("EdDSA", edKey(), "ed", nil, s.validClaims()),
		"an access token":   s.sign("RS256", rsaKey(), "rsa", typed, s.validClaims()),
		"a JWT":             s.sign("RS256", rsaKey(), "rsa", map[jose.HeaderKey]any{"typ": "JWT"}, s.validClaims()),
		"no name of a key":  s.sign("RS256", rsaKey(), "", nil, s.validClaims()),
		"several audiences": s.good(s.changedClaims("aud", []string{"https://other.example.com", audience})),
		"expired just now":  s.good(s.changedClaims("exp", noon.Add(-30*time.Second).Unix())),
		"made in a moment":  s.good(s.changedClaims("iat", noon.Add(30*time.Second).Unix())),
	} {
		p, err := r.authenticateToken(t.Context(), token)
		if err != nil || p.Name != "anna" || p.Expires.IsZero() || !slices.Contains(p.Scopes, "mcp:tools") {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	if n := s.fetches.Load(); n != 1 {
		t.Errorf("the keys were fetched %d times", n)
	}
}

// forgeToken returns a token with another header and signature but the same payload.
func forgeToken(t *testing.T, header map[string]any, token, signature string) string {
	t.Helper()
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(text) + "." + strings.Split(token, ".")[1] + "." + signature
}

func TestRefused(t *testing.T) {
	s := newIssuer(t)
	s.keys = append(s.keys, jose.JSONWebKey{Key: weakKey().Public(), KeyID: "weak"},
		jose.JSONWebKey{Key: otherRSA().Public(), KeyID: "crypt", Use: "enc"},
		jose.JSONWebKey{Key: otherRSA().Public(), KeyID: "pinned", Algorithm: "PS256"})
	r := s.resource(nil)
	der, err := x509.MarshalPKIXPublicKey(rsaKey().Public())
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	own := map[jose.HeaderKey]any{"jwk": jose.JSONWebKey{Key: otherRSA().Public(), KeyID: "rsa"}, "jku": s.URL + "/evil", "x5u": s.URL + "/evil"}
	good := s.good(s.validClaims())
	parts := strings.Split(good, ".")
	for name, c := range map[string]struct{ token, says string }{
		"not for the audience":    {s.good(s.changedClaims("aud", "https://github.example.com")), "not for the audience"},
		"an audience like ours":   {s.good(s.changedClaims("aud", audience+"/")), "not for the audience"},
		"no audience":             {s.good(s.changedClaims("aud", nil)), "not for the audience"},
		"another issuer":          {s.good(s.changedClaims("iss", "https://evil.example.com")), "not issued by"},
		"an issuer like ours":     {s.good(s.changedClaims("iss", s.URL+"/")), "not issued by"},
		"no issuer":               {s.good(s.changedClaims("iss", nil)), "not issued by"},
		"expired":                 {s.good(s.changedClaims("exp", noon.Add(-2*time.Minute).Unix())), "the token expired at"},
		"never expires":           {s.good(s.changedClaims("exp", nil)), "has no expiry time"},
		"not yet":                 {s.good(s.changedClaims("nbf", noon.Add(2*time.Minute).Unix())), "not valid yet"},
		"made tomorrow":           {s.good(s.changedClaims("iat", noon.Add(24*time.Hour).Unix())), "not valid yet"},
		"bound to a key":          {s.good(s.changedClaims("cnf", map[string]string{"jkt": "x"})), "bound to a key"},
		"no subject":              {s.good(s.changedClaims("sub", nil)), "no claim sub"},
		"an empty subject":        {s.good(s.changedClaims("sub", " ")), "no claim sub"},
		"a subject that hides":    {s.good(s.changedClaims("sub", "an\u202ena")), "no claim sub"},
		"a number as subject":     {s.good(s.changedClaims("sub", 7)), ""},
		"another key":             {s.sign("RS256", otherRSA(), "rsa", nil, s.validClaims()), "signature"},
		"a key that it brings":    {s.sign("RS256", otherRSA(), "rsa", own, s.validClaims()), "signature"},
		"a key of its own name":   {s.sign("RS256", otherRSA(), "mine", own, s.validClaims()), "does not publish"},
		"a key for encryption":    {s.sign("RS256", otherRSA(), "crypt", nil, s.validClaims()), "does not publish"},
		"a key for another way":   {s.sign("RS256", otherRSA(), "pinned", nil, s.validClaims()), "does not publish"},
		"a weak key":              {s.sign("RS256", weakKey(), "weak", nil, s.validClaims()), "does not publish"},
		"a key of another kind":   {s.sign("ES256", ecKey(), "rsa", nil, s.validClaims()), "does not publish"},
		"the public key as HMAC":  {s.sign("HS256", public, "rsa", nil, s.validClaims()), "not a token (JWT) signed with"},
		"another algorithm":       {s.sign("RS512", rsaKey(), "rsa", nil, s.validClaims()), "not a token (JWT) signed with"},
		"none":                    {forgeToken(t, map[string]any{"alg": "none", "kid": "rsa"}, good, ""), "not a token (JWT) signed with"},
		"None":                    {forgeToken(t, map[string]any{"alg": "nOnE", "kid": "rsa"}, good, parts[2]), "not a token (JWT) signed with"},
		"no algorithm":            {forgeToken(t, map[string]any{"kid": "rsa"}, good, parts[2]), "not a token (JWT) signed with"},
		"the algorithm changed":   {forgeToken(t, map[string]any{"alg": "PS256", "kid": "rsa"}, good, parts[2]), "signature"},
		"no signature":            {parts[0] + "." + parts[1] + ".", ""},
		"a signature of nothing":  {parts[0] + "." + parts[1] + ".AAAA", "signature"},
		"what must be understood": {s.sign("RS256", rsaKey(), "rsa", map[jose.HeaderKey]any{"crit": []string{"x"}, "x": 1}, s.validClaims()), ""},
		"a token for logging out": {s.sign("RS256", rsaKey(), "rsa", map[jose.HeaderKey]any{"typ": "logout+jwt"}, s.validClaims()), "neither at+jwt nor JWT"},
		"two tokens":              {good + "." + good, "not a token (JWT) signed with"},
		"JSON":                    {`{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`, "not a token (JWT) signed with"},
		"spaces":                  {" " + good, ""},
		"rubbish":                 {"a.b.c", "not a token (JWT) signed with"},
		"opaque":                  {strings.Repeat("x", 40), "not a token (JWT) signed with"},
	} {
		p, err := r.authenticateToken(t.Context(), c.token)
		if !errors.Is(err, ErrToken) || !strings.Contains(err.Error(), c.says) || p.Name != "" {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		if piece := strings.SplitAfterN(c.token, ".", 3); len(piece) == 3 && len(piece[1]) > 9 && strings.Contains(fmt.Sprintf("%+v", err), piece[1]) {
			t.Errorf("%s: the error tells the token", name)
		}
	}
}

// TestChangedPayload checks that a token is refused if its payload does not match its signature.
func TestChangedPayload(t *testing.T) {
	s := newIssuer(t)
	r := s.resource(nil)
	parts := strings.Split(s.good(s.validClaims()), ".")
	payload, err := json.Marshal(s.changedClaims("sub", "root"))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.shows(parts[0] + "." + base64.RawURLEncoding.EncodeToString(payload) + "." + parts[2]); !errors.Is(err, ErrToken) {
		t.Error(err)
	}
}

func TestScopes(t *testing.T) {
	s := newIssuer(t)
	r := s.resource(func(o *OAuthOptions) { o.Scopes = []string{"mcp:tools", "mcp:run"} })
	for _, c := range []struct {
		claim string
		value any
		about error
	}{
		{"scope", "mcp:run mcp:tools other", nil}, {"scp", []string{"mcp:run", "mcp:tools"}, nil}, {"scp", "mcp:run", nil},
		{"scope", "mcp:tools", ErrScope}, {"scope", nil, ErrScope}, {"scope", "mcp:tools mcp:runs", ErrScope}, {"scope", 7, ErrScope},
	} {
		if err := r.shows(s.good(s.changedClaims(c.claim, c.value))); !errors.Is(err, c.about) {
			t.Errorf("%s %v: %v", c.claim, c.value, err)
		}
	}
}

func TestNames(t *testing.T) {
	s := newIssuer(t)
	by := func(claim string) *clocked { return s.resource(func(o *OAuthOptions) { o.Principal = claim }) }
	claims := s.changedClaims("email", "anna@example.com")
	claims["upn"] = "anna@corp"
	if p, err := by("upn").authenticateToken(t.Context(), s.good(claims)); err != nil || p.Name != "anna@corp" {
		t.Errorf("%+v, %v", p, err)
	}
	for verified, counts := range map[any]bool{true: true, "true": true, false: false, nil: false, "yes": false, 1.0: false} {
		claims["email_verified"] = verified
		if p, err := by("email").authenticateToken(t.Context(), s.good(claims)); (err == nil) != counts || counts && p.Name != "anna@example.com" {
			t.Errorf("%v: %+v, %v", verified, p, err)
		}
	}
}

func TestSettings(t *testing.T) {
	for name, o := range map[string]OAuthOptions{
		"no issuer":       {Audience: audience},
		"no audience":     {Issuer: "https://a.example.com", Resource: audience},
		"http":            {Issuer: "http://a.example.com", Audience: audience},
		"keys over http":  {Issuer: "https://a.example.com", Audience: audience, JWKS: "http://a.example.com/keys"},
		"like this one":   {Issuer: "http://127.0.0.1.example.com", Audience: audience},
		"a secret signs":  {Issuer: "https://a.example.com", Audience: audience, Algorithms: []string{"HS256"}},
		"nothing signs":   {Issuer: "https://a.example.com", Audience: audience, Algorithms: []string{"none"}},
		"no address":      {Issuer: "https://a.example.com", Audience: "api://retort"},
		"with a password": {Issuer: "https://a:b@a.example.com", Audience: audience},
	} {
		if _, err := NewResource(o, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s: it counts", name)
		}
	}
}

func TestMetadata(t *testing.T) {
	s := newIssuer(t)
	for resource, path := range map[string]string{
		"https://retort.example.com/mcp": wellKnown + "/mcp", "https://retort.example.com": wellKnown, "https://retort.example.com/": wellKnown, "https://retort.example.com:8443/a/b": wellKnown + "/a/b",
	} {
		g := NewGuard(nil, s.resource(func(o *OAuthOptions) { o.Resource, o.Scopes = resource, []string{"mcp:tools"} }).JWTVerifier)
		paths, h := g.MetadataHandler()
		if paths[len(paths)-1] != path || paths[0] != wellKnown {
			t.Errorf("%s: %v", resource, paths)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		want := `{"resource":"` + resource + `","authorization_servers":["` + s.URL + `"],"scopes_supported":["mcp:tools"],"bearer_methods_supported":["header"],"resource_name":"Retort"}`
		if w.Code != 200 || w.Body.String() != want || w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%d %s %v", w.Code, w.Body, w.Header())
		}
		if host, _, _ := strings.Cut(resource[8:], "/"); g.Challenge(nil) != `Bearer realm="retort", resource_metadata="https://`+host+path+`", scope="mcp:tools"` {
			t.Error(g.Challenge(nil))
		}
		w = httptest.NewRecorder()
		if h.ServeHTTP(w, httptest.NewRequest("POST", path, nil)); w.Code != http.StatusMethodNotAllowed {
			t.Error(w.Code)
		}
	}
}

// TestRefuse checks the status, the challenge and the body of the response for each cause of refusal.
func TestRefuse(t *testing.T) {
	s := newIssuer(t)
	d := newDesk(t)
	text, _ := d.make("anna", 0)
	r := s.resource(func(o *OAuthOptions) { o.Scopes = []string{"mcp:tools"} })
	g := NewGuard(d.TokenStore, r.JWTVerifier)
	if p, err := g.Authenticate(t.Context(), text); err != nil || p.Name != "anna" {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := g.Authenticate(t.Context(), s.good(s.validClaims())); err != nil || p.Name != "anna" {
		t.Errorf("%+v, %v", p, err)
	}
	down := newIssuer(t)
	far := NewGuard(nil, down.resource(nil).JWTVerifier)
	token := down.good(down.validClaims())
	down.CloseClientConnections()
	down.Close()
	metadata := `resource_metadata="https://retort.example.com/.well-known/oauth-protected-resource/mcp", scope="mcp:tools", `
	for _, c := range []struct {
		guard           *Guard
		token           string
		status          int
		challenge, body string
	}{
		{g, "", 401, metadata + `error="invalid_token"`, "the token is missing"},
		{g, strings.Repeat("x", maxToken+1), 401, `error="invalid_token"`, "more than"},
		{g, text[:20], 401, `error="invalid_token"`, "typo"},
		{g, newToken(), 401, `error="invalid_token"`, "revoked"},
		{g, s.good(s.changedClaims("scope", "openid")), 403, `scope="mcp:tools", error="insufficient_scope"`, "lacks the scope mcp:tools"},
		{NewGuard(d.TokenStore, nil), s.good(s.validClaims()), 401, `Bearer realm="retort", error="invalid_token"`, "no authorization server"},
		{NewGuard(nil, r.JWTVerifier), text, 401, `error="invalid_token"`, "no tokens of its own"},
		{far, token, 503, "", "cannot be fetched"},
	} {
		_, err := c.guard.Authenticate(t.Context(), c.token)
		w := httptest.NewRecorder()
		c.guard.Refuse(w, err)
		if w.Code != c.status || !strings.Contains(w.Header().Get("WWW-Authenticate"), c.challenge) || !strings.Contains(w.Body.String(), c.body) {
			t.Errorf("%.20q: %d %v %s", c.token, w.Code, w.Header(), w.Body)
		}
	}
}

// TestHolds checks that IsValid returns false as soon as a token is revoked or has expired, so that long requests
// end.
func TestHolds(t *testing.T) {
	s, d := newIssuer(t), newDesk(t)
	r := s.resource(nil)
	g := NewGuard(d.TokenStore, r.JWTVerifier)
	if !d.IsEmpty() {
		t.Error("there are tokens")
	}
	var all []AuthenticatedPrincipal
	for range 2 {
		text, _ := d.make("anna", time.Hour)
		p, err := g.Authenticate(t.Context(), text)
		if all = append(all, p); err != nil {
			t.Fatal(err)
		}
	}
	p, err := g.Authenticate(t.Context(), s.good(s.validClaims()))
	if err != nil {
		t.Fatal(err)
	}
	all = append(all, p)
	held := func(want ...bool) {
		t.Helper()
		for i, p := range all {
			if g.IsValid(p) != want[i] {
				t.Errorf("%+v: %v", p, !want[i])
			}
		}
	}
	held(true, true, true)
	if _, err := d.openSecond().RevokeTokens(all[0].Token); err != nil {
		t.Fatal(err)
	}
	held(false, true, true)
	d.at = d.at.Add(time.Hour)
	r.advance(time.Hour + 2*clockLeeway)
	held(false, false, false)
	if d.IsEmpty() || g.IsValid(AuthenticatedPrincipal{}) {
		t.Error("who had tokens is as if there never were any")
	}
}

// FuzzAuthenticate checks that every text other than a valid token is refused without a panic.
func FuzzAuthenticate(f *testing.F) {
	t := &testing.T{}
	s := newIssuer(t)
	r := s.resource(nil)
	good := s.good(s.validClaims())
	for _, seed := range []string{"", "..", "a.b.c", good, good[:len(good)-2], forgeToken(t, map[string]any{"alg": "none"}, good, ""), forgeToken(t, map[string]any{"alg": "RS256", "b64": false, "crit": []string{"b64"}}, good, "AAAA")} {
		f.Add(seed)
	}
	if r.shows(good) != nil {
		f.Fatal("a good token does not count")
	}
	f.Fuzz(func(t *testing.T, token string) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		p, err := r.authenticateToken(ctx, token)
		if err == nil && token != good {
			t.Errorf("%q is %+v", token, p)
		}
	})
}
