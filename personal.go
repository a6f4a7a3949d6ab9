package retort

import (
	"context"
	"net/http"
	"sync"

	"retort/internal/core"
	"retort/internal/mcp/client"
	"retort/internal/mcp/client/oauth"
	"retort/internal/privacy/secrets"
)

// personal are the logins at one server: one for all where the server is shared, else one for
// each principal, and one of the engine, which lists the tools. Nobody gets the login of
// another. A nil one has none.
type personal struct {
	options oauth.Options
	secrets *secrets.Masker
	shared  bool

	mu  sync.Mutex
	own map[string]*oauth.Client // by principal
}

// whose is the principal whose login one uses.
func (l *personal) whose(principal string) string {
	if l == nil || l.shared {
		return ""
	}
	return principal
}

// of is the login of a principal.
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

// principals are those of whom a login is kept.
func (l *personal) principals() []string {
	if l == nil || l.shared {
		return nil
	}
	return l.options.Store.Principals(l.options.Server, l.options.URL)
}

// For has the login of who has an instance of the server.
func (l *personal) For(c core.Caller) client.Authorizer { return l.of(c.Principal) }

// Authorization is that of the engine, or of all.
func (l *personal) Authorization(ctx context.Context) (string, error) {
	return l.of("").Authorization(ctx)
}

// Authorize is that of the engine, or of all.
func (l *personal) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	return l.of("").Authorize(ctx, req, resp)
}
