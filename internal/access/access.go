// Package access says who it is that calls over the network: whoever has one of our own
// tokens, or a token that an OAuth authorization server has made for us. What such a
// principal may do is none of its business. Tokens are given to nobody, and are in no error.
package access

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"
	"unicode"

	"retort/internal/run"
)

// Principal is who calls.
type Principal struct {
	Name    string    // as the settings name principals
	Scopes  []string  // of a token of the authorization server
	Expires time.Time // after which it must not be believed any more; zero is never
	Token   string    // id of one of our own tokens
}

// What Authenticate's errors are about; errors.Is tells.
var (
	ErrToken       = errors.New("the token does not count")               // 401 invalid_token
	ErrScope       = errors.New("the token has not the scopes")           // 403 insufficient_scope
	ErrUnavailable = errors.New("the token cannot be judged at the time") // 503
)

// maxToken is the size of a token that is looked at.
const maxToken = 16 << 10

// Guard authenticates. It is safe for concurrent use.
type Guard struct {
	tokens *Book     // nil: there are none
	oauth  *Resource // nil: there is no authorization server
}

// NewGuard joins both ways; either may be nil.
func NewGuard(tokens *Book, oauth *Resource) *Guard { return &Guard{tokens, oauth} }

// Authenticate says who has a token. The error is a *run.Error about ErrToken, ErrScope or
// ErrUnavailable.
func (g *Guard) Authenticate(ctx context.Context, bearer string) (Principal, error) {
	switch {
	case bearer == "" || len(bearer) > maxToken:
		return Principal{}, refused(ErrToken, "there is no token, or one of more than %d bytes", maxToken)
	case strings.HasPrefix(bearer, prefix):
		if g.tokens == nil {
			return Principal{}, refused(ErrToken, "this server knows no tokens of its own")
		}
		return g.tokens.authenticate(bearer)
	case g.oauth == nil:
		return Principal{}, refused(ErrToken, "this is no token of Retort's, which begin with %s, and no authorization server is configured", prefix).
			WithHint("retort token create makes a token")
	}
	return g.oauth.authenticate(ctx, bearer)
}

// Holds says whether a principal that was authenticated still is one: its token is neither
// revoked nor expired. It is for requests that last, and cheap enough for each second.
func (g *Guard) Holds(p Principal) bool {
	if p.Token != "" {
		return g.tokens != nil && g.tokens.Holds(p.Token)
	}
	return g.oauth != nil && g.oauth.now().Before(p.Expires.Add(leeway))
}

// Challenge is the WWW-Authenticate header for a request without a token.
func (g *Guard) Challenge(*http.Request) string { return g.challenge("", "") }

func (g *Guard) challenge(code, description string) string {
	params := []string{`realm="retort"`}
	if g.oauth != nil {
		params = append(params, `resource_metadata="`+g.oauth.metadataURL+`"`)
		if len(g.oauth.o.Scopes) > 0 {
			params = append(params, `scope="`+strings.Join(g.oauth.o.Scopes, " ")+`"`)
		}
	}
	if code != "" {
		params = append(params, `error="`+code+`"`, `error_description="`+quotable(description)+`"`)
	}
	return "Bearer " + strings.Join(params, ", ")
}

// quotable leaves what RFC 6750 lets stand in a description.
func quotable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e || r == '"' || r == '\\' {
			return '\''
		}
		return r
	}, s)
}

// Refuse answers a request whose token was refused with err: status, challenge, and JSON
// that names the cause.
func (g *Guard) Refuse(w http.ResponseWriter, err error) {
	status, code := Status(err)
	e := run.AsError(err)
	h := w.Header()
	if code == "temporarily_unavailable" {
		h.Set("Retry-After", "10")
	} else {
		h.Set("WWW-Authenticate", g.challenge(code, e.Message))
	}
	body := map[string]string{"error": code, "error_description": e.Message}
	if e.Hint != "" {
		body["hint"] = e.Hint
	}
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // who asked has gone
}

// Status is the HTTP status for an error of Authenticate, and its code in OAuth.
func Status(err error) (status int, code string) {
	switch {
	case errors.Is(err, ErrScope):
		return http.StatusForbidden, "insufficient_scope"
	case errors.Is(err, ErrUnavailable):
		return http.StatusServiceUnavailable, "temporarily_unavailable"
	}
	return http.StatusUnauthorized, "invalid_token"
}

// refused is an error about one of the three.
func refused(about error, format string, args ...any) *run.Error {
	kind := run.KindPolicy
	if about == ErrUnavailable {
		kind = run.KindUpstreamGone
	}
	e := run.Errorf(kind, "access", format, args...)
	e.Err = about
	return e
}

// ValidName says whether s can name a principal.
func ValidName(s string) bool {
	return strings.TrimSpace(s) == s && s != "" && len(s) <= 128 && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
