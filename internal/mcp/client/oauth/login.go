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

// How selects the way a user logs in. The zero value uses a browser on this machine.
type How struct {
	Device    bool   // with a code, typed in on another device
	Principal string // the owner of the login, by which the caller chooses the Client
}

// Login holds a login in progress. The caller must close it.
type Login struct {
	URL  string // that a person opens in a browser
	Code string // that the person types in there; of a device only

	client   *Client
	found    found
	who      identity
	scopes   []string
	redirect *url.URL
	state    string
	verifier string
	server   *http.Server
	device   *deviceCode
	before   string // the token when the login began

	once sync.Once
	done chan struct{}
	err  error
}

// Begin prepares a login: it discovers the authorization server and builds the address for the user to open. An
// earlier login stays valid until this one succeeds.
func (c *Client) Begin(ctx context.Context, how How) (*Login, error) {
	asked, _, err := c.knock(ctx)
	if err != nil {
		return nil, err
	}
	return c.begin(ctx, asked, how)
}

// knock sends an initialize request without credentials and returns the server's challenge. refused is true if the
// server answers with HTTP 401.
func (c *Client) knock(ctx context.Context) (asked challenge, refused bool, err error) {
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"retort","version":"0"}}}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.o.URL, bytes.NewReader([]byte(hello)))
	if err != nil {
		return asked, false, fail("the server's url is not a valid URL")
	}
	for name, value := range c.o.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := c.http.Do(req)
	if err != nil {
		return asked, false, wentWrong(req, err)
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	_ = resp.Body.Close()
	return challengeOf(resp), resp.StatusCode == http.StatusUnauthorized, nil
}

func (c *Client) begin(ctx context.Context, asked challenge, how How) (*Login, error) {
	at, err := c.discover(ctx, asked)
	if err != nil {
		return nil, err
	}
	kept, err := c.read()
	if err != nil {
		kept = nil // it can't be read, so it is replaced
	}
	before := ""
	if kept != nil {
		before = kept.Access
	}
	l := &Login{
		before: before, client: c, found: at, scopes: c.scopes(asked, at, kept), done: make(chan struct{}),
		state: rand.Text(), verifier: rand.Text() + rand.Text(),
	}
	c.o.Secret("login state", l.state)
	c.o.Secret("login verifier", l.verifier)
	if how.Device {
		return l, l.startDevice(ctx)
	}
	if at.server.Authorize == "" {
		return nil, fail("the authorization server has no page to log in at").WithHint("%s", c.command("--device"))
	}
	if err := l.listen(); err != nil {
		return nil, err
	}
	if l.who, err = c.identify(ctx, at.server, l.redirect.String()); err != nil {
		l.Close()
		return nil, err
	}
	l.URL, err = l.address()
	if err != nil {
		l.Close()
	}
	return l, err
}

// scopes returns the scopes to ask for: those of the settings, else of the challenge, else of the resource's
// metadata. If the server wants more rights than an earlier login has, the scopes of that login are added.
func (c *Client) scopes(asked challenge, at found, kept *token) []string {
	scopes := c.o.Settings.Scopes
	if len(scopes) == 0 {
		if scopes = asked.scopes; len(scopes) == 0 {
			scopes = at.scopes
		}
	}
	if kept != nil && kept.Issuer == at.server.Issuer && len(kept.Wanted)+len(asked.scopes) > 0 {
		scopes = union(union(kept.Asked, scopes), kept.Wanted)
	}
	if slices.Contains(at.server.Scopes, "offline_access") {
		scopes = union(scopes, []string{"offline_access"})
	}
	return scopes
}

// listen starts the HTTP server for the redirect on this machine. It uses the port of the settings, else the port
// with which a client is registered, else any free port.
func (l *Login) listen() error {
	c := l.client
	port := c.o.Settings.RedirectPort
	ports := []int{port}
	if port == 0 {
		ports = []int{0}
		if known, ok := c.registered(l.found.server); ok {
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
		return fail("the port %d for the redirect can't be opened: %w", port, err)
	}
	l.redirect = &url.URL{Scheme: "http", Host: at.Addr().String(), Path: "/callback"}
	l.server = &http.Server{
		Handler: http.HandlerFunc(l.redirected), ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
		MaxHeaderBytes: 64 << 10,
	}
	go func() { _ = l.server.Serve(at) }()
	return nil
}

// address returns the authorization URL for the user to open.
func (l *Login) address() (string, error) {
	u, err := url.Parse(l.found.server.Authorize)
	if err != nil {
		return "", fail("the authorization server names no page to log in at")
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
	pageFailed = "<!doctype html><title>Retort</title><p>The login did not succeed. Retort says why. You can close this page."
)

// redirected handles the redirect of the browser. It answers requests that do not belong to this login with HTTP 404
// and ignores them.
func (l *Login) redirected(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cache-Control", "no-store")
	q := r.URL.Query()
	if r.URL.Path != l.redirect.Path || r.Method != http.MethodGet || r.Host != l.redirect.Host && r.Host != "localhost:"+l.redirect.Port() ||
		!l.ours(q) {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	page := pageDone
	if l.finish(r.Context(), q) != nil {
		page = pageFailed
	}
	_, _ = io.WriteString(w, page)
}

func (l *Login) ours(q url.Values) bool {
	return subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(l.state)) == 1
}

// Paste finishes the login with the address that the browser was redirected to. The user copies it from a browser on
// another machine.
func (l *Login) Paste(ctx context.Context, address string) error {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || !l.ours(u.Query()) {
		return core.Errorf(core.KindInvalidArguments, "upstream.oauth", "that is not the address to which this login redirects").
			WithHint("copy the whole address that the browser shows after the login; it begins with %s", l.redirect)
	}
	return l.finish(ctx, u.Query())
}

// finish redeems the redirect the first time it is called. Every call returns the result of that.
func (l *Login) finish(ctx context.Context, q url.Values) error {
	l.once.Do(func() {
		defer close(l.done)
		l.err = l.redeem(context.WithoutCancel(ctx), q)
	})
	<-l.done
	return l.err
}

// redeem exchanges the parameters of a redirect for a token.
func (l *Login) redeem(ctx context.Context, q url.Values) error {
	m := l.found.server
	iss := q.Get("iss")
	l.client.o.Secret("login code", q.Get("code"))
	switch {
	case iss != "" && iss != m.Issuer && !m.withoutIssuer, iss == "" && m.NamesIssuer:
		return fail("the answer to the login is not one of %s but of %q, so it is not used", shown(m.Issuer), shown(iss)).
			WithHint("this may be an attack that mixes up two authorization servers: report it to the operator of the server")
	case q.Get("error") != "":
		return fail("%w", &denial{Code: q.Get("error"), What: q.Get("error_description")})
	case q.Get("code") == "":
		return fail("the answer to the login has no code")
	}
	return l.exchange(ctx, url.Values{
		"grant_type": {"authorization_code"}, "code": {q.Get("code")}, "redirect_uri": {l.redirect.String()}, "code_verifier": {l.verifier},
	})
}

// exchange requests a token and stores it.
func (l *Login) exchange(ctx context.Context, form url.Values) error {
	c, m := l.client, l.found.server
	form.Set("resource", l.found.resource)
	a, err := c.ask(ctx, m.Token, l.who, form)
	var no *denial
	if errors.As(err, &no) && no.Code == "invalid_client" && l.who.How == "registered" {
		_ = c.o.Store.remove(c.registrationPath(m)) // the next login registers again
	}
	if err != nil {
		return err
	}
	t := a.token(token{
		Server: c.o.Server, URL: c.o.URL, Principal: c.o.Principal, Resource: l.found.resource, Issuer: m.Issuer,
		Asked: l.scopes, Scopes: l.scopes,
		Client: l.who, At: endpoints{Token: m.Token, Revoke: m.Revoke},
	}, time.Now())
	unlock, err := c.o.Store.lock(c.path())
	if err != nil {
		return err
	}
	defer unlock()
	return c.keep(&t)
}

// Wait returns when the login has finished, with its error. It also returns nil when another process has logged in at
// the same server.
func (l *Login) Wait(ctx context.Context) error {
	if l.device != nil {
		return l.poll(ctx)
	}
	look := time.NewTicker(lookAgain)
	defer look.Stop()
	for {
		select {
		case <-l.done:
			return l.err
		case <-ctx.Done():
			return l.late(ctx)
		case <-look.C:
			t, err := l.client.read()
			if err == nil && t != nil && !t.Renewed && t.Access != l.before && len(t.Wanted) == 0 {
				return nil
			}
		}
	}
}

// lookAgain sets how often a waiting login checks whether another process has logged in.
const lookAgain = 500 * time.Millisecond

func (l *Login) late(ctx context.Context) *core.Error {
	return fail("the login was not completed: %w", ctx.Err()).WithHint("%s", l.client.command(""))
}

// Issuer returns the issuer of the authorization server.
func (l *Login) Issuer() string { return l.found.server.Issuer }

// Scopes returns the scopes that the login asks for.
func (l *Login) Scopes() []string { return slices.Clone(l.scopes) }

// Redirect returns the redirect URI without its query, or "" for a login with a code.
func (l *Login) Redirect() string {
	if l.redirect == nil {
		return ""
	}
	return l.redirect.String()
}

// Close stops listening for the redirect. It waits up to two seconds for the browser to receive its page.
func (l *Login) Close() {
	if l.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if l.server.Shutdown(ctx) != nil {
		_ = l.server.Close()
	}
}
