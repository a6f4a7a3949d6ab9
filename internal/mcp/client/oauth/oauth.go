// Package oauth logs a person in at the servers that want OAuth, and keeps and renews
// what they give: protected-resource metadata, discovery of the authorization server,
// PKCE, a client by metadata document, by hand or registered on the spot, and tokens that
// are good for one resource of one server.
//
// A token goes to the address for which it was issued and nowhere else. Requests of a
// login go to public addresses, or to where the server itself is, and follow no redirect
// to another origin. What must not be told is handed to Options.Secret before it is used.
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

// Settings describes what a person says about the login at one server. All may be empty.
type Settings struct {
	ClientID       string   // registered by hand
	ClientSecret   string   // that came with it
	ClientMetadata string   // https address of a client id metadata document
	Scopes         []string // asked for instead of what the server names
	RedirectPort   int      // of the loopback redirect; 0: any that is free
}

// Options describes what a Client is made of.
type Options struct {
	Server string // its name
	URL    string // of its MCP endpoint
	// Principal is whose login it is; empty is that of the engine, or of everybody. No
	// Client sees the login of another principal.
	Principal string
	Headers   map[string]string // that it wants besides credentials
	Settings  Settings
	Store     *Store
	// Secret is told of each value that must stand in no text; may be nil.
	Secret func(label, value string)
	// Open, if it is set, opens an address in a browser: then Authorize logs in by itself.
	Open func(ctx context.Context, address string) error
	// Network is how requests leave; the zero value is the machine's.
	Network Network
}

// Client has the login at one server. It is safe for concurrent use, and several
// processes may have one for the same server. Its errors are *core.Error; for those that a
// login mends, errors.Is finds core.ErrLogin.
type Client struct {
	o    Options
	http *http.Client
	turn chan struct{} // held by who reads or renews the token

	mu     sync.Mutex
	known  *token
	stamp  seal.Stamp // of the file that known was read from
	unkept *token     // renewed, and not yet on disk
	wants  *bool      // whether the server is known to use OAuth
}

// New makes a client. Nothing is sent or read.
func New(o Options) *Client {
	if o.Secret == nil {
		o.Secret = func(string, string) {}
	}
	c := &Client{o: o, turn: make(chan struct{}, 1)}
	c.http = o.Network.client(o.URL)
	return c
}

// Authorization returns the value of the header of that name, empty where nobody has logged in. A token that is about
// to end is renewed first.
func (c *Client) Authorization(ctx context.Context) (string, error) {
	t, err := c.fresh(ctx, "")
	if err != nil || t == nil {
		return "", err
	}
	return "Bearer " + t.Access, nil
}

// Authorize gets other credentials after the server refused a request. Without a browser
// it can only renew what there is; else the error says which command logs in.
func (c *Client) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	_ = resp.Body.Close()
	asked := challengeOf(resp)
	sent := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
	if resp.StatusCode == http.StatusForbidden {
		return c.stepUp(ctx, asked, sent)
	}
	t, err := c.fresh(ctx, sent)
	if t != nil && t.Access != sent && err == nil {
		return nil
	}
	if err != nil && (c.o.Open == nil || !errors.Is(err, core.ErrLogin)) {
		return err
	}
	if c.o.Open == nil && t == nil && err == nil && !c.uses(ctx, asked) {
		return fail("the server wants credentials%s", asked.text()).
			WithHint(
				"put them into this server's headers, as in \"Authorization\": \"Bearer …\"; it names no login, but perhaps has one: %s",
				c.command(""),
			)
	}
	why := "nobody has logged in"
	if t != nil {
		why = "the server does not accept the login any more"
	}
	return c.demand(ctx, asked, why)
}

// demand logs in, or says that somebody has to.
func (c *Client) demand(ctx context.Context, asked challenge, why string) error {
	if c.o.Open == nil {
		return c.needed(why)
	}
	l, err := c.begin(ctx, asked, How{})
	if err != nil {
		return err
	}
	defer l.Close()
	if err := c.o.Open(ctx, l.URL); err != nil {
		return fail("the browser could not be opened: %w", err)
	}
	return l.Wait(ctx)
}

// needed returns the error that a login mends.
func (c *Client) needed(why string) *core.Error {
	e := core.Errorf(core.KindUpstreamGone, "upstream.oauth", "the server needs a login (%s): %w", why, core.ErrLogin).
		WithHint("a person logs in with: %s", c.command("")).AtTool(c.o.Server, "")
	e.Message = "the server needs a login: " + why
	return e
}

// command returns the one that logs in, with a flag or without.
func (c *Client) command(flag string) string {
	words := []string{"retort auth login"}
	if flag != "" {
		words = append(words, flag)
	}
	if c.o.Principal != "" {
		words = append(words, "--principal "+quoted(c.o.Principal))
	}
	return strings.Join(append(words, quoted(c.o.Server)), " ")
}

// quoted returns a name as a shell takes it.
func quoted(name string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./", r)
	}
	if name != "" && strings.IndexFunc(name, func(r rune) bool { return !plain(r) }) < 0 {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

// stepUp asks for more scopes after the server said that those of the token are too few.
func (c *Client) stepUp(ctx context.Context, asked challenge, sent string) error {
	if asked.err != "insufficient_scope" {
		return fail("the server answered HTTP 403 (Forbidden)%s", asked.text()).WithHint("who is logged in may not do this")
	}
	t, err := c.read()
	if err != nil {
		return err
	}
	if t != nil && t.Access != sent {
		return nil // somebody has logged in again meanwhile
	}
	if t == nil {
		return c.demand(ctx, asked, "nobody has logged in")
	}
	if covers(union(t.Scopes, t.Asked), asked.scopes) {
		return fail("the server refuses a login that has all scopes it names%s", asked.text()).WithHint("who is logged in may not do this")
	}
	if err := c.want(ctx, asked.scopes); err != nil {
		return err
	}
	return c.demand(ctx, asked, "the call needs more rights: "+strings.Join(asked.scopes, " "))
}

// want notes scopes for the next login.
func (c *Client) want(ctx context.Context, scopes []string) error {
	return c.change(ctx, func(t *token) *token {
		if t != nil {
			t.Wanted = union(t.Wanted, scopes)
		}
		return t
	})
}

// uses reports whether the server has anything that a login could begin with.
func (c *Client) uses(ctx context.Context, asked challenge) bool {
	if asked.metadata != "" {
		return true
	}
	c.mu.Lock()
	known := c.wants
	c.mu.Unlock()
	if known != nil {
		return *known
	}
	found, err := c.discover(ctx, asked)
	uses := err != nil || !found.guessed
	if err == nil {
		c.mu.Lock()
		c.wants = &uses
		c.mu.Unlock()
	}
	return uses
}

// lasts reports whether a token can still be sent: until a minute before its end, or a
// quarter of its time if that is shorter.
func (t *token) lasts(now time.Time) bool {
	if t.Expires.IsZero() {
		return true
	}
	margin := min(time.Minute, t.Expires.Sub(t.Issued)/4)
	return now.Add(margin).Before(t.Expires)
}

func fail(format string, args ...any) *core.Error {
	return core.Errorf(core.KindUpstreamGone, "upstream.oauth", format, args...)
}

// shown returns a text of somebody else as it may stand in a message.
func shown(text string) string {
	const most = 200
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return core.EscapeIllegible(text)
}

func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// covers reports whether all has everything of some, and some has anything.
func covers(all, some []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}
