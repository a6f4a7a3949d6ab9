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
	maxBodyBytes   = 256 << 10
	maxRedirects   = 3
)

// Network configures how requests of a login are sent. The zero value uses the network of this machine.
type Network struct {
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to an IP address. If it is nil, the network of this machine is used.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// newHTTPClient returns an HTTP client that reaches only public addresses and addresses in the same network as
// server. Each host is resolved once, and the client connects to exactly the addresses that were checked.
func (n Network) newHTTPClient(server string) *http.Client {
	if n.Lookup == nil {
		n.Lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if n.Dial == nil {
		n.Dial = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	}
	g := &networkGuard{network: n, server: hostOf(server)}
	direct := &http.Transport{
		DialContext: g.dialChecked, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
		MaxIdleConns: 4, IdleConnTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10,
	}
	proxied := direct.Clone()
	proxied.Proxy, proxied.DialContext = http.ProxyFromEnvironment, nil
	g.direct, g.proxied = direct, proxied
	return &http.Client{Transport: g, Timeout: requestTimeout, CheckRedirect: sameOriginOnly}
}

// networkGuard checks the destination of each request of a login.
type networkGuard struct {
	network         Network
	server          string // host of the MCP server
	direct, proxied http.RoundTripper
}

// RoundTrip refuses plain HTTP, except between this machine and a server on it.
func (g *networkGuard) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := g.checkURL(r.Context(), r.URL); err != nil {
		return nil, err
	}
	if proxy, err := http.ProxyFromEnvironment(r); err == nil && proxy != nil {
		return g.proxied.RoundTrip(r)
	}
	return g.direct.RoundTrip(r)
}

// checkURL returns an error if a login must not send anything to an address, for example because the address is
// neither public nor in the server's network.
func (g *networkGuard) checkURL(ctx context.Context, u *url.URL) error {
	host := u.Hostname()
	switch {
	case host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http":
		return oauthErrorf("%s is not an https address", clipLegible(u.Redacted()))
	case u.Scheme == "http" && !(g.isLoopbackHost(ctx, host) && g.isLoopbackHost(ctx, g.server)):
		return oauthErrorf("login over plain http is refused: %s", clipLegible(u.Redacted()))
	}
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u}); err == nil && proxy != nil {
		if found, err := g.lookupHost(ctx, host); err == nil { // else the proxy knows it
			return g.checkAddresses(ctx, host, found)
		}
	}
	return nil
}

// isLoopbackHost reports whether all addresses of a host are loopback addresses.
func (g *networkGuard) isLoopbackHost(ctx context.Context, host string) bool {
	found, err := g.lookupHost(ctx, host)
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

func (g *networkGuard) dialChecked(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	found, err := g.lookupHost(ctx, host)
	if err != nil {
		return nil, err
	}
	if err := g.checkAddresses(ctx, host, found); err != nil {
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

// checkAddresses returns an error if any address of a host is not public. An address in the same network as the MCP
// server is allowed, too.
func (g *networkGuard) checkAddresses(ctx context.Context, host string, found []netip.Addr) error {
	if len(found) == 0 {
		return oauthErrorf("%s has no address", clipLegible(host))
	}
	var own []netip.Addr
	for _, a := range found {
		if isPublic(a) {
			continue
		}
		if own == nil {
			own, _ = g.lookupHost(ctx, g.server)
		}
		if !isNear(a, own) {
			return oauthErrorf("the login leads to %s (%s), which is inside the local network, but the server is not", clipLegible(host), a).
				WithHint("the server's metadata may be hostile: report it to the operator of the server")
		}
	}
	return nil
}

func (g *networkGuard) lookupHost(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return []netip.Addr{plainAddr(a)}, nil
	}
	if strings.EqualFold(host, "localhost") {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}, nil
	}
	found, err := g.network.Lookup(ctx, host)
	for i, a := range found {
		found[i] = plainAddr(a)
	}
	return found, err
}

// plainAddr returns an address without zone, and as IPv4 if it is an IPv4 address in an IPv6 form.
func plainAddr(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if nat64Prefix.Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

var (
	nat64Prefix     = netip.MustParsePrefix("64:ff9b::/96")
	privatePrefixes = []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"),
		netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("100.64.0.0/10"),
		netip.MustParsePrefix("fc00::/7"),
	}
	specialPrefixes = []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("192.0.0.0/24"),
		netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"),
		netip.MustParsePrefix("::/128"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("2001::/32"),
		netip.MustParsePrefix("fec0::/10"),
	}
)

func isInPrefixes(a netip.Addr, all []netip.Prefix) bool {
	for _, p := range all {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

func isPublic(a netip.Addr) bool {
	return a.IsGlobalUnicast() && !a.IsPrivate() && !isInPrefixes(a, privatePrefixes) && !isInPrefixes(a, specialPrefixes)
}

// isNear reports whether a non-public address belongs to the network that the server is in: both are loopback
// addresses, both are in private networks, or they are equal.
func isNear(a netip.Addr, own []netip.Addr) bool {
	for _, o := range own {
		if a == o || a.IsLoopback() && o.IsLoopback() || isInPrefixes(a, privatePrefixes) && isInPrefixes(o, privatePrefixes) {
			return true
		}
	}
	return false
}

// sameOriginOnly returns an error unless a redirect of an HTTP request may be followed: only GET requests are
// redirected, and only within one origin.
func sameOriginOnly(req *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case first.Method != http.MethodGet:
		return oauthErrorf("%s redirects a login request, which is not followed", clipLegible(first.URL.Host))
	case originOf(req.URL) != originOf(first.URL):
		return oauthErrorf("%s redirects to another origin, %s, which is not followed", clipLegible(first.URL.Host), clipLegible(req.URL.Host))
	case len(via) > maxRedirects:
		return oauthErrorf("%s redirects more than %d times", clipLegible(first.URL.Host), maxRedirects)
	}
	return nil
}

// originOf returns scheme, host and port of an address in a normal form.
func originOf(u *url.URL) string {
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

// statusError implements error for a response with an HTTP error status.
type statusError int

func (s statusError) Error() string { return fmt.Sprintf("HTTP %d", int(s)) }

// fetchJSON reads a JSON document. For a response with another status than 200 it returns a statusError.
func (c *Client) fetchJSON(ctx context.Context, address string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return oauthErrorf("%s is not a valid URL", clipLegible(address))
	}
	req.Header.Set("Accept", "application/json")
	body, code, err := c.doRequest(req)
	switch {
	case err != nil:
		return err
	case code != http.StatusOK:
		return statusError(code)
	case json.Unmarshal(body, into) != nil:
		return oauthErrorf("the response of %s is not valid JSON", clipLegible(address))
	}
	return nil
}

// doRequest sends a request of the login and reads the response.
func (c *Client) doRequest(req *http.Request) ([]byte, int, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, 0, requestError(req, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBodyBytes+1))
	if err != nil {
		return nil, 0, requestError(req, err)
	}
	if len(body) > maxBodyBytes {
		return nil, 0, oauthErrorf("the response of %s is longer than %d KB", clipLegible(req.URL.Host), maxBodyBytes>>10)
	}
	return body, resp.StatusCode, nil
}

// requestError returns the error for a failed request. It omits the request's URL, which may contain secrets.
func requestError(req *http.Request, err error) error {
	var known *core.Error
	if errors.As(err, &known) {
		return known
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return oauthErrorf("%s cannot be reached for the login: %w", clipLegible(req.URL.Host), err)
}
