package engine

import (
	"context"
	"net/http"
	"sync"

	"retort/internal/core"
	"retort/internal/mcp/client"
	"retort/internal/mcp/client/oauth"
	"retort/internal/privacy/secrets"
)

// serverLogins holds the OAuth logins at one server. A shared server has one login for all principals. Any other
// server has one login for each principal, and one with which the engine lists the tools. It never gives a
// principal the login of another. A nil *serverLogins has no login.
type serverLogins struct {
	options oauth.Options
	secrets *secrets.Masker
	shared  bool

	mu      sync.Mutex
	clients map[string]*oauth.Client // by principal
}

// ownerOf returns the principal whose login is used for calls of principal: "" on a shared server, otherwise
// principal.
func (l *serverLogins) ownerOf(principal string) string {
	if l == nil || l.shared {
		return ""
	}
	return principal
}

// clientFor returns the OAuth client of a principal, and creates it on first use.
func (l *serverLogins) clientFor(principal string) *oauth.Client {
	if l == nil {
		return nil
	}
	principal = l.ownerOf(principal)
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.clients[principal]
	if c == nil {
		o := l.options
		o.Principal, o.Secret = principal, newRecentSecrets(l.secrets, o.Server)
		c = oauth.New(o)
		l.clients[principal] = c
	}
	return c
}

// listPrincipals returns the principals with a stored login.
func (l *serverLogins) listPrincipals() []string {
	if l == nil || l.shared {
		return nil
	}
	return l.options.Store.PrincipalsOf(l.options.Server, l.options.URL)
}

// For returns the authorizer of the principal that uses a server instance.
func (l *serverLogins) For(c core.Caller) client.Authorizer { return l.clientFor(c.Principal) }

// Authorization returns the header value of the engine's login, which all principals use on a shared server.
func (l *serverLogins) Authorization(ctx context.Context) (string, error) {
	return l.clientFor("").Authorization(ctx)
}

// Authorize answers a server's 401 or 403 response with the engine's login, which all principals use on a shared
// server.
func (l *serverLogins) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	return l.clientFor("").Authorize(ctx, req, resp)
}
