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

// personal holds the logins at one server. A shared server has one for all principals. Any other server has one for
// each principal, and one of the engine to list the tools. A principal never gets the login of another. A nil
// *personal holds none.
type personal struct {
	options oauth.Options
	secrets *secrets.Masker
	shared  bool

	mu  sync.Mutex
	own map[string]*oauth.Client // by principal
}

// whose returns the principal whose login a principal uses: "" on a shared server.
func (l *personal) whose(principal string) string {
	if l == nil || l.shared {
		return ""
	}
	return principal
}

// of returns the OAuth client of a principal, and creates it on first use.
func (l *personal) of(principal string) *oauth.Client {
	if l == nil {
		return nil
	}
	principal = l.whose(principal)
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.own[principal]
	if c == nil {
		o := l.options
		o.Principal, o.Secret = principal, recent(l.secrets, o.Server)
		c = oauth.New(o)
		l.own[principal] = c
	}
	return c
}

// principals returns the principals with a stored login.
func (l *personal) principals() []string {
	if l == nil || l.shared {
		return nil
	}
	return l.options.Store.PrincipalsOf(l.options.Server, l.options.URL)
}

// For returns the authorizer of the principal that uses a server instance.
func (l *personal) For(c core.Caller) client.Authorizer { return l.of(c.Principal) }

// Authorization returns the header value of the engine's login, which all principals use on a shared server.
func (l *personal) Authorization(ctx context.Context) (string, error) {
	return l.of("").Authorization(ctx)
}

// Authorize answers a server's 401 or 403 response with the engine's login, which all principals use on a shared
// server.
func (l *personal) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	return l.of("").Authorize(ctx, req, resp)
}
