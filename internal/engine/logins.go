package engine

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"retort/internal/auth"
	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/mcp/client"
	"retort/internal/mcp/client/oauth"
	"retort/internal/privacy/secrets"
)

// The nouns of logins at servers.
type (
	// Types of logins at servers.
	LoginStatus = oauth.LoginStatus  // what is known of the login at a server
	LoginHow    = oauth.LoginOptions // how a person logs in
)

// recent returns a function that registers secrets with the masker. It keeps only the newest values of each label: an
// engine that renews tokens for months must not fill the masker.
func recent(m *secrets.Masker, server string) func(label, value string) {
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

func hasCredentials(headers map[string]string) bool {
	for name := range headers {
		if strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	return false
}

// oauthOf returns the configuration of the login at a server.
func oauthOf(c *config.Config, server string) config.OAuthClient {
	for _, s := range c.Servers {
		if s.Name == server {
			return s.OAuth
		}
	}
	return c.Settings.Servers[server].OAuth
}

// Login represents an unfinished login at a server. It must be closed.
type Login struct {
	*oauth.LoginFlow
	server, principal string
	stores            *Stores
}

// BeginLogin starts a login at a server. The user opens Login.URL in a browser. Wait finishes the login, or Paste
// with the address of the redirect. The result is recorded in the audit log.
func BeginLogin(ctx context.Context, c Config, server string, how LoginHow) (*Login, error) {
	p, client, err := c.client(server, how.Principal)
	if err != nil {
		return nil, err
	}
	l, err := client.BeginLogin(ctx, how)
	if err != nil {
		return nil, masked(p.secrets, at(err, server))
	}
	return &Login{l, server, how.Principal, p.Stores}, nil
}

// Wait waits until the user has logged in.
func (l *Login) Wait(ctx context.Context) error { return l.ended(l.LoginFlow.Wait(ctx)) }

// Paste finishes the login with the address to which the browser was redirected.
func (l *Login) Paste(ctx context.Context, address string) error {
	return l.ended(l.LoginFlow.Paste(ctx, address))
}

// ended records the result of the login in the audit log and returns its error, without secrets.
func (l *Login) ended(err error) error {
	e := loginEvent(l.server, l.principal, "ok", l.Issuer())
	if err != nil {
		e.Status = "failed"
		err = masked(l.stores.secrets, at(err, l.server))
	}
	if unrecorded := l.stores.RecordEvent(e); unrecorded != nil && err == nil {
		err = core.Errorf(core.KindInternal, "retort.login", "the login is valid, but could not be recorded: %w", unrecorded)
	}
	return err
}

func loginEvent(server, principal, status, issuer string) core.AuditEvent {
	e := core.AuditEvent{Kind: core.EventLogin, Server: server, Principal: principal, Status: status, Facts: map[string]any{}}
	if u, err := url.Parse(issuer); err == nil && u.Host != "" {
		e.Facts["issuer"] = u.Host
	}
	return e
}

// at returns err with the name of its server added.
func at(err error, server string) error {
	if err == nil {
		return nil
	}
	return core.AsError(err).AtTool(server, "")
}

// LoggedOut is the result of a logout.
type LoggedOut struct {
	Server    string `json:"server"`
	Principal string `json:"principal,omitempty"`
	Was       bool   `json:"was_logged_in"`
	Revoked   bool   `json:"revoked"` // by the authorization server
}

// Logout deletes the login of a principal at a server, and revokes it at the authorization server if that supports
// revocation. An empty principal means the engine's own login, which all principals use if the server is shared.
func Logout(ctx context.Context, c Config, server, principal string) (LoggedOut, error) {
	out := LoggedOut{Server: server, Principal: principal}
	p, client, err := c.client(server, principal)
	if err != nil {
		return out, err
	}
	status, _ := client.Status(ctx)
	out.Was, out.Revoked, err = client.RemoveLogin(ctx)
	if err != nil || !out.Was {
		return out, masked(p.secrets, at(err, server))
	}
	return out, p.RecordEvent(loginEvent(server, principal, "logout", status.Issuer))
}

// Logins returns the login status of all HTTP servers, or of the named ones, and of each principal with a stored
// login. A server without a stored login is asked whether it requires one.
func Logins(ctx context.Context, c Config, servers ...string) ([]LoginStatus, error) {
	p, err := c.withClients()
	if err != nil {
		return nil, err
	}
	for _, name := range servers {
		if _, err := p.client(name, ""); err != nil {
			return nil, err
		}
	}
	var all []LoginStatus
	for _, s := range p.now().servers {
		if len(servers) > 0 && !slices.Contains(servers, s.Name) {
			continue
		}
		all = append(all, LoginStatus{Server: s.Name, State: oauth.StateNone})
		for _, principal := range p.now().clients[s.Name].principals() {
			all = append(all, LoginStatus{Server: s.Name, Principal: principal, State: oauth.StateNone})
		}
	}
	var wait sync.WaitGroup
	for i := range all {
		if client := p.now().clients[all[i].Server].of(all[i].Principal); client != nil {
			wait.Go(func() { all[i] = p.loginAt(ctx, client, all[i]) })
		}
	}
	wait.Wait()
	return all, nil
}

// LoginsLeft returns, by principal, the servers at which a principal without a remaining token is still logged in.
// gone are the tokens that were revoked. It contacts no server.
func LoginsLeft(c Config, gone []auth.Token) (map[string][]string, error) {
	p, err := c.withClients()
	if err != nil {
		return nil, err
	}
	store, err := p.OpenTokens()
	if err != nil {
		return nil, err
	}
	tokens, err := store.ListTokens()
	if err != nil {
		return nil, known(err)
	}
	left := map[string][]string{}
	for _, t := range gone {
		if _, seen := left[t.Name]; seen || slices.ContainsFunc(tokens, func(other auth.Token) bool { return other.Name == t.Name }) {
			continue
		}
		for _, s := range p.now().servers {
			if slices.Contains(p.now().clients[s.Name].principals(), t.Name) {
				left[t.Name] = append(left[t.Name], s.Name)
			}
		}
	}
	return left, nil
}

func (p *loginServers) loginAt(ctx context.Context, client *oauth.Client, none LoginStatus) LoginStatus {
	s, kept := client.Status(ctx)
	if kept {
		s.Error = maskedError(p.secrets, s.Error)
		return s
	}
	needs, err := client.NeedsLogin(ctx)
	if err != nil {
		none.State, none.Error = oauth.StateUnknown, maskedError(p.secrets, core.AsError(err))
		return none
	}
	if needs {
		return s
	}
	return none
}

// loginServers holds the servers of a configuration with their logins, without an engine.
type loginServers struct {
	*Stores
	inForce *inForce
}

func (p *loginServers) now() *inForce { return p.inForce }

// withClients returns the servers of a configuration with their logins.
func (c Config) withClients() (*loginServers, error) {
	stores, err := OpenStores(c)
	if err != nil {
		return nil, err
	}
	servers, err := stores.prepare(c, stores.config, nil)
	if err != nil {
		return nil, err
	}
	return &loginServers{stores, servers}, nil
}

func (c Config) client(server, principal string) (*loginServers, *oauth.Client, error) {
	p, err := c.withClients()
	if err != nil {
		return nil, nil, err
	}
	client, err := p.client(server, principal)
	return p, client, err
}

// client returns the OAuth client for the login of a principal at a server.
func (p *loginServers) client(server, principal string) (*oauth.Client, error) {
	var names []string
	for _, s := range p.now().servers {
		if s.Name == server {
			return p.now().clients[server].of(principal), p.whyNoLogin(s, principal)
		}
		names = append(names, s.Name)
	}
	e := core.Errorf(core.KindInvalidArguments, "retort.login", "there is no server %q", server)
	if near := core.NearestNames(server, names, 3); len(near) > 0 {
		return nil, e.WithHint("did you mean %q?", near[0])
	}
	return nil, e.WithHint("the configured servers are %s", cmp.Or(strings.Join(names, ", "), "none"))
}

// whyNoLogin returns the reason why a principal cannot log in at a server; nil if that is possible.
func (p *loginServers) whyNoLogin(s Server, principal string) error {
	e := func(format string, args ...any) error {
		return core.Errorf(core.KindInvalidArguments, "retort.login", format, args...).AtTool(s.Name, "")
	}
	switch {
	case p.now().clients[s.Name] != nil && p.now().clients[s.Name].shared && principal != "":
		return core.Errorf(
			core.KindInvalidArguments, "retort.login", "the server %q is shared: all principals use one login there",
			s.Name,
		).AtTool(s.Name, "").
			WithHint("omit --principal, or remove servers.%s.isolation: shared from the settings", s.Name)
	case p.now().clients[s.Name] != nil:
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

// logins runs the logins that programs wait for.
type logins struct {
	*parts
	mu    sync.Mutex
	under map[whose]*loggingIn
}

// whose identifies a login by server and principal.
type whose struct{ server, principal string }

type loggingIn struct {
	done chan struct{}
	err  *core.Error
}

// loginPatience limits the time that a program waits for a user who has opened the login page.
const loginPatience = 10 * time.Minute

// Login logs the principal of ctx in at a server. All programs of that principal that need the login wait for the
// same one.
func (l *logins) Login(ctx context.Context, server string, ask func(context.Context, string) *core.Error) *core.Error {
	key := whose{server, l.now().clients[server].whose(core.CallerOf(ctx).Principal)}
	l.mu.Lock()
	if other := l.under[key]; other != nil {
		l.mu.Unlock()
		select {
		case <-other.done:
			return other.err
		case <-ctx.Done():
			return core.Errorf(core.KindCancelled, "retort.login", "the execution was cancelled while it waited for a login").AtTool(server, "")
		}
	}
	own := &loggingIn{done: make(chan struct{})}
	l.under[key] = own
	l.mu.Unlock()
	own.err = l.through(ctx, key, ask)
	l.mu.Lock()
	delete(l.under, key)
	l.mu.Unlock()
	close(own.done)
	return own.err
}

func (l *logins) through(ctx context.Context, at whose, ask func(context.Context, string) *core.Error) *core.Error {
	server := at.server
	client := l.now().clients[server].of(at.principal)
	if client == nil {
		return core.Errorf(core.KindUpstreamGone, "retort.login", "the server does not support a login").AtTool(server, "")
	}
	ctx, cancel := context.WithTimeout(ctx, 2*loginPatience)
	defer cancel()
	login, err := client.BeginLogin(ctx, oauth.LoginOptions{})
	if err != nil {
		return core.AsError(err).AtTool(server, "")
	}
	defer login.Close()
	failed := l.wait(ctx, login, ask)
	if failed == nil {
		l.live.NotifyChanged(server)
	}
	if l.audit != nil {
		e := loginEvent(server, at.principal, "ok", login.Issuer())
		if failed != nil {
			e.Status = "failed"
		}
		if refused := l.audit.Record(e, true); failed == nil {
			return refused
		}
	}
	return failed
}

// wait asks the user to log in and waits for the login at the same time: a user who has logged in from the command
// line need not answer the question.
func (l *logins) wait(ctx context.Context, login *oauth.LoginFlow, ask func(context.Context, string) *core.Error) *core.Error {
	asking, stop := context.WithCancel(ctx)
	defer stop()
	answered, done, left := make(chan *core.Error, 1), make(chan error, 1), make(chan struct{})
	go func() { defer close(left); answered <- ask(asking, login.URL) }()
	go func() { done <- login.Wait(ctx) }()
	select {
	case refused := <-answered:
		if refused != nil {
			return refused
		}
	case err := <-done:
		l.settle(login.URL, err == nil)
		defer time.AfterFunc(time.Second, stop).Stop() // if it was not asked yet
		<-left
		return core.AsError(err)
	}
	timer := time.NewTimer(loginPatience)
	defer timer.Stop()
	select {
	case err := <-done:
		return core.AsError(err)
	case <-timer.C:
		return core.Errorf(
			core.KindUpstreamGone, "retort.login", "nobody logged in within %v: %w", loginPatience, core.ErrLogin,
		).WithHint("run the program again to be asked again")
	}
}

// Needed returns, for each server whose tools are unknown because a login is missing, the error that says so.
func (l *logins) Needed() (all []*core.Error) {
	tools := l.live.Toolset()
	for name := range l.now().clients {
		if s, known := tools.FindServer(name); known && s.Name == name && len(s.Tools) > 0 {
			continue
		}
		if e := l.live.ProblemOf(name); e != nil && errors.Is(e, core.ErrLogin) {
			all = append(all, e.AtTool(name, ""))
		}
	}
	slices.SortFunc(all, func(a, b *core.Error) int { return strings.Compare(a.Server, b.Server) })
	return all
}

// awaitLogins watches for new logins, such as those from the command line. A server that needed one is listed again
// within about a second.
func (p *parts) awaitLogins() {
	const often = time.Second
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		tried := map[string]time.Time{}
		for ctx.Err() == nil {
			for name, all := range p.now().clients {
				client := all.of("") // that with which tools are listed
				if e := p.live.ProblemOf(name); e == nil || !errors.Is(e, core.ErrLogin) {
					continue
				}
				if s, _ := client.Status(ctx); s.Since != nil && !s.Since.Equal(tried[name]) {
					tried[name] = *s.Since
					p.live.NotifyChanged(name)
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(often):
			}
		}
	})
	p.onClose(func() error { stop(); done.Wait(); return nil })
}

// settle answers the pending question about a login that has finished.
func (l *logins) settle(address string, ok bool) {
	table := l.pipeline.Approvals.Table
	for _, a := range table.ListWaiting("") {
		if a.Login == address {
			_ = table.AnswerApproval(a.ID, a.Digest, core.ApprovalAnswer{Approve: ok, Note: "the login did not succeed", By: "login"})
		}
	}
}

// authorizes attaches OAuth logins to the HTTP servers that have neither credentials in their headers nor an
// authorizer yet.
func (st *Stores) authorizes(f *inForce) {
	dir := st.UserDir().Logins()
	if dir == "" {
		return
	}
	if st.logins == nil {
		st.logins = oauth.Open(dir, sync.OnceValues(st.keyed("vault.key", st.MasterKeys().Read)))
	}
	for i, s := range f.servers {
		if s.URL == "" || s.Auth != nil || s.Err != nil || hasCredentials(s.Headers) {
			continue
		}
		c := &personal{secrets: st.secrets, shared: s.Isolation == client.IsolationShared, own: map[string]*oauth.Client{}, options: oauth.Options{
			Server: s.Name, URL: s.URL, Headers: s.Headers, Settings: oauth.Settings(oauthOf(f.config, s.Name)), Store: st.logins,
		}}
		f.clients[s.Name], f.servers[i].Auth = c, c
	}
}
