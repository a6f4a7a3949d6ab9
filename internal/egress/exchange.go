package egress

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"retort/internal/core"
)

const maxURL = 8 << 10

// parseURL parses an absolute https or http URL. It normalises the host and removes the fragment.
func parseURL(text string) (*url.URL, Target, *core.Error) {
	where := authorityOf(text)
	t := Target{Host: where}
	if len(text) > maxURL {
		return nil, t, policyErrorf("the address is longer than %d characters", maxURL)
	}
	for _, r := range text {
		if r <= ' ' || r == 0x7f || r == '\\' || r == '\uFFFD' {
			return nil, t, policyErrorf("the address %s contains a character that is not allowed in a URL", quoteShort(where))
		}
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, t, policyErrorf("%s is not a valid URL", quoteShort(where))
	}
	scheme := strings.ToLower(u.Scheme)
	switch {
	case scheme == "":
		return nil, t, policyErrorf("%s is not an absolute URL: it must begin with https://", quoteShort(where))
	case scheme != https && scheme != http1:
		return nil, t, policyErrorf("%s is neither https nor http", quoteShort(where))
	case u.User != nil:
		return nil, Target{Host: u.Host}, policyErrorf("the address contains a user name, which Retort does not send").WithHint("send an Authorization header instead")
	case u.Opaque != "" || u.Host == "" || strings.ContainsRune(where, '%') || strings.HasSuffix(u.Host, ":"):
		return nil, t, policyErrorf("%s does not contain a host", quoteShort(where))
	}
	t = Target{Host: u.Host, Port: defaultPorts[scheme], Protocol: scheme}
	host, refused := ParseHost(strings.TrimSuffix(u.Host, ":"+u.Port()))
	if refused == nil && u.Port() != "" {
		t.Port, refused = ParsePort(u.Port())
	}
	if refused != nil {
		return nil, t, refused
	}
	t.Host = host
	u.Scheme, u.Host, u.Fragment, u.RawFragment = scheme, host, "", ""
	if t.Port != defaultPorts[scheme] {
		u.Host = net.JoinHostPort(host, strconv.Itoa(t.Port))
	}
	return u, t, nil
}

// authorityOf returns the host and port of a URL without the user name and password, or the scheme if there is no
// host. The result is safe to quote in an error, even if the URL is invalid.
func authorityOf(text string) string {
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		scheme, _, found = strings.Cut(text, ":")
		if i := strings.IndexAny(scheme, "/?#"); i >= 0 || !found {
			return "(no host)"
		}
		return scheme[:min(len(scheme), maxHost)] + ":"
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 { // a password is nobody's to read
		rest = rest[at:]
	}
	if rest == "" {
		return scheme[:min(len(scheme), maxHost)] + ":"
	}
	return rest[:min(len(rest), maxHost)]
}

// reservedHeaders lists headers that programs may not set, because they control how a message is transmitted.
var reservedHeaders = []string{
	"Host", "Connection", "Content-Length", "Transfer-Encoding", "Te", "Trailer", "Upgrade", "Keep-Alive", "Expect",
	"Accept-Encoding", "Via", "Http2-Settings",
}

// isReservedHeader reports whether a header is one that programs may not set.
func isReservedHeader(name string) bool {
	name = http.CanonicalHeaderKey(name)
	return slices.Contains(reservedHeaders, name) || strings.HasPrefix(name, "Proxy-")
}

func isHeaderName(name string) bool {
	return name != "" && strings.Trim(name, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

func isHeaderValue(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

var readMethods = []string{http.MethodGet, http.MethodHead, http.MethodOptions}

// checkDryRun returns an error if a request with this method may not be sent because the execution is a dry run.
func (s *Session) checkDryRun(t Target, method string) *core.Error {
	if !s.x.Rehearses || slices.Contains(readMethods, method) {
		return nil
	}
	return s.noteRefusal(t, policyErrorf("a dry run sends nothing: the %s request to %s was not made", method, t.Host).WithHint("run the program without dry_run"))
}

// roundTrip sends a request that was allowed, and adds the secret headers for its host. Its errors are of type
// *core.Error.
func (s *Session) roundTrip(req *http.Request, t Target) (*http.Response, *core.Error) {
	for _, secret := range s.n.secretsOf(t.Host) {
		req.Header.Set(secret.Header, secret.Value)
	}
	resp, err := s.transport.RoundTrip(req)
	if err != nil {
		return nil, s.requestError(req.Context(), t, err)
	}
	return resp, nil
}

// requestError returns an error that explains why a request got no response or an incomplete one.
func (s *Session) requestError(ctx context.Context, t Target, err error) *core.Error {
	var typed *core.Error
	var untrusted x509.UnknownAuthorityError
	var other x509.HostnameError
	var outdated x509.CertificateInvalidError
	var timeout net.Error
	switch {
	case errors.As(err, &typed):
		return typed
	case s.ctx.Err() != nil || ctx.Err() == context.Canceled:
		return core.Errorf(core.KindCancelled, "egress", "the request to %s was cancelled", t.Host)
	case errors.As(err, &untrusted), errors.As(err, &other), errors.As(err, &outdated):
		return core.Errorf(core.KindUpstreamGone, "egress", "the certificate of %s is not valid: %v", t.Host, err).
			WithHint("add your own certificate authorities with the setting network.certificates")
	case errors.As(err, &timeout) && timeout.Timeout(), ctx.Err() != nil:
		return core.Errorf(core.KindUpstreamTimeout, "egress", "%s did not answer in time", t.Host)
	}
	return core.Errorf(core.KindUpstreamGone, "egress", "the request to %s failed: %v", t.Host, err)
}
