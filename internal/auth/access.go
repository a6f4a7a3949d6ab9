// Package auth authenticates callers on the network, either by one of Retort's own tokens or by a token that an OAuth
// authorization server issued for Retort.
//
// It does not decide what a principal may do. Tokens are never passed on to other servers, and no error contains one.
package auth

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"
	"unicode"

	"retort/internal/core"
)

// AuthenticatedPrincipal describes a caller whose token was accepted.
type AuthenticatedPrincipal struct {
	Name    string    // name of the principal, as the settings use it
	Scopes  []string  // only of a token of the authorization server
	Groups  []string  // only of a token of the authorization server; sorted, without duplicates
	Expires time.Time // when the token expires; zero: never
	Token   string    // ID of one of Retort's own tokens, otherwise ""
}

// Every error of Authenticate wraps one of these causes. The comments have the HTTP status and the OAuth error
// code.
var (
	ErrToken       = errors.New("the token is not valid")                     // 401 invalid_token
	ErrScope       = errors.New("the token lacks a required scope")           // 403 insufficient_scope
	ErrUnavailable = errors.New("the token cannot be verified at the moment") // 503
)

// maxToken is the maximum length, in bytes, of a token that Authenticate examines.
const maxToken = 16 << 10

// Guard authenticates network clients by their bearer tokens. It is safe for concurrent use.
type Guard struct {
	tokens *TokenStore  // nil: Retort's own tokens are not accepted
	oauth  *JWTVerifier // nil: there is no authorization server
}

// NewGuard returns a Guard that accepts Retort's own tokens in tokens, and the tokens of an authorization server
// that oauth verifies. Either argument may be nil; tokens of that kind are then not accepted.
func NewGuard(tokens *TokenStore, oauth *JWTVerifier) *Guard { return &Guard{tokens, oauth} }

// Authenticate returns the principal to whom a token belongs. The error is a *core.Error that wraps ErrToken,
// ErrScope or ErrUnavailable.
func (g *Guard) Authenticate(ctx context.Context, bearer string) (AuthenticatedPrincipal, error) {
	switch {
	case bearer == "" || len(bearer) > maxToken:
		return AuthenticatedPrincipal{}, refusedError(ErrToken, "the token is missing or has more than %d bytes", maxToken)
	case strings.HasPrefix(bearer, tokenPrefix):
		if g.tokens == nil {
			return AuthenticatedPrincipal{}, refusedError(ErrToken, "this server has no tokens of its own")
		}
		return g.tokens.authenticateToken(bearer)
	case g.oauth == nil:
		return AuthenticatedPrincipal{}, refusedError(
			ErrToken, "this is not a token of Retort, which would begin with %s, and no authorization server is configured",
			tokenPrefix,
		).
			WithHint("create a token with retort token create")
	}
	return g.oauth.authenticateToken(ctx, bearer)
}

// IsValid reports whether the token of an authenticated principal is still valid: neither revoked nor expired. It is
// cheap enough to be called every second during long requests.
func (g *Guard) IsValid(p AuthenticatedPrincipal) bool {
	if p.Token != "" {
		return g.tokens != nil && g.tokens.HasValid(p.Token)
	}
	return g.oauth != nil && g.oauth.now().Before(p.Expires.Add(clockLeeway))
}

// Challenge returns the value of the WWW-Authenticate header for a request without a token.
func (g *Guard) Challenge(*http.Request) string { return g.challengeHeader("", "") }

func (g *Guard) challengeHeader(code, description string) string {
	params := []string{`realm="retort"`}
	if g.oauth != nil {
		params = append(params, `resource_metadata="`+g.oauth.metadataURL+`"`)
		if len(g.oauth.o.Scopes) > 0 {
			params = append(params, `scope="`+strings.Join(g.oauth.o.Scopes, " ")+`"`)
		}
	}
	if code != "" {
		params = append(params, `error="`+code+`"`, `error_description="`+toQuotable(description)+`"`)
	}
	return "Bearer " + strings.Join(params, ", ")
}

// toQuotable replaces each character that RFC 6750 does not allow in an error description by an apostrophe.
func toQuotable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e || r == '"' || r == '\\' {
			return '\''
		}
		return r
	}, s)
}

// Refuse writes the response to a request whose token Authenticate refused with the error err. The response has a
// status, a challenge, and JSON that names the cause.
func (g *Guard) Refuse(w http.ResponseWriter, err error) {
	status, code := HTTPStatusOf(err)
	e := core.AsError(err)
	h := w.Header()
	if code == "temporarily_unavailable" {
		h.Set("Retry-After", "10")
	} else {
		h.Set("WWW-Authenticate", g.challengeHeader(code, e.Message))
	}
	body := map[string]string{"error": code, "error_description": e.Message}
	if e.Hint != "" {
		body["hint"] = e.Hint
	}
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // if it fails, the client has gone
}

// HTTPStatusOf returns the HTTP status and the OAuth error code for an error of Authenticate.
func HTTPStatusOf(err error) (status int, code string) {
	switch {
	case errors.Is(err, ErrScope):
		return http.StatusForbidden, "insufficient_scope"
	case errors.Is(err, ErrUnavailable):
		return http.StatusServiceUnavailable, "temporarily_unavailable"
	}
	return http.StatusUnauthorized, "invalid_token"
}

// refusedError returns an error with the given message that wraps about: ErrToken, ErrScope or ErrUnavailable.
func refusedError(about error, format string, args ...any) *core.Error {
	kind := core.KindPolicy
	if about == ErrUnavailable {
		kind = core.KindUpstreamGone
	}
	e := core.Errorf(kind, "access", format, args...)
	e.Err = about
	return e
}

// ValidName reports whether s is a valid name for a principal: 1 to 128 bytes of printable characters, without
// surrounding blanks. It must not begin like the settings' entries for groups.
func ValidName(s string) bool {
	return strings.TrimSpace(s) == s && s != "" && len(s) <= 128 && !strings.HasPrefix(s, core.GroupPrefix) &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
