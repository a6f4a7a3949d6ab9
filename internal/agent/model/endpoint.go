package model

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"retort/internal/core"
)

// Bounds on the requests that are made to get one answer from the model.
const (
	maxTries     = 4
	firstPause   = 500 * time.Millisecond
	longestPause = 30 * time.Second // maximum delay that an endpoint may request before the next attempt
	maxErrorBody = 64 << 10
	maxStream    = 16 << 20 // maximum size of an answer with all of its framing, in bytes
	bytesOfToken = 8        // assumed maximum bytes per token; a longer answer is cut
)

// APIFormat names the API that an endpoint implements.
type APIFormat string

// Values of APIFormat.
const (
	OpenAI    APIFormat = "openai"    // chat completions API, which Ollama and vLLM implement too
	Anthropic APIFormat = "anthropic" // Messages API
)

// Options configures a ModelEndpoint. URL and Model are required.
type Options struct {
	Format  APIFormat
	URL     string // base URL of the API, without /chat/completions or /messages
	Model   string
	Key     string
	Timeout time.Duration // time limit for one answer including retries; core.DefaultModelTimeout if 0
	// Dial connects to an IP address. If it is nil, the system's network is used.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Pause waits before the next attempt. If it is nil, a timer is used. Tests use it to avoid waiting.
	Pause func(ctx context.Context, d time.Duration) error
}

// ModelEndpoint implements a Model that is reached over HTTP.
type ModelEndpoint struct {
	o      Options
	client *http.Client
}

// New returns the model at a URL. The URL must use https, or http to this machine.
func New(o Options) (*ModelEndpoint, *core.Error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return nil, core.Errorf(core.KindInvalidArguments, "model", "model.url is not a URL such as https://example.com/v1")
	}
	if u.Scheme == "http" && !isLoopback(u.Hostname()) {
		return nil, core.Errorf(
			core.KindInvalidArguments, "model", "model.url: plain http is allowed only for this machine, but %s is another one",
			core.EscapeIllegible(u.Hostname()),
		).
			WithHint("use https, or an address such as http://127.0.0.1:11434/v1")
	}
	o.Timeout = cmp.Or(o.Timeout, core.DefaultModelTimeout)
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	}
	if o.Pause == nil {
		o.Pause = sleepFor
	}
	o.URL = strings.TrimRight(o.URL, "/")
	t := &http.Transport{
		DialContext: guardedDialer{o.Dial, u.Scheme == "http"}.dialAllowed, TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2: true, DisableCompression: true,
		MaxIdleConns: 4, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10,
	}
	if u.Scheme == "https" {
		t.Proxy = http.ProxyFromEnvironment
	}
	return &ModelEndpoint{
		o,
		&http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}, nil
}

// Name returns the name of the model.
func (e *ModelEndpoint) Name() string { return e.o.Model }

// Close closes idle connections.
func (e *ModelEndpoint) Close() error {
	e.client.CloseIdleConnections()
	return nil
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && a.Unmap().IsLoopback()
}

// guardedDialer implements a dialer that refuses forbidden addresses, such as link-local ones, before it connects.
type guardedDialer struct {
	next  func(ctx context.Context, network, address string) (net.Conn, error)
	local bool // whether only addresses of this machine are allowed
}

func (j guardedDialer) dialAllowed(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	found, err := lookupAddresses(ctx, host)
	if err != nil {
		return nil, err
	}
	err = errors.New("its name has no address")
	for _, a := range found {
		a = a.Unmap().WithZone("")
		if a.IsLinkLocalUnicast() || a.IsUnspecified() || a.IsMulticast() || j.local && !a.IsLoopback() {
			return nil, goneError("%s resolves to %s, which is not allowed for a model", core.EscapeIllegible(host), a)
		}
		var c net.Conn
		if c, err = j.next(ctx, network, net.JoinHostPort(a.String(), port)); err == nil {
			return c, nil
		}
	}
	return nil, err
}

func lookupAddresses(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	if strings.EqualFold(host, "localhost") {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// Reply sends the prompt and returns the answer. It retries if the endpoint is overloaded or temporarily unavailable.
func (e *ModelEndpoint) Reply(ctx context.Context, p ModelPrompt) (ModelReply, *core.Error) {
	ctx, cancel := context.WithTimeout(ctx, e.o.Timeout)
	defer cancel()
	body, err := json.Marshal(e.requestBody(p))
	if err != nil {
		return ModelReply{}, core.AsError(err)
	}
	for try := 0; ; try++ {
		r, wait, failed := e.requestOnce(ctx, p, body, try)
		if failed == nil {
			return estimateTokens(r, p), nil
		}
		if wait < 0 || try+1 == maxTries || e.o.Pause(ctx, wait) != nil {
			return ModelReply{}, e.requestError(ctx, failed)
		}
	}
}

// requestError returns the error for a request that got no answer. If the request timed out or was cancelled, the
// error says so. Otherwise it is failed, the error of the last attempt.
func (e *ModelEndpoint) requestError(ctx context.Context, failed *core.Error) *core.Error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return core.Errorf(core.KindUpstreamTimeout, "model", "the model did not answer within %s", e.o.Timeout).
			WithHint("raise model.timeout in retort.yaml, or use a smaller model, which is faster")
	case ctx.Err() != nil:
		return core.Errorf(core.KindCancelled, "model", "the agent task was cancelled while it waited for the model")
	}
	return failed
}

// requestOnce sends the request once. wait is the delay before the next attempt. It is negative if the request must
// not be sent again.
func (e *ModelEndpoint) requestOnce(ctx context.Context, p ModelPrompt, body []byte, try int) (ModelReply, time.Duration, *core.Error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.o.URL+e.requestPath(), bytes.NewReader(body))
	if err != nil {
		return ModelReply{}, -1, goneError("the request to the endpoint cannot be created: %v", err)
	}
	e.setHeaders(req.Header)
	resp, err := e.client.Do(req)
	if err != nil {
		return ModelReply{}, -1, unreachableError(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return ModelReply{}, retryAfter(resp, try), statusError(resp)
	}
	limited := &io.LimitedReader{R: resp.Body, N: maxStream}
	a := &partialReply{most: max(p.MaxTokens, 1) * bytesOfToken, told: p.Told}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	read := a.readDocument
	if kind == "text/event-stream" {
		read = a.readEvents
	}
	r, failed := read(limited, e.replyParser())
	if failed != nil && limited.N <= 0 {
		failed = goneError("the endpoint answered with more than %d MB", maxStream>>20)
	}
	return r, -1, failed
}

// unreachableError returns the error for an endpoint that could not be reached. It does not contain the URL, which
// may contain a secret.
func unreachableError(err error) *core.Error {
	var known *core.Error
	if errors.As(err, &known) {
		return known
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return goneError("the endpoint cannot be reached: %v", err).WithHint("check model.url in retort.yaml, and that the model is running")
}

// statusError returns the error for a response with an unsuccessful HTTP status.
func statusError(resp *http.Response) *core.Error {
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return goneError(
			"the endpoint redirects; Retort does not follow, because the prompt is meant only for this endpoint",
		).WithHint("set model.url to the final address")
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	said := core.EscapeIllegible(clipText(errorOf(text), maxQuotedError))
	e := goneError("the endpoint answered with HTTP %d: %s", resp.StatusCode, cmp.Or(said, http.StatusText(resp.StatusCode)))
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return e.WithHint("the endpoint does not accept model.key in retort.yaml")
	case http.StatusNotFound:
		return e.WithHint("check model.url and model.model in retort.yaml")
	case http.StatusTooManyRequests:
		return e.WithHint("Retort tried %d times; wait a while, then try again", maxTries)
	}
	return e
}

// errorOf returns the error message in an endpoint's response. It returns "" for a response without one.
func errorOf(text []byte) string {
	var said struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(text, &said) != nil {
		return ""
	}
	var e struct {
		Message string `json:"message"`
	}
	var plain string
	if json.Unmarshal(said.Error, &e) != nil {
		_ = json.Unmarshal(said.Error, &plain) // some endpoints send a string
	}
	return cmp.Or(e.Message, plain)
}

// retryAfter returns the delay before the next attempt, or a negative value if the request must not be sent again. If
// the endpoint requests a delay, that delay is used, within bounds. Otherwise the delay grows with each attempt and is
// random, so that many clients do not retry at the same time.
func retryAfter(resp *http.Response, try int) time.Duration {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode < 500 {
		return -1
	}
	said := resp.Header.Get("Retry-After")
	if at, err := http.ParseTime(said); err == nil {
		return clampRetryDelay(time.Until(at))
	}
	if seconds, err := strconv.ParseUint(said, 10, 31); err == nil {
		return clampRetryDelay(time.Duration(seconds) * time.Second)
	}
	return time.Duration(rand.Int64N(int64(firstPause<<try))) + firstPause/2
}

func clampRetryDelay(d time.Duration) time.Duration {
	if d > longestPause {
		return -1
	}
	return max(d, 0)
}

func sleepFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func clipText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
