package auth

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"retort/internal/core"
)

// clockLeeway is the tolerance for differences between the clocks of two machines.
const clockLeeway = time.Minute

// SignatureAlgorithms returns the accepted signature algorithms. All of them use a public key. With a shared secret,
// anyone able to verify a token could also create one.
func SignatureAlgorithms() []string {
	return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
}

// OAuthOptions configures which authorization server's tokens are accepted and what the tokens must contain.
type OAuthOptions struct {
	Issuer     string   // exactly as tokens name it
	Audience   string   // audience that tokens must name
	Resource   string   // URL of this server for clients; "": Audience
	JWKS       string   // URL of the issuer's key set; "": the one in the issuer's metadata
	Scopes     []string // scopes, all of which a token must have
	Principal  string   // claim that names the principal; "": "sub"
	Groups     string   // claim that lists the principal's groups; "": no groups are read
	Algorithms []string // accepted signature algorithms; empty: RS256, PS256, ES256 and EdDSA
}

// JWTVerifier verifies tokens in the role of an OAuth 2.1 resource server.
type JWTVerifier struct {
	o           OAuthOptions
	algorithms  []jose.SignatureAlgorithm
	keys        *issuerKeys
	metadataURL string
	metadata    []byte
	path        string // path of the resource metadata
	now         func() time.Time
}

// NewResource returns a JWTVerifier, or an error if o is invalid. It fetches nothing before the first token is
// verified. If keys cannot be fetched, it writes the reason only to log, because callers must not see it.
func NewResource(o OAuthOptions, log *slog.Logger) (*JWTVerifier, error) {
	wrong := func(what, value, hint string) error {
		return core.Errorf(core.KindInvalidArguments, "access.oauth", "http.oauth: %s %q %s", what, value, hint)
	}
	o.Resource, o.Principal = cmp.Or(o.Resource, o.Audience), cmp.Or(o.Principal, "sub")
	if len(o.Algorithms) == 0 {
		o.Algorithms = []string{"RS256", "PS256", "ES256", "EdDSA"}
	}
	for what, address := range map[string]string{"issuer": o.Issuer, "resource": o.Resource, "jwks": cmp.Or(o.JWKS, o.Issuer)} {
		if !IsTrustworthyURL(address) {
			return nil, wrong(what, address, "is not an https address; http is allowed only for this machine")
		}
	}
	if o.Audience == "" {
		return nil, wrong("audience", "", "is missing: without it, tokens for other audiences would be accepted")
	}
	r := &JWTVerifier{o: o, now: time.Now, keys: newKeys(o.Issuer, o.JWKS, log)}
	for _, name := range o.Algorithms {
		if !slices.Contains(SignatureAlgorithms(), name) {
			return nil, wrong("algorithm", name, "is not one of "+strings.Join(SignatureAlgorithms(), ", "))
		}
		r.algorithms = append(r.algorithms, jose.SignatureAlgorithm(name))
	}
	return r, r.describeResource()
}

// IsTrustworthyURL reports whether responses from an address can be trusted, because it uses https or is on this
// machine.
func IsTrustworthyURL(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == "" && isTrustworthy(u)
}

// tokenClaims holds those claims of a token that are verified.
type tokenClaims struct {
	jwt.Claims
	Scope        textOrList      `json:"scope"`
	Scp          textOrList      `json:"scp"`
	Confirmation json.RawMessage `json:"cnf"`
	Verified     any             `json:"email_verified"`
}

// textOrList represents a claim that is a string or a list of strings. Any other value counts as an empty list.
type textOrList []string

func (t *textOrList) UnmarshalJSON(data []byte) error {
	var one string
	var several []string
	switch {
	case json.Unmarshal(data, &one) == nil:
		*t = strings.Fields(one)
	case json.Unmarshal(data, &several) == nil:
		*t = several
	}
	return nil
}

func (r *JWTVerifier) authenticateToken(ctx context.Context, bearer string) (AuthenticatedPrincipal, error) {
	c, named, err := r.verifyToken(ctx, bearer)
	if err != nil {
		return AuthenticatedPrincipal{}, err
	}
	if err := r.checkClaims(c); err != nil {
		return AuthenticatedPrincipal{}, err
	}
	name, err := r.principalName(c, named)
	if err != nil {
		return AuthenticatedPrincipal{}, err
	}
	groups, err := r.readGroups(named)
	if err != nil {
		return AuthenticatedPrincipal{}, err
	}
	scopes := slices.Concat(c.Scope, c.Scp)
	for _, scope := range r.o.Scopes {
		if !slices.Contains(scopes, scope) {
			return AuthenticatedPrincipal{}, refusedError(ErrScope, "the token lacks the scope %s", scope).WithHint(
				"configure the client to request this scope from the authorization server: %s", strings.Join(r.o.Scopes, " "),
			)
		}
	}
	return AuthenticatedPrincipal{Name: name, Scopes: scopes, Groups: groups, Expires: c.Expiry.Time()}, nil
}

// verifyToken parses a token and verifies that the issuer has signed it. From the token's header it uses only the
// algorithm, the type and the key ID. A key in the header is ignored, because anyone could have put it there. Keys
// are fetched only if the token names the expected issuer.
func (r *JWTVerifier) verifyToken(ctx context.Context, bearer string) (c tokenClaims, named map[string]any, err error) {
	token, err := jwt.ParseSigned(bearer, r.algorithms)
	if err != nil {
		return c, nil, refusedError(ErrToken, "this is not a token (JWT) signed with %s", strings.Join(r.o.Algorithms, ", ")).
			WithHint("opaque and encrypted tokens are not supported; http.oauth.algorithms sets the algorithms")
	}
	header := token.Headers[0]
	if kind, _ := header.ExtraHeaders[jose.HeaderType].(string); !isAccess(kind) {
		return c, nil, refusedError(ErrToken, "the type of the token is neither at+jwt nor JWT")
	}
	var looks jwt.Claims
	if token.UnsafeClaimsWithoutVerification(&looks) != nil || looks.Issuer != r.o.Issuer {
		return c, nil, refusedError(ErrToken, "the token was not issued by %s", r.o.Issuer)
	}
	candidates, err := r.keys.findKeys(ctx, header.KeyID, header.Algorithm)
	if err != nil {
		return c, nil, err
	}
	for _, key := range candidates {
		if token.Claims(key, &c, &named) == nil {
			return c, named, nil
		}
		c, named = tokenClaims{}, nil
	}
	return c, nil, refusedError(ErrToken, "the token's signature is wrong, or its claims cannot be read")
}

// isAccess reports whether kind, the type in a token's header, is allowed for an access token.
func isAccess(kind string) bool {
	switch strings.ToLower(kind) {
	case "", "jwt", "at+jwt", "application/at+jwt":
		return true
	}
	return false
}

// checkClaims returns an error unless the token is valid now and meant for this server. It also refuses a token that
// is bound to a key of its holder (claim cnf), because this server cannot check that the client holds that key.
func (r *JWTVerifier) checkClaims(c tokenClaims) error {
	now := r.now()
	if c.Expiry == nil {
		return refusedError(ErrToken, "the token has no expiry time")
	}
	if len(c.Confirmation) > 0 && string(c.Confirmation) != "null" {
		return refusedError(
			ErrToken, "the token is bound to a key of its client (cnf), which Retort does not check",
		).WithHint("configure the authorization server to issue bearer tokens for this audience")
	}
	switch c.ValidateWithLeeway(jwt.Expected{Issuer: r.o.Issuer, AnyAudience: jwt.Audience{r.o.Audience}, Time: now}, clockLeeway) {
	case nil:
		return nil
	case jwt.ErrInvalidAudience:
		return refusedError(ErrToken, "the token is not for the audience %s", r.o.Audience).WithHint(
			"the client must name this server as the resource when it requests a token",
		)
	case jwt.ErrExpired:
		return refusedError(ErrToken, "the token expired at %s, and the time here is %s", stampText(c.Expiry), now.UTC().Format(time.RFC3339))
	case jwt.ErrNotValidYet, jwt.ErrIssuedInTheFuture:
		return refusedError(ErrToken, "the token is not valid yet; the time here is %s", now.UTC().Format(time.RFC3339))
	}
	return refusedError(ErrToken, "the token does not have the expected claims")
}

func stampText(d *jwt.NumericDate) string { return d.Time().UTC().Format(time.RFC3339) }

// principalName returns the name of the principal from the configured claim. It refuses an e-mail address that is not
// verified, because many authorization servers let users enter any address.
func (r *JWTVerifier) principalName(c tokenClaims, named map[string]any) (string, error) {
	name, ok := named[r.o.Principal].(string)
	if strings.HasPrefix(name, core.GroupPrefix) {
		return "", refusedError(
			ErrToken, "the token's claim %s begins with %s, so it could be mistaken for a group", r.o.Principal, core.GroupPrefix,
		).WithHint("set http.oauth.principal: sub, which identifies principals by an id that users cannot choose")
	}
	if !ok || !ValidName(name) {
		return "", refusedError(
			ErrToken, "the token has no claim %s that can name a principal", r.o.Principal,
		).WithHint("set http.oauth.principal to another claim")
	}
	if r.o.Principal == "email" && c.Verified != true && c.Verified != "true" {
		return "", refusedError(
			ErrToken, "the token's email address is not marked as verified by the authorization server (email_verified)",
		).WithHint("set http.oauth.principal: sub, which identifies principals by an id that users cannot choose")
	}
	return name, nil
}

const wellKnown = "/.well-known/oauth-protected-resource"

// describeResource encodes the resource metadata that RFC 9728 defines.
func (r *JWTVerifier) describeResource() (err error) {
	u, err := url.Parse(r.o.Resource)
	if err != nil {
		return err
	}
	r.path = wellKnown + strings.TrimSuffix(u.EscapedPath(), "/")
	r.metadataURL = u.Scheme + "://" + u.Host + r.path
	r.metadata, err = json.Marshal(struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported,omitempty"`
		Methods  []string `json:"bearer_methods_supported"`
		Name     string   `json:"resource_name"`
	}{r.o.Resource, []string{r.o.Issuer}, r.o.Scopes, []string{"header"}, "Retort"})
	return err
}

// MetadataHandler returns the paths of the resource metadata (RFC 9728) and the handler that serves it without a
// token. Both are nil if there is no authorization server. The first path is for clients that do not know the
// resource's own path.
func (g *Guard) MetadataHandler() (paths []string, h http.Handler) {
	if g.oauth == nil {
		return nil, nil
	}
	return slices.Compact([]string{wellKnown, g.oauth.path}), http.HandlerFunc(g.oauth.serveMetadata)
}

func (r *JWTVerifier) serveMetadata(w http.ResponseWriter, req *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*") // it is public, and clients in browsers read it
	h.Set("Access-Control-Allow-Methods", "GET")
	h.Set("Access-Control-Allow-Headers", "MCP-Protocol-Version")
	switch req.Method {
	case http.MethodOptions:
		w.WriteHeader(http.StatusNoContent)
	case http.MethodGet, http.MethodHead:
		h.Set("Content-Type", "application/json")
		h.Set("Cache-Control", "public, max-age=300")
		_, _ = w.Write(r.metadata) // if it fails, the client has gone
	default:
		h.Set("Allow", "GET, HEAD, OPTIONS")
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}
