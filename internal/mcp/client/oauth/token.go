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

// longestToken bounds the length of an access token, in bytes: it must fit into a header.
const longestToken = 64 << 10

// betweenTries sets how long a token that is still valid is used after a failed attempt to renew it.
const betweenTries = 10 * time.Second

// hold waits for exclusive use of the token within this process.
func (c *Client) hold(ctx context.Context) (release func(), err error) {
	select {
	case c.turn <- struct{}{}:
		return func() { <-c.turn }, nil
	case <-ctx.Done():
		return nil, core.Errorf(core.KindUpstreamTimeout, "upstream.oauth", "the login was not renewed in time: %w", ctx.Err())
	}
}

// path returns the path of the token's file. Each principal has its own file.
func (c *Client) path() string {
	parts := []string{c.o.Server, c.o.URL}
	if c.o.Principal != "" {
		parts = append(parts, c.o.Principal)
	}
	return c.o.Store.name("token", parts...)
}

// read returns the stored token, or nil. It reads the file only if that has changed since the last
// read.
func (c *Client) read() (*token, error) {
	path := c.path()
	now := seal.StampOf(path)
	c.mu.Lock()
	known, same := c.known, c.known != nil && c.stamp.Exists() && c.stamp.Same(now)
	c.mu.Unlock()
	if same {
		return known, nil
	}
	var t token
	there, err := c.o.Store.read(path, &t)
	if err != nil || !there {
		return nil, err
	}
	if t.Server != c.o.Server || t.URL != c.o.URL || t.Principal != c.o.Principal || !isPartOf(c.o.URL, t.Resource) {
		return nil, nil // it belongs to another address or principal
	}
	c.remember(&t, now)
	return &t, nil
}

func (c *Client) remember(t *token, at seal.Stamp) {
	c.o.Secret("access token", t.Access)
	c.o.Secret("refresh token", t.Refresh)
	c.o.Secret("client secret", t.Client.Secret)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.stamp = t, at
}

// keep writes a token to disk. No token is used before that.
func (c *Client) keep(t *token) error {
	path := c.path()
	if err := c.o.Store.write(path, t); err != nil {
		return err
	}
	c.remember(t, seal.StampOf(path))
	return nil
}

// change replaces the stored token by the result of f. It holds the lock among processes.
func (c *Client) change(ctx context.Context, f func(*token) *token) error {
	release, err := c.hold(ctx)
	if err != nil {
		return err
	}
	defer release()
	unlock, err := c.o.Store.lock(c.path())
	if err != nil {
		return err
	}
	defer unlock()
	t, err := c.read()
	if err != nil || t == nil {
		return err
	}
	changed := *t
	return c.keep(f(&changed))
}

// fresh returns a token that can be sent and is not the refused one. It renews the token if necessary, and returns
// nil without a login. If several callers or processes need a new token at once, only one of them renews it.
func (c *Client) fresh(ctx context.Context, refused string) (*token, error) {
	good := func(t *token) bool { return t == nil || t.Access != refused && t.lasts(time.Now()) }
	t, err := c.read()
	if err != nil || good(t) && !c.owes() {
		return t, err
	}
	release, err := c.hold(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if t, err = c.read(); err != nil || good(t) && !c.owes() {
		return t, err
	}
	unlock, err := c.o.Store.lock(c.path())
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := c.pay(); err != nil {
		return nil, err
	}
	if t, err = c.read(); err != nil || good(t) {
		return t, err
	}
	return c.renew(ctx, *t, refused)
}

// owes reports whether a renewed token is not on disk yet.
func (c *Client) owes() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unkept != nil
}

// pay writes a renewed token to disk that could not be written when it was received.
func (c *Client) pay() error {
	c.mu.Lock()
	t := c.unkept
	c.mu.Unlock()
	if t == nil {
		return nil
	}
	if err := c.keep(t); err != nil {
		return err
	}
	c.mu.Lock()
	c.unkept = nil
	c.mu.Unlock()
	return nil
}

// renew refreshes t. It writes to disk that a refresh begins, and writes the new token to disk before it is used,
// because the server may have made the old refresh token invalid. The caller must hold the token and its lock.
func (c *Client) renew(ctx context.Context, t token, refused string) (*token, error) {
	now := time.Now()
	alive := t.Access != refused && (t.Expires.IsZero() || now.Before(t.Expires))
	switch {
	case t.Refresh == "" && alive:
		return &t, nil
	case t.Refresh == "" && t.Access == refused:
		return nil, c.needed(cmp.Or(t.Ended, "the server does not accept the login any more"))
	case t.Refresh == "":
		return nil, c.needed(cmp.Or(t.Ended, "the login has ended"))
	case t.Renewed && t.Access == refused && now.Sub(t.Issued) < time.Minute:
		return nil, c.needed("the server does not accept what was just renewed")
	case alive && now.Sub(t.Begun) < betweenTries:
		return &t, nil
	}
	cutOff := !t.Begun.IsZero()
	t.Begun = now
	if err := c.keep(&t); err != nil {
		return nil, err
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {t.Refresh}, "resource": {t.Resource}}
	a, err := c.ask(context.WithoutCancel(ctx), t.At.Token, t.Client, form) // half a refresh would lose the login
	var no *denial
	switch {
	case errors.As(err, &no) && no.final():
		return nil, c.ended(t, no, cutOff)
	case err != nil && alive:
		return &t, nil
	case err != nil:
		return nil, err
	}
	renewed := a.token(t, now)
	renewed.Renewed = true
	c.mu.Lock()
	c.unkept = &renewed
	c.mu.Unlock()
	c.o.Secret("access token", renewed.Access)
	c.o.Secret("refresh token", renewed.Refresh)
	if err := c.pay(); err != nil {
		return nil, err
	}
	return &renewed, nil
}

// ended stores that the refresh token is no longer valid, and returns the error that says why.
func (c *Client) ended(t token, no *denial, cutOff bool) error {
	why := "the login could not be renewed, " + no.Error()
	if cutOff {
		why += ", after an earlier renewal was cut off before its answer was kept"
	}
	t.Refresh, t.Begun, t.Expires, t.Ended = "", time.Time{}, time.Now(), why
	if err := c.keep(&t); err != nil {
		return err
	}
	return c.needed(why)
}

// answer holds the response of a token endpoint.
type answer struct {
	Access  string          `json:"access_token"`
	Type    string          `json:"token_type"`
	Refresh string          `json:"refresh_token"`
	Lasts   json.RawMessage `json:"expires_in"`
	Scope   *string         `json:"scope"`
}

// token returns t updated with the response.
func (a answer) token(t token, now time.Time) token {
	t.Access, t.Issued, t.Expires, t.Begun = a.Access, now, time.Time{}, time.Time{}
	if seconds := a.seconds(); seconds > 0 {
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

// seconds returns expires_in, which some servers write as a string. It returns 0 if that is missing or invalid.
func (a answer) seconds() int64 {
	const year = 365 * 24 * 60 * 60
	var n float64
	if json.Unmarshal([]byte(strings.Trim(string(a.Lasts), `"`)), &n) != nil || n < 0 {
		return 0
	}
	return int64(min(n, 10*year))
}

// denial holds an OAuth error response.
type denial struct {
	Code string `json:"error"`
	What string `json:"error_description"`
	http int
}

func (d *denial) Error() string {
	if d.Code == "" {
		return fmt.Sprintf("the authorization server answers HTTP %d", d.http)
	}
	text := "the authorization server says " + shown(d.Code)
	if d.What != "" {
		text += ": " + shown(d.What)
	}
	return text
}

// final reports whether repeating the request is pointless.
func (d *denial) final() bool {
	return d.Code == "invalid_grant" || d.Code == "invalid_client" || d.Code == "unauthorized_client"
}

// ask posts a form to a token endpoint and returns the token in the response.
func (c *Client) ask(ctx context.Context, address string, who identity, form url.Values) (answer, error) {
	var a answer
	body, err := c.post(ctx, address, who, form)
	if err != nil {
		return a, err
	}
	if json.Unmarshal(body, &a) != nil {
		return a, fail("the response of the token endpoint is not valid JSON")
	}
	c.o.Secret("access token", a.Access)
	c.o.Secret("refresh token", a.Refresh)
	switch {
	case a.Access == "":
		return a, fail("the response of the token endpoint has no token")
	case !strings.EqualFold(a.Type, "bearer"):
		return a, fail("the token is of the type %q, and only bearer tokens are known", shown(a.Type))
	case len(a.Access) > longestToken || strings.ContainsFunc(a.Access, func(r rune) bool { return r <= ' ' || r > '~' }):
		return a, fail("the token can't be sent in a header")
	}
	return a, nil
}

// post sends a form with the client's credentials. A refusal is a *denial.
func (c *Client) post(ctx context.Context, address string, who identity, form url.Values) ([]byte, error) {
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
		return nil, fail("%s is not a valid URL", shown(address))
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if who.Method == "client_secret_basic" {
		req.SetBasicAuth(url.QueryEscape(who.ID), url.QueryEscape(who.Secret))
	}
	body, code, err := c.do(req)
	if err != nil {
		return nil, err
	}
	if code < 200 || code > 299 {
		no := &denial{http: code}
		_ = json.Unmarshal(body, no) // without valid JSON only the status is reported
		return nil, core.Errorf(core.KindUpstreamGone, "upstream.oauth", "%w", no)
	}
	return body, nil
}
