// Package oauth logs users in at MCP servers that require OAuth, and stores and renews the tokens. It implements
// protected-resource metadata, discovery of the authorization server and PKCE. The OAuth client is identified by a
// metadata document, or registered by hand or dynamically. Tokens are bound to one resource of one server. A token is
// sent only to the address for which it was issued. Requests of a login go to public addresses or to the network that
// the server is in, and follow no redirect to another origin. Each secret is passed to Options.Secret before it is
// used.
package oauth

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"retort/internal/base/seal"
	"retort/internal/core"
)

// Settings configures the login at one server. All fields may be empty.
type Settings struct {
	ClientID       string   // client id that the user has registered by hand
	ClientSecret   string   // secret that belongs to ClientID
	ClientMetadata string   // https address of a client id metadata document
	Scopes         []string // scopes to request instead of those that the server names
	RedirectPort   int      // port of the loopback redirect; 0 means any free port
}

// Options configures a Client.
type Options struct {
	Server string // name of the server
	URL    string // address of the server's MCP endpoint
	// Principal is the owner of the login. If empty, the login is the engine's and shared by all. No Client can read
	// the login of another principal.
	Principal string
	Headers   map[string]string // headers that requests to the MCP endpoint have in addition to the credentials
	Settings  Settings
	Store     *LoginStore
	// Secret receives each value that must be redacted from all output. It may be nil.
	Secret func(label, value string)
	// Open opens an address in a browser. If it is set, Authorize logs in itself; otherwise the error of Authorize
	// names the command that logs in.
	Open func(ctx context.Context, address string) error
	// Network sends the requests. The zero value uses the network of this machine.
	Network Network
}

// Client manages the login at one server. It is safe for concurrent use, and several processes may have a Client for
// the same server. Its errors are *core.Error. If a new login would resolve an error, the error wraps core.ErrLogin.
type Client struct {
	o    Options
	http *http.Client
	turn chan struct{} // held while the token is read or renewed

	mu       sync.Mutex
	known    *storedToken
	stamp    seal.FileStamp // identifies the version of the file that known was read from
	unstored *storedToken   // renewed token that could not be written to disk yet
	wants    *bool          // whether the server uses OAuth; nil if not known yet
}

// New returns a Client. It sends and reads nothing.
func New(o Options) *Client {
	if o.Secret == nil {
		o.Secret = func(string, string) {}
	}
	c := &Client{o: o, turn: make(chan struct{}, 1)}
	c.http = o.Network.newHTTPClient(o.URL)
	return c
}

// Authorization returns the value of the Authorization header, or "" without a login. It first renews a token that is
// about to expire.
func (c *Client) Authorization(ctx context.Context) (string, error) {
	t, err := c.freshToken(ctx, "")
	if err != nil || t == nil {
		return "", err
	}
	return "Bearer " + t.Access, nil
}

// Authorize obtains new credentials after the server refused a request. Without a browser it can only renew the
// token; otherwise its error names the command that logs in.
func (c *Client) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	_ = resp.Body.Close()
	asked := challengeOf(resp)
	sent := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
	if resp.StatusCode == http.StatusForbidden {
		return c.stepUp(ctx, asked, sent)
	}
	t, err := c.freshToken(ctx, sent)
	if t != nil && t.Access != sent && err == nil {
		return nil
	}
	if err != nil && (c.o.Open == nil || !errors.Is(err, core.ErrLogin)) {
		return err
	}
	if c.o.Open == nil && t == nil && err == nil && !c.usesOAuth(ctx, asked) {
		return oauthErrorf("the server requires credentials%s", asked.errorText()).
			WithHint(
				"put them into this server's headers, as in \"Authorization\": \"Bearer …\"; or try to log in, although it announces no login: %s",
				c.loginCommand(""),
			)
	}
	why := "nobody has logged in"
	if t != nil {
		why = "the server no longer accepts the login"
	}
	return c.requireLogin(ctx, asked, why)
}

// requireLogin logs in with the browser. Without a browser it returns an error that asks the user to log in.
func (c *Client) requireLogin(ctx context.Context, asked authChallenge, why string) error {
	if c.o.Open == nil {
		return c.loginNeededError(why)
	}
	l, err := c.beginLogin(ctx, asked, LoginOptions{})
	if err != nil {
		return err
	}
	defer l.Close()
	if err := c.o.Open(ctx, l.URL); err != nil {
		return oauthErrorf("the browser could not be opened: %w", err)
	}
	return l.Wait(ctx)
}

// loginNeededError returns the error for a missing login. It wraps core.ErrLogin.
func (c *Client) loginNeededError(why string) *core.Error {
	e := core.Errorf(core.KindUpstreamGone, "upstream.oauth", "the server requires a login (%s): %w", why, core.ErrLogin).
		WithHint("a person can log in with: %s", c.loginCommand("")).AtTool(c.o.Server, "")
	e.Message = "the server requires a login: " + why
	return e
}

// loginCommand returns the command with which the user logs in at the server. If flag is not empty, the command
// contains it.
func (c *Client) loginCommand(flag string) string {
	words := []string{"retort auth login"}
	if flag != "" {
		words = append(words, flag)
	}
	if c.o.Principal != "" {
		words = append(words, "--principal "+quoteArgument(c.o.Principal))
	}
	return strings.Join(append(words, quoteArgument(c.o.Server)), " ")
}

// quoteArgument returns a name quoted for a shell, if it needs that.
func quoteArgument(name string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./", r)
	}
	if name != "" && strings.IndexFunc(name, func(r rune) bool { return !plain(r) }) < 0 {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

// stepUp asks the user to log in with more scopes, after the server has refused a token because its scopes do not
// suffice.
func (c *Client) stepUp(ctx context.Context, asked authChallenge, sent string) error {
	if asked.err != "insufficient_scope" {
		return oauthErrorf("the server answered HTTP 403 (Forbidden)%s", asked.errorText()).WithHint("the logged-in account is not allowed to do this")
	}
	t, err := c.readToken()
	if err != nil {
		return err
	}
	if t != nil && t.Access != sent {
		return nil // there is a newer login
	}
	if t == nil {
		return c.requireLogin(ctx, asked, "nobody has logged in")
	}
	if containsAll(unionOf(t.Scopes, t.Asked), asked.scopes) {
		return oauthErrorf(
			"the server refuses a login that already has all the scopes it asks for%s", asked.errorText(),
		).WithHint("the logged-in account is not allowed to do this")
	}
	if err := c.addWantedScopes(ctx, asked.scopes); err != nil {
		return err
	}
	return c.requireLogin(ctx, asked, "the call needs more rights: "+strings.Join(asked.scopes, " "))
}

// addWantedScopes stores scopes that the next login must ask for.
func (c *Client) addWantedScopes(ctx context.Context, scopes []string) error {
	return c.changeToken(ctx, func(t *storedToken) *storedToken {
		if t != nil {
			t.Wanted = unionOf(t.Wanted, scopes)
		}
		return t
	})
}

// usesOAuth reports whether the server's challenge or its well-known addresses lead to metadata for a login. It also
// returns true if the discovery fails.
func (c *Client) usesOAuth(ctx context.Context, asked authChallenge) bool {
	if asked.metadata != "" {
		return true
	}
	c.mu.Lock()
	known := c.wants
	c.mu.Unlock()
	if known != nil {
		return *known
	}
	found, err := c.discoverServer(ctx, asked)
	uses := err != nil || !found.guessed
	if err == nil {
		c.mu.Lock()
		c.wants = &uses
		c.mu.Unlock()
	}
	return uses
}

// isFresh reports whether a token can still be sent. A token is not sent any more in the last minute before it
// expires, or in the last quarter of its lifetime if that is shorter.
func (t *storedToken) isFresh(now time.Time) bool {
	if t.Expires.IsZero() {
		return true
	}
	margin := min(time.Minute, t.Expires.Sub(t.Issued)/4)
	return now.Add(margin).Before(t.Expires)
}

func oauthErrorf(format string, args ...any) *core.Error {
	return core.Errorf(core.KindUpstreamGone, "upstream.oauth", format, args...)
}

// clipLegible returns a text from another party in a form that is safe in a message: on one line, shortened, with
// illegible characters escaped.
func clipLegible(text string) string {
	const most = 200
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return core.EscapeIllegible(text)
}

func unionOf(a, b []string) []string {
	all := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// containsAll reports whether the list all contains every element of the list some.
func containsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}
