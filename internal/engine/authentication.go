package engine

import (
	"context"
	"net/http"

	"retort/internal/auth"
	"retort/internal/core"
)

// accessAssembly holds the access tokens for network clients.
type accessAssembly struct {
	closeStack
	tokens *auth.TokenStore // nil if the configuration has no place for tokens
}

func newAccessAssembly(c *configuration) *accessAssembly {
	tokens, err := c.OpenTokens()
	if err != nil {
		return &accessAssembly{}
	}
	var opened closeStack
	opened.push(tokens.Close)
	return &accessAssembly{opened, tokens}
}

// authenticator authenticates network clients. It accepts the access tokens of this configuration, and those of
// the authorization server that the settings name.
type authenticator struct {
	guard  *auth.Guard
	tokens *auth.TokenStore // nil if the configuration has no place for tokens
	oauth  bool             // whether the settings name an authorization server
	// refusedError returns the reason why the engine refuses all calls of a member of these groups, or nil if it does
	// not.
	refusedError func(principal string, groups []string) *core.Error
}

func (e *Engine) newAuthenticator() (*authenticator, error) {
	var oauth *auth.JWTVerifier
	if s := e.config.Settings.HTTP.OAuth; s.Issuer != "" {
		var err error
		if oauth, err = auth.NewResource(auth.OAuthOptions(s), e.log); err != nil {
			return nil, err
		}
	}
	tokens := e.access.tokens
	if tokens != nil {
		if _, err := tokens.ListTokens(); err != nil {
			e.log.Warn("the access tokens cannot be read, so no token is accepted", "error", err)
		}
	}
	return &authenticator{
		guard: auth.NewGuard(tokens, oauth), tokens: tokens, oauth: oauth != nil,
		refusedError: func(principal string, groups []string) *core.Error {
			return e.policy.ViewFor(principal, groups...).RefusedError()
		},
	}, nil
}

// Required reports whether clients must send a token. With an authorization server they always must, otherwise
// once a token has been created.
func (a *authenticator) Required() bool { return a.oauth || a.tokens != nil && !a.tokens.IsEmpty() }

func (a *authenticator) Authenticate(ctx context.Context, bearer string) (Caller, error) {
	p, err := a.guard.Authenticate(ctx, bearer)
	if err != nil {
		return Caller{}, authRefusal{err, a.guard}
	}
	if refused := a.refusedError(p.Name, p.Groups); refused != nil {
		refused.Err = auth.ErrToken
		return Caller{}, authRefusal{refused, a.guard}
	}
	credential := core.Credential{Token: p.Token}
	if p.Token == "" {
		credential.Expires = p.Expires
	}
	return Caller{
		Name: p.Name, Scopes: p.Scopes, Groups: p.Groups, Credential: credential,
		Holds: func() bool { return a.guard.IsValid(p) && a.refusedError(p.Name, p.Groups) == nil },
	}, nil
}

func (a *authenticator) Challenge(r *http.Request) string { return a.guard.Challenge(r) }

// Routes returns HTTP handlers by path. They serve the metadata that tells clients which authorization server to
// use.
func (a *authenticator) Routes() map[string]http.Handler {
	routes := map[string]http.Handler{}
	paths, h := a.guard.MetadataHandler()
	for _, path := range paths {
		routes[path] = h
	}
	return routes
}

// authRefusal is an authentication error that writes its own HTTP response.
type authRefusal struct {
	error
	guard *auth.Guard
}

func (r authRefusal) Refuse(w http.ResponseWriter) { r.guard.Refuse(w, r.error) }
