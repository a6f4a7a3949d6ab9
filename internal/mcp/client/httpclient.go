package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"retort/internal/core"
)

const maxRedirects = 5

// httpEndpoint is the address of a server behind HTTP, with its configured headers and its own HTTP client, so that
// one server cannot use up the connections of another.
type httpEndpoint struct {
	url     *url.URL
	headers map[string]string
	client  *http.Client

	auth        Authorizer // obtains credentials for requests; may be nil
	authorizing sync.Mutex
}

func checkURL(raw string) *core.Error {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return core.Errorf(core.KindUpstreamGone, "upstream", "the server's url %q is not an http or https address", truncateText(raw, 200))
	}
	return nil
}

func newEndpoint(spec ServerSpec) (*httpEndpoint, *core.Error) {
	if err := checkURL(spec.URL); err != nil {
		return nil, err
	}
	u, _ := url.Parse(spec.URL)
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          16,
		MaxIdleConnsPerHost:   16,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
		// How long a server may take to answer is bounded by the call, not here.
		MaxResponseHeaderBytes: 1 << 20,
	}
	if spec.dial != nil {
		transport.DialContext = spec.dial
	}
	return &httpEndpoint{
		url: u, headers: spec.Headers, auth: spec.Auth,
		client: &http.Client{Transport: transport, CheckRedirect: checkRedirect},
	}, nil
}

// checkRedirect allows only redirects that keep the method and the origin. Others would lose the message, or send it
// with the configured headers to another site.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case !sameOrigin(req.URL, first.URL):
		return core.Errorf(
			core.KindUpstreamGone, "upstream.http",
			"the server redirects to another origin, %s://%s, which is not followed", req.URL.Scheme, req.URL.Host,
		).
			WithHint("if the new address is correct, put it into the configuration")
	case req.Method != first.Method:
		return core.Errorf(
			core.KindUpstreamGone, "upstream.http", "the server redirects to %s with a status that drops the message",
			req.URL.Redacted(),
		).
			WithHint("put the address that it redirects to into the configuration")
	case len(via) > maxRedirects:
		return core.Errorf(core.KindUpstreamGone, "upstream.http", "the server redirects more than %d times", maxRedirects)
	}
	return nil
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}

// httpMessage is one HTTP request to the server.
type httpMessage struct {
	method string
	url    *url.URL
	body   []byte
	header http.Header
	sent   func() // called when the request has been written, so that the server may have seen it; may be nil
}

// maxAuthorizations bounds how often one message is sent again with other credentials. It is 2: the first time with a
// renewed token, for example, and the second time with one that grants more rights.
const maxAuthorizations = 2

// sendAuthorized sends a message with the configured headers and credentials. If the server refuses the credentials,
// it renews them and sends the message again.
func (e *httpEndpoint) sendAuthorized(ctx context.Context, m httpMessage) (*http.Response, *core.Error) {
	for try := 0; ; try++ {
		resp, err := e.sendOnce(ctx, m)
		if err != nil || e.auth == nil || try == maxAuthorizations ||
			resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
			return resp, err
		}
		if err := e.authorizeAgain(ctx, resp); err != nil {
			return nil, err
		}
	}
}

func (e *httpEndpoint) sendOnce(ctx context.Context, m httpMessage) (*http.Response, *core.Error) {
	if m.sent != nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: m.sent})
	}
	req, err := http.NewRequestWithContext(ctx, m.method, m.url.String(), bytes.NewReader(m.body))
	if err != nil {
		return nil, core.Errorf(core.KindUpstreamGone, "upstream.http", "the request cannot be created: %w", err)
	}
	req.Header = m.header.Clone()
	for name, value := range e.headers {
		if strings.EqualFold(name, "Host") {
			req.Host = value
		}
		req.Header.Set(name, value)
	}
	if e.auth != nil {
		credentials, err := e.auth.Authorization(ctx)
		if err != nil {
			return nil, errAuthorizing(err)
		}
		if credentials != "" {
			req.Header.Set("Authorization", credentials)
		}
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return nil, errTransport(err)
	}
	return resp, nil
}

// authorizeAgain obtains new credentials after a refusal. If several requests were refused at the same time, only the
// first request obtains new credentials, and the others use these.
func (e *httpEndpoint) authorizeAgain(ctx context.Context, resp *http.Response) *core.Error {
	e.authorizing.Lock()
	defer e.authorizing.Unlock()
	now, err := e.auth.Authorization(ctx)
	if err == nil && now != "" && now != resp.Request.Header.Get("Authorization") {
		_ = resp.Body.Close()
		return nil
	}
	if err := e.auth.Authorize(ctx, resp.Request, resp); err != nil {
		failed := errAuthorizing(err)
		failed.Err = errors.Join(failed.Err, statusError(resp.StatusCode))
		return failed
	}
	return nil
}

// errUnauthorized marks the error of a request that was refused because of its credentials, or was not sent because
// there were no credentials. In both cases the request had no effect.
var errUnauthorized = errors.New("unauthorized")

func errAuthorizing(err error) *core.Error {
	var known *core.Error
	if errors.As(err, &known) {
		c := *known
		c.Err = errors.Join(errUnauthorized, known.Err)
		return &c
	}
	e := core.Errorf(core.KindUpstreamGone, "upstream.http", "no authorization for the server could be obtained: %w", err)
	e.Err = errors.Join(errUnauthorized, err)
	return e
}

func (e *httpEndpoint) close() { e.client.CloseIdleConnections() }

// errTransport returns the error of a request that got no HTTP response.
func errTransport(err error) *core.Error {
	var known *core.Error
	if errors.As(err, &known) {
		return known // of checkRedirect
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // without method and address
	}
	var dial *net.OpError
	var dns *net.DNSError
	if errors.As(err, &dns) || errors.As(err, &dial) && dial.Op == "dial" {
		return core.Errorf(core.KindUpstreamGone, "upstream.http", "the server cannot be reached: %w", &dialError{err})
	}
	return core.Errorf(core.KindUpstreamGone, "upstream.http", "the connection to the server failed: %w", err)
}

// errStatus returns the error for an unsuccessful response. It reads the beginning of the body to explain the
// failure, and closes the body.
func errStatus(resp *http.Response) *core.Error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	_ = resp.Body.Close()
	e := core.Errorf(core.KindUpstreamGone, "upstream.http", "the server answered HTTP %d (%s)%s",
		resp.StatusCode, http.StatusText(resp.StatusCode), bodyExcerpt(resp, body))
	e.Err = statusError(resp.StatusCode)
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return errAuthorization(resp, e)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if after := resp.Header.Get("Retry-After"); after != "" {
			return e.WithHint("try again after %s, as the server asks", truncateText(after, 40))
		}
		return e.WithHint("try again later")
	}
	return e
}

// statusError is the HTTP status with which a server refused a request.
type statusError int

// HTTPStatusOf returns the HTTP status with which a server refused a request, or 0 if err is about something else.
func HTTPStatusOf(err error) int {
	var s statusError
	errors.As(err, &s)
	return int(s)
}

func (s statusError) Error() string { return fmt.Sprintf("HTTP %d", int(s)) }

func errAuthorization(resp *http.Response, e *core.Error) *core.Error {
	if cause := describeChallenge(resp.Header.Get("Www-Authenticate")); cause != "" {
		e.Message = fmt.Sprintf("the server answered HTTP %d (%s): %s", resp.StatusCode, http.StatusText(resp.StatusCode), cause)
	}
	if resp.StatusCode == http.StatusForbidden {
		return e.WithHint("the credentials of this server do not allow this")
	}
	if resp.Request != nil && resp.Request.Header.Get("Authorization") != "" {
		return e.WithHint("the Authorization header among this server's headers was not accepted: renew it")
	}
	return e.WithHint("the server requires credentials: put them into this server's headers, as in \"Authorization\": \"Bearer …\"")
}

// describeChallenge describes a WWW-Authenticate header for messages.
func describeChallenge(header string) string {
	var parts []string
	for _, name := range []string{"error", "error_description", "scope"} {
		if v := challengeParameter(header, name); v != "" {
			parts = append(parts, strings.ReplaceAll(name, "_", " ")+" "+strconv.Quote(v))
		}
	}
	return strings.Join(parts, ", ")
}

// challengeParameter returns the value of the parameter name in a WWW-Authenticate header, or "".
func challengeParameter(header, name string) string {
	for rest := header; ; {
		at := strings.Index(rest, name+"=")
		if at < 0 {
			return ""
		}
		value := rest[at+len(name)+1:]
		if at > 0 && !strings.ContainsRune(" ,\t", rune(rest[at-1])) {
			rest = value
			continue
		}
		if strings.HasPrefix(value, `"`) {
			value, _, _ = strings.Cut(value[1:], `"`)
		} else {
			value, _, _ = strings.Cut(value, ",")
		}
		return safePrefix(strings.TrimSpace(value), 300)
	}
}

// bodyExcerpt returns the beginning of a text body as one line.
func bodyExcerpt(resp *http.Response, body []byte) string {
	kind := mediaType(resp)
	if len(body) == 0 || kind != "" && kind != "application/json" && !strings.HasPrefix(kind, "text/") || kind == "text/html" {
		return ""
	}
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(body), "")), " ")
	if text == "" {
		return ""
	}
	return ": " + safePrefix(text, 300)
}

func mediaType(resp *http.Response) string {
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

// dialError marks an error that occurred while connecting.
type dialError struct{ err error }

func (u *dialError) Error() string        { return u.err.Error() }
func (u *dialError) Unwrap() error        { return u.err }
func (u *dialError) Is(target error) bool { return target == errUnreachable }
