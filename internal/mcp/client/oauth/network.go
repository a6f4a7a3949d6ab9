package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"retort/internal/core"
)

const (
	requestTimeout = 15 * time.Second
	largestBody    = 256 << 10
	maxRedirects   = 3
)

// Network configures how requests of a login are sent. The zero value uses the network of this machine.
type Network struct {
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	Dial   func(ctx context.Context, network, address string) (net.Conn, error) // to an IP address
}

// client returns an HTTP client that reaches public addresses, and the network that server is in. Each host is
// resolved once, and the checked addresses are the ones that are dialled.
func (n Network) client(server string) *http.Client {
	if n.Lookup == nil {
		n.Lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if n.Dial == nil {
		n.Dial = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	}
	g := &guard{network: n, server: hostOf(server)}
	direct := &http.Transport{
		DialContext: g.dial, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
		MaxIdleConns: 4, IdleConnTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10,
	}
	proxied := direct.Clone()
	proxied.Proxy, proxied.DialContext = http.ProxyFromEnvironment, nil
	g.direct, g.proxied = direct, proxied
	return &http.Client{Transport: g, Timeout: requestTimeout, CheckRedirect: sameOriginOnly}
}

// guard checks the destination of each request of a login.
type guard struct {
	network         Network
	server          string // host
	direct, proxied http.RoundTripper
}

// RoundTrip refuses plain HTTP, except between this machine and a server on it.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := g.check(r.Context(), r.URL); err != nil {
		return nil, err
	}
	if proxy, err := http.ProxyFromEnvironment(r); err == nil && proxy != nil {
		return g.proxied.RoundTrip(r)
	}
	return g.direct.RoundTrip(r)
}

// check returns an error if nothing may be sent to an address.
func (g *guard) check(ctx context.Context, u *url.URL) error {
	host := u.Hostname()
	switch {
	case host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http":
		return fail("%s is not an https address", shown(u.Redacted()))
	case u.Scheme == "http" && !(g.loops(ctx, host) && g.loops(ctx, g.server)):
		return fail("a login over plain http is refused: %s", shown(u.Redacted()))
	}
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u}); err == nil && proxy != nil {
		if found, err := g.lookup(ctx, host); err == nil { // else the proxy knows it
			return g.judge(ctx, host, found)
		}
	}
	return nil
}

// loops reports whether all addresses of a host are loopback addresses.
func (g *guard) loops(ctx context.Context, host string) bool {
	found, err := g.lookup(ctx, host)
	if err != nil || len(found) == 0 {
		return false
	}
	for _, a := range found {
		if !a.IsLoopback() {
			return false
		}
	}
	return true
}

func (g *guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	found, err := g.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	if err := g.judge(ctx, host, found); err != nil {
		return nil, err
	}
	for _, a := range found {
		var conn net.Conn
		if conn, err = g.network.Dial(ctx, network, net.JoinHostPort(a.String(), port)); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// judge returns an error if any address of a host is not public, unless the server is in the same network.
func (g *guard) judge(ctx context.Context, host string, found []netip.Addr) error {
	if len(found) == 0 {
		return fail("%s has no address", shown(host))
	}
	var own []netip.Addr
	for _, a := range found {
		if public(a) {
			continue
		}
		if own == nil {
			own, _ = g.lookup(ctx, g.server)
		}
		if !beside(a, own) {
			return fail("the login leads to %s (%s), which is inside the network, and the server is not", shown(host), a).
				WithHint("the server's metadata may be hostile: report it to the operator of the server")
		}
	}
	return nil
}

func (g *guard) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return []netip.Addr{plain(a)}, nil
	}
	if strings.EqualFold(host, "localhost") {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}, nil
	}
	found, err := g.network.Lookup(ctx, host)
	for i, a := range found {
		found[i] = plain(a)
	}
	return found, err
}

// plain returns an address without zone, and as IPv4 if it is an IPv4 address in an IPv6 form.
func plain(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if translated.Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

var (
	translated = netip.MustParsePrefix("64:ff9b::/96")
	private    = []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"),
		netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("100.64.0.0/10"),
		netip.MustParsePrefix("fc00::/7"),
	}
	special = []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("192.0.0.0/24"),
		netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"),
		netip.MustParsePrefix("::/128"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("2001::/32"),
		netip.MustParsePrefix("fec0::/10"),
	}
)

func within(a netip.Addr, all []netip.Prefix) bool {
	for _, p := range all {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

func public(a netip.Addr) bool {
	return a.IsGlobalUnicast() && !a.IsPrivate() && !within(a, private) && !within(a, special)
}

// beside reports whether a non-public address is where the server is: both are loopback addresses, both are in
// private networks, or they are equal.
func beside(a netip.Addr, own []netip.Addr) bool {
	for _, o := range own {
		if a == o || a.IsLoopback() && o.IsLoopback() || within(a, private) && within(o, private) {
			return true
		}
	}
	return false
}

// sameOriginOnly allows redirects only for GET requests and within one origin.
func sameOriginOnly(req *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case first.Method != http.MethodGet:
		return fail("%s redirects a request of the login, which is not followed", shown(first.URL.Host))
	case origin(req.URL) != origin(first.URL):
		return fail("%s redirects to another origin, %s, which is not followed", shown(first.URL.Host), shown(req.URL.Host))
	case len(via) > maxRedirects:
		return fail("%s redirects more than %d times", shown(first.URL.Host), maxRedirects)
	}
	return nil
}

// origin returns scheme, host and port of an address in a normal form.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// status implements error for a response with an HTTP error status.
type status int

func (s status) Error() string { return fmt.Sprintf("HTTP %d", int(s)) }

// fetch reads a JSON document. For a response with another status than 200 the error is a status.
func (c *Client) fetch(ctx context.Context, address string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fail("%s is not a valid URL", shown(address))
	}
	req.Header.Set("Accept", "application/json")
	body, code, err := c.do(req)
	switch {
	case err != nil:
		return err
	case code != http.StatusOK:
		return status(code)
	case json.Unmarshal(body, into) != nil:
		return fail("the response of %s is not valid JSON", shown(address))
	}
	return nil
}

// do sends a request of the login and reads the response.
func (c *Client) do(req *http.Request) ([]byte, int, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, 0, wentWrong(req, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, largestBody+1))
	if err != nil {
		return nil, 0, wentWrong(req, err)
	}
	if len(body) > largestBody {
		return nil, 0, fail("the response of %s is longer than %d KB", shown(req.URL.Host), largestBody>>10)
	}
	return body, resp.StatusCode, nil
}

// wentWrong returns the error for a failed request. It omits the request's URL, which may contain secrets.
func wentWrong(req *http.Request, err error) error {
	var known *core.Error
	if errors.As(err, &known) {
		return known
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return fail("%s can't be asked for a login: %w", shown(req.URL.Host), err)
}
