package oauth

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"retort/internal/core"
)

// LoginOptions selects the way a user logs in. The zero value uses a browser on this machine.
type LoginOptions struct {
	Device    bool   // use a device code, which the user enters on another device
	Principal string // owner of the login, by which the caller selects the Client
}

// LoginFlow holds a login in progress. The caller must close it.
type LoginFlow struct {
	URL  string // address that the user opens in a browser
	Code string // code that the user enters on that page; set only for a login with a device code

	client   *Client
	found    discovery
	who      clientIdentity
	scopes   []string
	redirect *url.URL
	state    string
	verifier string
	server   *http.Server
	device   *deviceCode
	before   string // access token when the login began

	once sync.Once
	done chan struct{}
	err  error
}

// BeginLogin prepares a login: it discovers the authorization server and builds the address for the user to open. An
// earlier login stays valid until this one succeeds.
func (c *Client) BeginLogin(ctx context.Context, how LoginOptions) (*LoginFlow, error) {
	asked, _, err := c.probeServer(ctx)
	if err != nil {
		return nil, err
	}
	return c.beginLogin(ctx, asked, how)
}

// probeServer sends an initialize request without credentials and returns the server's challenge. refused is true if
// the server answers with HTTP 401.
func (c *Client) probeServer(ctx context.Context) (asked authChallenge, refused bool, err error) {
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"retort","version":"0"}}}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.o.URL, bytes.NewReader([]byte(hello)))
	if err != nil {
		return asked, false, oauthErrorf("the server's url is not a valid URL")
	}
	for name, value := range c.o.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := c.http.Do(req)
	if err != nil {
		return asked, false, requestError(req, err)
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	_ = resp.Body.Close()
	return challengeOf(resp), resp.StatusCode == http.StatusUnauthorized, nil
}

func (c *Client) beginLogin(ctx context.Context, asked authChallenge, how LoginOptions) (*LoginFlow, error) {
	at, err := c.discoverServer(ctx, asked)
	if err != nil {
		return nil, err
	}
	kept, err := c.readToken()
	if err != nil {
		kept = nil // it can't be read, so it is replaced
	}
	before := ""
	if kept != nil {
		before = kept.Access
	}
	l := &LoginFlow{
		before: before, client: c, found: at, scopes: c.chooseScopes(asked, at, kept), done: make(chan struct{}),
		state: rand.Text(), verifier: rand.Text() + rand.Text(),
	}
	c.o.Secret("login state", l.state)
	c.o.Secret("login verifier", l.verifier)
	if how.Device {
		return l, l.startDevice(ctx)
	}
	if at.server.Authorize == "" {
		return nil, oauthErrorf("the authorization server has no login page").WithHint("%s", c.loginCommand("--device"))
	}
	if err := l.listenForRedirect(); err != nil {
		return nil, err
	}
	if l.who, err = c.chooseIdentity(ctx, at.server, l.redirect.String()); err != nil {
		l.Close()
		return nil, err
	}
	l.URL, err = l.authorizeURL()
	if err != nil {
		l.Close()
	}
	return l, err
}

// chooseScopes returns the scopes to ask for: those in the settings, else those in the server's challenge, else those
// in the resource's metadata. If the server wants more rights than an earlier login has, the scopes of the earlier
// login are added.
func (c *Client) chooseScopes(asked authChallenge, at discovery, kept *storedToken) []string {
	scopes := c.o.Settings.Scopes
	if len(scopes) == 0 {
		if scopes = asked.scopes; len(scopes) == 0 {
			scopes = at.scopes
		}
	}
	if kept != nil && kept.Issuer == at.server.Issuer && len(kept.Wanted)+len(asked.scopes) > 0 {
		scopes = unionOf(unionOf(kept.Asked, scopes), kept.Wanted)
	}
	if slices.Contains(at.server.Scopes, "offline_access") {
		scopes = unionOf(scopes, []string{"offline_access"})
	}
	return scopes
}

// listenForRedirect starts an HTTP server on this machine, to which the authorization server redirects the browser.
// It uses the port in the settings, else the port with which a client is registered, else any free port.
func (l *LoginFlow) listenForRedirect() error {
	c := l.client
	port := c.o.Settings.RedirectPort
	ports := []int{port}
	if port == 0 {
		ports = []int{0}
		if known, ok := c.readRegistration(l.found.server); ok {
			if u, err := url.Parse(known.Redirect); err == nil {
				p, _ := strconv.Atoi(u.Port())
				ports = []int{p, 0}
			}
		}
	}
	var at net.Listener
	var err error
	for _, p := range ports {
		if at, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p))); err == nil {
			break
		}
	}
	if err != nil {
		return oauthErrorf("the port %d for the redirect cannot be opened: %w", port, err)
	}
	l.redirect = &url.URL{Scheme: "http", Host: at.Addr().String(), Path: "/callback"}
	l.server = &http.Server{
		Handler: http.HandlerFunc(l.handleRedirect), ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
		MaxHeaderBytes: 64 << 10,
	}
	go func() { _ = l.server.Serve(at) }()
	return nil
}

// authorizeURL returns the authorization URL for the user to open.
func (l *LoginFlow) authorizeURL() (string, error) {
	u, err := url.Parse(l.found.server.Authorize)
	if err != nil {
		return "", oauthErrorf("the authorization server does not name a login page")
	}
	sum := sha256.Sum256([]byte(l.verifier))
	q := u.Query()
	for name, value := range map[string]string{
		"response_type": "code", "client_id": l.who.ID, "redirect_uri": l.redirect.String(), "state": l.state, "resource": l.found.resource,
		"code_challenge": base64.RawURLEncoding.EncodeToString(sum[:]), "code_challenge_method": "S256", "scope": strings.Join(l.scopes, " "),
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if slices.Contains(l.scopes, "offline_access") {
		q.Set("prompt", "consent") // without it OpenID Connect gives no refresh token
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

const (
	pageDone   = "<!doctype html><title>Retort</title><p>You are logged in. You can close this page."
	pageFailed = "<!doctype html><title>Retort</title><p>The login did not succeed. Retort prints the reason. You can close this page."
)

// handleRedirect handles the redirect of the browser. It answers requests that do not belong to this login with HTTP
// 404 and ignores them.
func (l *LoginFlow) handleRedirect(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cache-Control", "no-store")
	q := r.URL.Query()
	if r.URL.Path != l.redirect.Path || r.Method != http.MethodGet || r.Host != l.redirect.Host && r.Host != "localhost:"+l.redirect.Port() ||
		!l.matchesState(q) {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	page := pageDone
	if l.finishOnce(r.Context(), q) != nil {
		page = pageFailed
	}
	_, _ = io.WriteString(w, page)
}

func (l *LoginFlow) matchesState(q url.Values) bool {
	return subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(l.state)) == 1
}

// Paste finishes the login with the address that the browser was redirected to. The user copies it from a browser on
// another machine.
func (l *LoginFlow) Paste(ctx context.Context, address string) error {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || !l.matchesState(u.Query()) {
		return core.Errorf(core.KindInvalidArguments, "upstream.oauth", "this is not the address to which this login redirects").
			WithHint("copy the whole address that the browser shows after the login; it must begin with %s", l.redirect)
	}
	return l.finishOnce(ctx, u.Query())
}

// finishOnce exchanges the parameters of a redirect for a token the first time it is called. Later calls only return
// the result of the first.
func (l *LoginFlow) finishOnce(ctx context.Context, q url.Values) error {
	l.once.Do(func() {
		defer close(l.done)
		l.err = l.redeemCode(context.WithoutCancel(ctx), q)
	})
	<-l.done
	return l.err
}

// redeemCode exchanges the parameters of a redirect for a token.
func (l *LoginFlow) redeemCode(ctx context.Context, q url.Values) error {
	m := l.found.server
	iss := q.Get("iss")
	l.client.o.Secret("login code", q.Get("code"))
	switch {
	case iss != "" && iss != m.Issuer && !m.withoutIssuer, iss == "" && m.NamesIssuer:
		return oauthErrorf("the response to the login must name the issuer %s but names %q, so it is not used", clipLegible(m.Issuer), clipLegible(iss)).
			WithHint("this may be an attack that mixes up two authorization servers: report it to the operator of the server")
	case q.Get("error") != "":
		return oauthErrorf("%w", &oauthDenial{Code: q.Get("error"), What: q.Get("error_description")})
	case q.Get("code") == "":
		return oauthErrorf("the response to the login contains no code")
	}
	return l.exchangeCode(ctx, url.Values{
		"grant_type": {"authorization_code"}, "code": {q.Get("code")}, "redirect_uri": {l.redirect.String()}, "code_verifier": {l.verifier},
	})
}

// exchangeCode requests a token and stores it.
func (l *LoginFlow) exchangeCode(ctx context.Context, form url.Values) error {
	c, m := l.client, l.found.server
	form.Set("resource", l.found.resource)
	a, err := c.requestToken(ctx, m.Token, l.who, form)
	var no *oauthDenial
	if errors.As(err, &no) && no.Code == "invalid_client" && l.who.How == "registered" {
		_ = c.o.Store.removeFile(c.registrationPath(m)) // the next login registers again
	}
	if err != nil {
		return err
	}
	t := a.applyTo(storedToken{
		Server: c.o.Server, URL: c.o.URL, Principal: c.o.Principal, Resource: l.found.resource, Issuer: m.Issuer,
		Asked: l.scopes, Scopes: l.scopes,
		Client: l.who, At: tokenEndpoints{Token: m.Token, Revoke: m.Revoke},
	}, time.Now())
	unlock, err := c.o.Store.lockFile(c.tokenPath())
	if err != nil {
		return err
	}
	defer unlock()
	return c.storeToken(&t)
}

// Wait waits until the login has finished, and returns the login's error. It also returns, with nil, when another
// process has logged in at the same server.
func (l *LoginFlow) Wait(ctx context.Context) error {
	if l.device != nil {
		return l.pollDevice(ctx)
	}
	look := time.NewTicker(tokenPollInterval)
	defer look.Stop()
	for {
		select {
		case <-l.done:
			return l.err
		case <-ctx.Done():
			return l.timeoutError(ctx)
		case <-look.C:
			t, err := l.client.readToken()
			if err == nil && t != nil && !t.Renewed && t.Access != l.before && len(t.Wanted) == 0 {
				return nil
			}
		}
	}
}

// tokenPollInterval sets how often a waiting login checks whether another process has logged in.
const tokenPollInterval = 500 * time.Millisecond

func (l *LoginFlow) timeoutError(ctx context.Context) *core.Error {
	return oauthErrorf("the login was not completed: %w", ctx.Err()).WithHint("%s", l.client.loginCommand(""))
}

// Issuer returns the issuer of the authorization server.
func (l *LoginFlow) Issuer() string { return l.found.server.Issuer }

// Scopes returns the scopes that the login asks for.
func (l *LoginFlow) Scopes() []string { return slices.Clone(l.scopes) }

// Redirect returns the redirect URI without its query, or "" for a login with a code.
func (l *LoginFlow) Redirect() string {
	if l.redirect == nil {
		return ""
	}
	return l.redirect.String()
}

// Close stops listening for the redirect. It waits up to two seconds for the browser to receive its page.
func (l *LoginFlow) Close() {
	if l.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if l.server.Shutdown(ctx) != nil {
		_ = l.server.Close()
	}
}
