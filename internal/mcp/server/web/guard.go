package web

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"retort/internal/mcp/headers"
	"retort/internal/mcp/server"
)

// singleValueHeaders lists headers that may occur only once, because otherwise two readers could interpret the request
// differently.
var singleValueHeaders = []string{
	"Authorization", "Content-Type", "Last-Event-Id", "Mcp-Method", "Mcp-Name", "Origin", "Sec-Fetch-Site",
	server.SessionHeader, server.VersionHeader,
}

// checkOrigin refuses requests that a web page of another site could have caused, and requests to foreign host names
// (DNS rebinding). It reports whether the request may continue.
func (l *Listener) checkOrigin(w http.ResponseWriter, r *http.Request) bool {
	for _, name := range singleValueHeaders {
		if len(r.Header.Values(name)) > 1 {
			l.refuseRequest(w, r, http.StatusBadRequest, "there is more than one header "+name)
			return false
		}
	}
	if !l.isAllowedHost(r.Host) {
		l.refuseRequest(w, r, http.StatusForbidden, "the host name of the request is not one of this listener's; add it to http.allowedHosts")
		return false
	}
	switch origin := r.Header.Get("Origin"); {
	case origin == "" && fromOtherSite(r):
		l.refuseRequest(w, r, http.StatusForbidden, "web pages of other sites may not send requests without an Origin header")
		return false
	case origin != "" && !l.isAllowedOrigin(origin):
		l.refuseRequest(w, r, http.StatusForbidden, "web pages of this origin may not send requests; add it to http.allowedOrigins")
		return false
	}
	return true
}

// fromOtherSite reports whether the browser says that a page of another site caused the request. This covers requests
// without an Origin header, such as those for images.
func fromOtherSite(r *http.Request) bool {
	site := strings.ToLower(r.Header.Get("Sec-Fetch-Site"))
	return site != "" && site != "same-origin" && site != "none"
}

// isAllowedHost reports whether the Host header of a request may have this name. Names of this machine and those in
// Options.AllowedHosts are always allowed. If the listener is not bound to a loopback address, IP addresses and the
// names in the certificate are allowed, too. IP addresses are safe because a DNS rebinding attack sends the name of
// the attacker's page.
func (l *Listener) isAllowedHost(given string) bool {
	name := hostWithoutPort(given)
	if isLoopbackName(name) || slices.ContainsFunc(
		l.AllowedHosts, func(h string) bool { return strings.EqualFold(hostWithoutPort(h), name) },
	) {
		return true
	}
	if l.loopback {
		return false
	}
	_, err := netip.ParseAddr(name)
	return err == nil || l.certs != nil && l.certs.isForHost(name)
}

// hostWithoutPort returns a host without its port.
func hostWithoutPort(host string) string {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	return strings.ToLower(strings.TrimSuffix(name, "."))
}

// isLoopbackName reports whether a host name refers only to this machine.
func isLoopbackName(name string) bool {
	address, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && address.Unmap().IsLoopback()
}

func (l *Listener) isAllowedOrigin(given string) bool {
	if l.isConfiguredOrigin(given) {
		return true
	}
	u, err := url.Parse(given)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && isLoopbackName(hostWithoutPort(u.Host))
}

func (l *Listener) isConfiguredOrigin(origin string) bool {
	return slices.ContainsFunc(l.AllowedOrigins, func(o string) bool { return strings.EqualFold(strings.TrimSuffix(o, "/"), origin) })
}

// setCORSHeaders sets the CORS headers that let pages of configured origins read answers. Pages of this machine may
// send requests, too, but browsers do not let them read the answers.
func (l *Listener) setCORSHeaders(w http.ResponseWriter, r *http.Request) (preflight bool) {
	origin := r.Header.Get("Origin")
	if origin == "" || !l.isConfiguredOrigin(origin) {
		return false
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Expose-Headers", server.SessionHeader+", WWW-Authenticate, Retry-After")
	if r.Method != http.MethodOptions {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	h.Set(
		"Access-Control-Allow-Headers",
		"Accept, Authorization, Content-Type, Last-Event-ID, Mcp-Method, Mcp-Name, "+server.SessionHeader+", "+server.VersionHeader+
			mirroredHeaders(r),
	)
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// mirroredHeaders returns the headers for tool arguments that a page's preflight request asks to send.
func mirroredHeaders(r *http.Request) (list string) {
	for _, name := range strings.Split(r.Header.Get("Access-Control-Request-Headers"), ",") {
		name = strings.TrimSpace(name)
		if len(name) > len(headers.ParamPrefix) && strings.EqualFold(name[:len(headers.ParamPrefix)], headers.ParamPrefix) &&
			headers.IsToken(name) {
			list += ", " + name
		}
	}
	return list
}
