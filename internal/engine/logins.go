package engine

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"

	"retort/internal/auth"
	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/mcp/client"
	"retort/internal/mcp/client/oauth"
	"retort/internal/privacy/secrets"
)

// Aliases of the types of logins at servers.
type (
	LoginStatus  = oauth.LoginStatus  // the status of a login at a server
	LoginOptions = oauth.LoginOptions // how a person logs in
)

// newRecentSecrets returns a function that registers a server's secrets with the masker. Only the eight newest values
// of each label stay registered, so that an engine that renews tokens for months does not fill the masker.
func newRecentSecrets(m *secrets.Masker, server string) func(label, value string) {
	const most = 8
	var mu sync.Mutex
	kept := map[string][]string{}
	return func(label, value string) {
		mu.Lock()
		defer mu.Unlock()
		if value == "" || slices.Contains(kept[label], value) {
			return
		}
		m.Add(secrets.NamedSecret{Label: server + " " + label, Value: value})
		kept[label] = append(kept[label], value)
		if len(kept[label]) > most {
			m.DropValues(kept[label][0])
			kept[label] = kept[label][1:]
		}
	}
}

// hasCredentials reports whether the HTTP headers configured for a server contain credentials.
func hasCredentials(headers map[string]string) bool {
	for name := range headers {
		if strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	return false
}

// oauthOf returns the OAuth client configuration for logins at a server.
func oauthOf(c *config.Config, server string) config.OAuthClient {
	for _, s := range c.Servers {
		if s.Name == server {
			return s.OAuth
		}
	}
	return c.Settings.Servers[server].OAuth
}

// PendingLogin represents an unfinished login at a server. It must be closed.
type PendingLogin struct {
	*oauth.LoginFlow
	server, principal string
	stores            *Stores
}

// BeginLogin starts a login at a server. The user opens Login.URL in a browser. The caller finishes the login with
// Wait or, if the user pastes the address of the redirect, with Paste. The result is recorded in the audit log.
func BeginLogin(ctx context.Context, c Config, server string, how LoginOptions) (*PendingLogin, error) {
	p, client, err := c.openClient(server, how.Principal)
	if err != nil {
		return nil, err
	}
	l, err := client.BeginLogin(ctx, how)
	if err != nil {
		return nil, maskError(p.secrets, atServer(err, server))
	}
	return &PendingLogin{l, server, how.Principal, p.Stores}, nil
}

// Wait waits until the user has logged in.
func (l *PendingLogin) Wait(ctx context.Context) error { return l.recordEnd(l.LoginFlow.Wait(ctx)) }

// Paste finishes the login with the address to which the browser was redirected.
func (l *PendingLogin) Paste(ctx context.Context, address string) error {
	return l.recordEnd(l.LoginFlow.Paste(ctx, address))
}

// recordEnd records the result of the login in the audit log. It returns err without secrets. If recording fails, it
// returns the error of recording instead.
func (l *PendingLogin) recordEnd(err error) error {
	e := newLoginEvent(l.server, l.principal, "ok", l.Issuer())
	if err != nil {
		e.Status = "failed"
		err = maskError(l.stores.secrets, atServer(err, l.server))
	}
	if unrecorded := l.stores.RecordEvent(e); unrecorded != nil && err == nil {
		err = core.Errorf(core.KindInternal, "retort.login", "the login is valid, but could not be recorded: %w", unrecorded)
	}
	return err
}

// newLoginEvent returns the audit event of a login or logout. The event contains only the host of the issuer, not its
// full URL.
func newLoginEvent(server, principal, status, issuer string) core.AuditEvent {
	e := core.AuditEvent{Kind: core.EventLogin, Server: server, Principal: principal, Status: status, Facts: map[string]any{}}
	if u, err := url.Parse(issuer); err == nil && u.Host != "" {
		e.Facts["issuer"] = u.Host
	}
	return e
}

// atServer returns err with the name of its server added.
func atServer(err error, server string) error {
	if err == nil {
		return nil
	}
	return core.AsError(err).AtTool(server, "")
}

// LogoutResult is the result of a logout.
type LogoutResult struct {
	Server    string `json:"server"`
	Principal string `json:"principal,omitempty"`
	Was       bool   `json:"was_logged_in"`
	Revoked   bool   `json:"revoked"` // whether the authorization server revoked the tokens
}

// Logout deletes the login of a principal at a server, and revokes it at the authorization server if that supports
// revocation. An empty principal means the engine's own login, which all principals use if the server is shared.
func Logout(ctx context.Context, c Config, server, principal string) (LogoutResult, error) {
	out := LogoutResult{Server: server, Principal: principal}
	p, client, err := c.openClient(server, principal)
	if err != nil {
		return out, err
	}
	status, _ := client.Status(ctx)
	out.Was, out.Revoked, err = client.RemoveLogin(ctx)
	if err != nil || !out.Was {
		return out, maskError(p.secrets, atServer(err, server))
	}
	return out, p.RecordEvent(newLoginEvent(server, principal, "logout", status.Issuer))
}

// ListLogins returns the login status of all HTTP servers, or of the named ones, and of each principal with a stored
// login. A server without a stored login is asked whether it requires one.
func ListLogins(ctx context.Context, c Config, servers ...string) ([]LoginStatus, error) {
	p, err := c.openLoginServers()
	if err != nil {
		return nil, err
	}
	for _, name := range servers {
		if _, err := p.findClient(name, ""); err != nil {
			return nil, err
		}
	}
	var all []LoginStatus
	for _, s := range p.active.servers {
		if len(servers) > 0 && !slices.Contains(servers, s.Name) {
			continue
		}
		all = append(all, LoginStatus{Server: s.Name, State: oauth.StateNone})
		for _, principal := range p.active.logins[s.Name].listPrincipals() {
			all = append(all, LoginStatus{Server: s.Name, Principal: principal, State: oauth.StateNone})
		}
	}
	var wait sync.WaitGroup
	for i := range all {
		if client := p.active.logins[all[i].Server].clientFor(all[i].Principal); client != nil {
			wait.Go(func() { all[i] = p.statusAt(ctx, client, all[i]) })
		}
	}
	wait.Wait()
	return all, nil
}

// FindRemainingLogins finds principals whose last access token was revoked but who are still logged in at servers. It
// returns these servers by principal. gone lists the revoked tokens. It contacts no server.
func FindRemainingLogins(c Config, gone []auth.Token) (map[string][]string, error) {
	p, err := c.openLoginServers()
	if err != nil {
		return nil, err
	}
	store, err := p.OpenTokens()
	if err != nil {
		return nil, err
	}
	tokens, err := store.ListTokens()
	if err != nil {
		return nil, asError(err)
	}
	left := map[string][]string{}
	for _, t := range gone {
		if _, seen := left[t.Name]; seen || slices.ContainsFunc(tokens, func(other auth.Token) bool { return other.Name == t.Name }) {
			continue
		}
		for _, s := range p.active.servers {
			if slices.Contains(p.active.logins[s.Name].listPrincipals(), t.Name) {
				left[t.Name] = append(left[t.Name], s.Name)
			}
		}
	}
	return left, nil
}

// statusAt returns the status of a login. If no login is stored, it asks the server whether one is required. If the
// server requires no login, it returns the status given as the argument none. If the server cannot be asked, it
// returns the same status with the state unknown and the error.
func (p *loginServers) statusAt(ctx context.Context, client *oauth.Client, none LoginStatus) LoginStatus {
	s, kept := client.Status(ctx)
	if kept {
		s.Error = maskCoreError(p.secrets, s.Error)
		return s
	}
	needs, err := client.NeedsLogin(ctx)
	if err != nil {
		none.State, none.Error = oauth.StateUnknown, maskCoreError(p.secrets, core.AsError(err))
		return none
	}
	if needs {
		return s
	}
	return none
}

// loginServers holds the servers of a configuration and their logins, for commands that run no engine.
type loginServers struct {
	*Stores
	active *activeConfig
}

// openLoginServers returns the servers of a configuration with their logins.
func (c Config) openLoginServers() (*loginServers, error) {
	stores, err := OpenStores(c)
	if err != nil {
		return nil, err
	}
	servers, err := stores.prepareConfig(stores.config, nil, nil)
	if err != nil {
		return nil, err
	}
	return &loginServers{stores, servers}, nil
}

// openClient returns the OAuth client for the login of a principal at a server, and all servers with their logins.
func (c Config) openClient(server, principal string) (*loginServers, *oauth.Client, error) {
	p, err := c.openLoginServers()
	if err != nil {
		return nil, nil, err
	}
	client, err := p.findClient(server, principal)
	return p, client, err
}

// findClient returns the OAuth client for the login of a principal at a server.
func (p *loginServers) findClient(server, principal string) (*oauth.Client, error) {
	var names []string
	for _, s := range p.active.servers {
		if s.Name == server {
			return p.active.logins[server].clientFor(principal), p.explainNoLogin(s, principal)
		}
		names = append(names, s.Name)
	}
	e := core.Errorf(core.KindInvalidArguments, "retort.login", "there is no server %q", server)
	if near := core.NearestNames(server, names, 3); len(near) > 0 {
		return nil, e.WithHint("did you mean %q?", near[0])
	}
	return nil, e.WithHint("the configured servers are %s", cmp.Or(strings.Join(names, ", "), "none"))
}

// explainNoLogin returns the reason why a principal cannot log in at a server; nil if that is possible.
func (p *loginServers) explainNoLogin(s Server, principal string) error {
	e := func(format string, args ...any) error {
		return core.Errorf(core.KindInvalidArguments, "retort.login", format, args...).AtTool(s.Name, "")
	}
	switch {
	case p.active.logins[s.Name] != nil && p.active.logins[s.Name].shared && principal != "":
		return core.Errorf(
			core.KindInvalidArguments, "retort.login", "the server %q is shared: all principals use one login there",
			s.Name,
		).AtTool(s.Name, "").
			WithHint("omit --principal, or remove servers.%s.isolation: shared from the settings", s.Name)
	case p.active.logins[s.Name] != nil:
		return nil
	case s.Err != nil:
		return s.Err
	case s.URL == "":
		return e("the server %q is a program on this machine, and handles its own login", s.Name)
	case hasCredentials(s.Headers):
		return e("the server %q has its credentials in the headers of its entry", s.Name)
	}
	return e("logins cannot be stored: this user has no home directory")
}

// attachLogins attaches OAuth logins to the HTTP servers that have neither credentials in their headers nor an
// authorizer yet.
func (st *Stores) attachLogins(f *activeConfig) {
	if st.logins == nil {
		return
	}
	for i, s := range f.servers {
		if s.URL == "" || s.Auth != nil || s.Err != nil || hasCredentials(s.Headers) {
			continue
		}
		c := &serverLogins{secrets: st.secrets, shared: s.Isolation == client.IsolationShared, clients: map[string]*oauth.Client{}, options: oauth.Options{
			Server: s.Name, URL: s.URL, Headers: s.Headers, Settings: oauth.Settings(oauthOf(f.config, s.Name)), Store: st.logins,
		}}
		f.logins[s.Name], f.servers[i].Auth = c, c
	}
}
