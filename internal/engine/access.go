package engine

import (
	"context"
	"net/http"

	"retort/internal/auth"
	"retort/internal/core"
)

// callers authenticates those who call over the network. It accepts tokens of this configuration and of the
// authorization server that the settings name. It is closed with the engine.
type callers struct {
	guard *auth.Guard
	book  *auth.TokenStore // nil: there is no place for tokens
	oauth bool
	// refused returns the reason why every call of a principal is refused, or nil.
	refused func(principal string) *core.Error
}

func (e *Engine) callers() (*callers, error) {
	c := &callers{refused: func(principal string) *core.Error { return e.policy.ViewFor(principal).RefusedError() }}
	var oauth *auth.JWTVerifier
	if s := e.config.Settings.HTTP.OAuth; s.Issuer != "" {
		var err error
		if oauth, err = auth.NewResource(auth.OAuthOptions(s), e.log); err != nil {
			return nil, err
		}
		c.oauth = true
	}
	if book, err := e.OpenTokens(); err == nil {
		c.book = book
		if _, err := book.ListTokens(); err != nil {
			e.log.Warn("the access tokens cannot be read, so no token is accepted", "error", err)
		}
		e.onClose(book.Close)
	}
	c.guard = auth.NewGuard(c.book, oauth)
	return c, nil
}

// Required reports whether callers must have a token: always with an authorization server, otherwise once a first
// token has been created.
func (c *callers) Required() bool { return c.oauth || c.book != nil && !c.book.IsEmpty() }

func (c *callers) Authenticate(ctx context.Context, bearer string) (Caller, error) {
	p, err := c.guard.Authenticate(ctx, bearer)
	if err != nil {
		return Caller{}, refusal{err, c.guard}
	}
	if refused := c.refused(p.Name); refused != nil {
		refused.Err = auth.ErrToken
		return Caller{}, refusal{refused, c.guard}
	}
	credential := core.Credential{Token: p.Token}
	if p.Token == "" {
		credential.Expires = p.Expires
	}
	return Caller{
		Name: p.Name, Scopes: p.Scopes, Credential: credential,
		Holds: func() bool { return c.guard.IsValid(p) && c.refused(p.Name) == nil },
	}, nil
}

func (c *callers) Challenge(r *http.Request) string { return c.guard.Challenge(r) }

// Routes returns the HTTP handlers of the metadata that tells clients which authorization server to use, by path.
func (c *callers) Routes() map[string]http.Handler {
	routes := map[string]http.Handler{}
	paths, h := c.guard.MetadataHandler()
	for _, path := range paths {
		routes[path] = h
	}
	return routes
}

// refusal represents an authentication error that writes its own HTTP response.
type refusal struct {
	error
	guard *auth.Guard
}

func (r refusal) Refuse(w http.ResponseWriter) { r.guard.Refuse(w, r.error) }
