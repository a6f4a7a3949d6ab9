package oauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"retort/internal/base/seal"
	"retort/internal/core"
)

// maxTokenBytes bounds the length of an access token, in bytes: it must fit into a header.
const maxTokenBytes = 64 << 10

// renewRetryPause is the pause after a failed attempt to renew a token, during which a token that is still valid is
// used.
const renewRetryPause = 10 * time.Second

// lockToken waits for exclusive use of the token within this process.
func (c *Client) lockToken(ctx context.Context) (release func(), err error) {
	select {
	case c.turn <- struct{}{}:
		return func() { <-c.turn }, nil
	case <-ctx.Done():
		return nil, core.Errorf(core.KindUpstreamTimeout, "upstream.oauth", "the login was not renewed in time: %w", ctx.Err())
	}
}

// tokenPath returns the path of the token's file. Each principal has its own file.
func (c *Client) tokenPath() string {
	parts := []string{c.o.Server, c.o.URL}
	if c.o.Principal != "" {
		parts = append(parts, c.o.Principal)
	}
	return c.o.Store.filePath("token", parts...)
}

// readToken returns the stored token, or nil. It reads the file only if that has changed since the last
// read.
func (c *Client) readToken() (*storedToken, error) {
	path := c.tokenPath()
	now := seal.StampOf(path)
	c.mu.Lock()
	known, same := c.known, c.known != nil && c.stamp.FileExists() && c.stamp.IsSame(now)
	c.mu.Unlock()
	if same {
		return known, nil
	}
	var t storedToken
	there, err := c.o.Store.readFile(path, &t)
	if err != nil || !there {
		return nil, err
	}
	if t.Server != c.o.Server || t.URL != c.o.URL || t.Principal != c.o.Principal || !isPartOf(c.o.URL, t.Resource) {
		return nil, nil // it belongs to another address or principal
	}
	c.rememberToken(&t, now)
	return &t, nil
}

func (c *Client) rememberToken(t *storedToken, at seal.FileStamp) {
	c.o.Secret("access token", t.Access)
	c.o.Secret("refresh token", t.Refresh)
	c.o.Secret("client secret", t.Client.Secret)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.stamp = t, at
}

// storeToken writes a token to disk. No token is used before that.
func (c *Client) storeToken(t *storedToken) error {
	path := c.tokenPath()
	if err := c.o.Store.writeFile(path, t); err != nil {
		return err
	}
	c.rememberToken(t, seal.StampOf(path))
	return nil
}

// changeToken replaces the stored token by the result of f. Meanwhile it holds two locks: one keeps other goroutines
// of this process, and one keeps other processes, from changing the token.
func (c *Client) changeToken(ctx context.Context, f func(*storedToken) *storedToken) error {
	release, err := c.lockToken(ctx)
	if err != nil {
		return err
	}
	defer release()
	unlock, err := c.o.Store.lockFile(c.tokenPath())
	if err != nil {
		return err
	}
	defer unlock()
	t, err := c.readToken()
	if err != nil || t == nil {
		return err
	}
	changed := *t
	return c.storeToken(f(&changed))
}

// freshToken returns a token that can be sent, or nil without a login. If the stored token is about to expire, or
// equals refused, a token that the server has refused, it is renewed. If several callers or processes need a new token
// at the same time, only one of them renews it.
func (c *Client) freshToken(ctx context.Context, refused string) (*storedToken, error) {
	good := func(t *storedToken) bool { return t == nil || t.Access != refused && t.isFresh(time.Now()) }
	t, err := c.readToken()
	if err != nil || good(t) && !c.hasUnstored() {
		return t, err
	}
	release, err := c.lockToken(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if t, err = c.readToken(); err != nil || good(t) && !c.hasUnstored() {
		return t, err
	}
	unlock, err := c.o.Store.lockFile(c.tokenPath())
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := c.storeUnstored(); err != nil {
		return nil, err
	}
	if t, err = c.readToken(); err != nil || good(t) {
		return t, err
	}
	return c.renewToken(ctx, *t, refused)
}

// hasUnstored reports whether a renewed token is not on disk yet.
func (c *Client) hasUnstored() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unstored != nil
}

// storeUnstored writes a renewed token to disk if writing it failed when the token was received.
func (c *Client) storeUnstored() error {
	c.mu.Lock()
	t := c.unstored
	c.mu.Unlock()
	if t == nil {
		return nil
	}
	if err := c.storeToken(t); err != nil {
		return err
	}
	c.mu.Lock()
	c.unstored = nil
	c.mu.Unlock()
	return nil
}

// renewToken refreshes t. It writes to disk that a refresh begins, and writes the new token to disk before it is
// used, because the server may have made the old refresh token invalid. The caller must have called lockToken and
// hold the lock of the token's file.
func (c *Client) renewToken(ctx context.Context, t storedToken, refused string) (*storedToken, error) {
	now := time.Now()
	alive := t.Access != refused && (t.Expires.IsZero() || now.Before(t.Expires))
	switch {
	case t.Refresh == "" && alive:
		return &t, nil
	case t.Refresh == "" && t.Access == refused:
		return nil, c.loginNeededError(cmp.Or(t.Ended, "the server no longer accepts the login"))
	case t.Refresh == "":
		return nil, c.loginNeededError(cmp.Or(t.Ended, "the login has ended"))
	case t.Renewed && t.Access == refused && now.Sub(t.Issued) < time.Minute:
		return nil, c.loginNeededError("the server does not accept the token that was just renewed")
	case alive && now.Sub(t.Begun) < renewRetryPause:
		return &t, nil
	}
	cutOff := !t.Begun.IsZero()
	t.Begun = now
	if err := c.storeToken(&t); err != nil {
		return nil, err
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {t.Refresh}, "resource": {t.Resource}}
	a, err := c.requestToken(context.WithoutCancel(ctx), t.At.Token, t.Client, form) // half a refresh would lose the login
	var no *oauthDenial
	switch {
	case errors.As(err, &no) && no.isFinal():
		return nil, c.endLogin(t, no, cutOff)
	case err != nil && alive:
		return &t, nil
	case err != nil:
		return nil, err
	}
	renewed := a.applyTo(t, now)
	renewed.Renewed = true
	c.mu.Lock()
	c.unstored = &renewed
	c.mu.Unlock()
	c.o.Secret("access token", renewed.Access)
	c.o.Secret("refresh token", renewed.Refresh)
	if err := c.storeUnstored(); err != nil {
		return nil, err
	}
	return &renewed, nil
}

// endLogin stores that the login has ended because the refresh token is no longer valid. It returns the error that
// tells the user to log in again.
func (c *Client) endLogin(t storedToken, no *oauthDenial, cutOff bool) error {
	why := "the login could not be renewed, " + no.Error()
	if cutOff {
		why += ", after an earlier renewal was interrupted before its response was stored"
	}
	t.Refresh, t.Begun, t.Expires, t.Ended = "", time.Time{}, time.Now(), why
	if err := c.storeToken(&t); err != nil {
		return err
	}
	return c.loginNeededError(why)
}

// tokenAnswer holds the response of a token endpoint.
type tokenAnswer struct {
	Access  string          `json:"access_token"`
	Type    string          `json:"token_type"`
	Refresh string          `json:"refresh_token"`
	Lasts   json.RawMessage `json:"expires_in"`
	Scope   *string         `json:"scope"`
}

// applyTo returns t updated with the response.
func (a tokenAnswer) applyTo(t storedToken, now time.Time) storedToken {
	t.Access, t.Issued, t.Expires, t.Begun = a.Access, now, time.Time{}, time.Time{}
	if seconds := a.lifetimeSeconds(); seconds > 0 {
		t.Expires = now.Add(time.Duration(seconds) * time.Second)
	}
	if a.Refresh != "" {
		t.Refresh = a.Refresh
	}
	if a.Scope != nil {
		t.Scopes = strings.Fields(*a.Scope)
	}
	return t
}

// lifetimeSeconds returns expires_in, which some servers write as a string. It returns 0 if that is missing or invalid.
func (a tokenAnswer) lifetimeSeconds() int64 {
	const year = 365 * 24 * 60 * 60
	var n float64
	if json.Unmarshal([]byte(strings.Trim(string(a.Lasts), `"`)), &n) != nil || n < 0 {
		return 0
	}
	return int64(min(n, 10*year))
}

// oauthDenial holds an OAuth error response.
type oauthDenial struct {
	Code string `json:"error"`
	What string `json:"error_description"`
	http int
}

func (d *oauthDenial) Error() string {
	if d.Code == "" {
		return fmt.Sprintf("the authorization server answers HTTP %d", d.http)
	}
	text := "the authorization server reports " + clipLegible(d.Code)
	if d.What != "" {
		text += ": " + clipLegible(d.What)
	}
	return text
}

// isFinal reports whether the error code means that the same request would always be refused.
func (d *oauthDenial) isFinal() bool {
	return d.Code == "invalid_grant" || d.Code == "invalid_client" || d.Code == "unauthorized_client"
}

// requestToken posts a form to a token endpoint and returns the token in the response.
func (c *Client) requestToken(ctx context.Context, address string, who clientIdentity, form url.Values) (tokenAnswer, error) {
	var a tokenAnswer
	body, err := c.postForm(ctx, address, who, form)
	if err != nil {
		return a, err
	}
	if json.Unmarshal(body, &a) != nil {
		return a, oauthErrorf("the response of the token endpoint is not valid JSON")
	}
	c.o.Secret("access token", a.Access)
	c.o.Secret("refresh token", a.Refresh)
	switch {
	case a.Access == "":
		return a, oauthErrorf("the response of the token endpoint has no token")
	case !strings.EqualFold(a.Type, "bearer"):
		return a, oauthErrorf("the token has the type %q, but only bearer tokens are supported", clipLegible(a.Type))
	case len(a.Access) > maxTokenBytes || strings.ContainsFunc(a.Access, func(r rune) bool { return r <= ' ' || r > '~' }):
		return a, oauthErrorf("the token cannot be sent in a header")
	}
	return a, nil
}

// postForm sends a form with the client's credentials. If the server refuses it, the error is an *oauthDenial.
func (c *Client) postForm(ctx context.Context, address string, who clientIdentity, form url.Values) ([]byte, error) {
	switch who.Method {
	case "client_secret_post":
		form.Set("client_id", who.ID)
		form.Set("client_secret", who.Secret)
	case "client_secret_basic":
	default:
		form.Set("client_id", who.ID)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, oauthErrorf("%s is not a valid URL", clipLegible(address))
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if who.Method == "client_secret_basic" {
		req.SetBasicAuth(url.QueryEscape(who.ID), url.QueryEscape(who.Secret))
	}
	body, code, err := c.doRequest(req)
	if err != nil {
		return nil, err
	}
	if code < 200 || code > 299 {
		no := &oauthDenial{http: code}
		_ = json.Unmarshal(body, no) // without valid JSON only the status is reported
		return nil, core.Errorf(core.KindUpstreamGone, "upstream.oauth", "%w", no)
	}
	return body, nil
}
