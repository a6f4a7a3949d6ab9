package oauth

import (
	"context"
	"net/url"
	"time"

	"retort/internal/core"
)

// StateNone and the following constants are the states of a stored login.
const (
	StateNone    = "not needed" // no login is needed: the server accepts the configured headers
	StateLogged  = "logged in"
	StateExpired = "expired" // the token has expired and cannot be renewed
	StateNeeded  = "login needed"
	StateUnknown = "unknown" // the server could not be reached, so the state is unknown
)

// LoginStatus describes the stored login at a server. It is determined without any request.
type LoginStatus struct {
	Server string `json:"server"`
	// Principal is the owner of the login. If empty, the login is the engine's and shared by all.
	Principal string     `json:"principal,omitempty"`
	State     string     `json:"state"`
	Issuer    string     `json:"issuer,omitempty"`
	Scopes    []string   `json:"scopes,omitempty"`
	Wanted    []string   `json:"wanted,omitempty"` // scopes that the server has requested since the login
	Since     *time.Time `json:"since,omitempty"`  // time at which the token was issued or renewed
	Until     *time.Time `json:"until,omitempty"`  // time at which the token expires; nil if the server did not say
	Renews    bool       `json:"renews,omitempty"` // Retort can renew the token without the user
	// Client is the origin of the client id: "document", "settings" or "registered".
	Client  string      `json:"client,omitempty"`
	Command string      `json:"command,omitempty"` // command with which the user logs in
	Error   *core.Error `json:"error,omitempty"`
}

// Status returns the state of the stored login. It returns false if it does not exist.
func (c *Client) Status(ctx context.Context) (LoginStatus, bool) {
	s := LoginStatus{Server: c.o.Server, Principal: c.o.Principal, State: StateNeeded, Command: c.loginCommand("")}
	t, err := c.readToken()
	if err != nil {
		s.Error = core.AsError(err)
		return s, true
	}
	if t == nil {
		return s, false
	}
	s.Issuer, s.Scopes, s.Wanted, s.Client, s.Renews = t.Issuer, t.Scopes, t.Wanted, t.Client.How, t.Refresh != ""
	s.Since = &t.Issued
	if !t.Expires.IsZero() {
		s.Until = &t.Expires
	}
	switch {
	case len(t.Wanted) > 0:
	case t.Refresh == "" && s.Until != nil && !time.Now().Before(t.Expires):
		s.State = StateExpired
	default:
		s.State, s.Command = StateLogged, ""
	}
	return s, true
}

// NeedsLogin asks the server whether it requires a login.
func (c *Client) NeedsLogin(ctx context.Context) (bool, error) {
	asked, refused, err := c.probeServer(ctx)
	if err != nil || !refused {
		return false, err
	}
	return c.usesOAuth(ctx, asked), nil
}

// RemoveLogin removes the stored login, and revokes its tokens if the authorization server supports that. The first
// result reports whether there was a login, the second whether its tokens were revoked.
func (c *Client) RemoveLogin(ctx context.Context) (was, revoked bool, err error) {
	release, err := c.lockToken(ctx)
	if err != nil {
		return false, false, err
	}
	defer release()
	unlock, err := c.o.Store.lockFile(c.tokenPath())
	if err != nil {
		return false, false, err
	}
	defer unlock()
	t, unread := c.readToken()
	if t == nil && unread == nil {
		return false, false, nil
	}
	if err := c.o.Store.removeFile(c.tokenPath()); err != nil {
		return true, false, err
	}
	c.mu.Lock()
	c.known, c.unstored = nil, nil
	c.mu.Unlock()
	return true, unread == nil && c.revokeTokens(ctx, t), nil
}

// revokeTokens revokes the tokens of a login (RFC 7009). It begins with the refresh token, because that usually also
// revokes the access tokens. It reports whether all requests succeeded.
func (c *Client) revokeTokens(ctx context.Context, t *storedToken) bool {
	if t.At.Revoke == "" {
		return false
	}
	done := true
	for _, what := range []struct{ hint, value string }{{"refresh_token", t.Refresh}, {"access_token", t.Access}} {
		if what.value == "" {
			continue
		}
		_, err := c.postForm(ctx, t.At.Revoke, t.Client, url.Values{"token": {what.value}, "token_type_hint": {what.hint}})
		done = done && err == nil
	}
	return done
}
