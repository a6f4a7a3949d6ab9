package doctor

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
)

// explainRemote explains why a remote server cannot be used.
func explainRemote(s FailureSymptom) *FailureCause {
	if s.URL == "" {
		return nil
	}
	for _, known := range []func(FailureSymptom, *url.URL) *FailureCause{
		explainUnknownHost, explainCertificate, explainConnection, explainStatus, explainNotMCP,
	} {
		at, err := url.Parse(s.URL)
		if err != nil {
			return &FailureCause{"bad_url", "its url is invalid: " + err.Error(), "correct url in its configuration"}
		}
		if c := known(s, at); c != nil {
			return c
		}
	}
	return nil
}

// explainUnknownHost explains why the host name of a server cannot be resolved.
func explainUnknownHost(s FailureSymptom, at *url.URL) *FailureCause {
	var dns *net.DNSError
	if !errors.As(s.Err, &dns) {
		return nil
	}
	if dns.IsNotFound {
		return &FailureCause{
			"unknown_host", fmt.Sprintf("the host %s does not exist", at.Hostname()),
			"correct url in its configuration, or connect to the network (VPN) where the name exists",
		}
	}
	return &FailureCause{"no_dns", fmt.Sprintf("the name %s could not be resolved", at.Hostname()), "check the network: nslookup " + at.Hostname()}
}

// explainCertificate explains why a certificate was rejected.
func explainCertificate(s FailureSymptom, at *url.URL) *FailureCause {
	host := at.Host
	if at.Port() == "" {
		host += ":443"
	}
	show := "openssl s_client -connect " + host + " </dev/null | openssl x509 -noout -subject -issuer -dates"
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	switch {
	case errors.As(s.Err, &unknown):
		return &FailureCause{
			"untrusted_certificate",
			"its certificate is not signed by an authority that this machine trusts: it is self-signed, or signed by a company",
			"add the authority to those that this machine trusts (update-ca-certificates), or set SSL_CERT_FILE to its certificate file",
		}
	case errors.As(s.Err, &name):
		return &FailureCause{"certificate_name", fmt.Sprintf("its certificate is not for %s", at.Hostname()), show}
	case errors.As(s.Err, &invalid) && invalid.Reason == x509.Expired:
		return &FailureCause{"expired_certificate", "its certificate has expired, or the clock of this machine is wrong", "date; " + show}
	case errors.As(s.Err, &invalid):
		return &FailureCause{"bad_certificate", "its certificate is not valid: " + invalid.Error(), show}
	case errors.As(s.Err, &record), strings.Contains(s.Message, "server gave HTTP response to HTTPS client"):
		return &FailureCause{"no_tls", "it does not use TLS at that address", "if it is on this machine, write http:// instead of https:// in its url"}
	}
	return nil
}

// explainConnection explains why a connection failed.
func explainConnection(s FailureSymptom, at *url.URL) *FailureCause {
	var network net.Error
	switch {
	case errors.Is(s.Err, syscall.ECONNREFUSED):
		return &FailureCause{"refused", fmt.Sprintf("nothing listens at %s", at.Host), "start the server, or correct the port in its url"}
	case errors.Is(s.Err, syscall.ENETUNREACH), errors.Is(s.Err, syscall.EHOSTUNREACH):
		return &FailureCause{"unreachable", fmt.Sprintf("there is no network route to %s", at.Host), "check the network or VPN"}
	case errors.Is(s.Err, syscall.ECONNRESET):
		return &FailureCause{
			"reset", "it closed the connection",
			"check its url (http or https, port), and whether there is a proxy in between",
		}
	case errors.As(s.Err, &network) && network.Timeout() && s.Status == 0:
		return &FailureCause{
			"connect_timeout", fmt.Sprintf("%s did not answer in time", at.Host),
			"curl -sS -m 10 -o /dev/null -w '%{http_code}\\n' " + shellQuote(s.URL),
		}
	}
	return nil
}

// explainStatus explains why a server answered with an unsuccessful HTTP status.
func explainStatus(s FailureSymptom, at *url.URL) *FailureCause {
	login := "renew the token in its headers"
	if s.Login {
		login = "retort auth login " + shellQuote(s.Server)
	}
	switch status := s.Status; {
	case status == http.StatusUnauthorized:
		if s.Login {
			login += ", or put credentials into its headers"
		}
		return &FailureCause{"login", "it requires a login (HTTP 401)", login}
	case status == http.StatusForbidden:
		return &FailureCause{"forbidden", "the current login does not have the required rights (HTTP 403)", login + ", with an account that has these rights"}
	case status == http.StatusProxyAuthRequired:
		return &FailureCause{"proxy_login", "the proxy requires a login (HTTP 407)", "set HTTPS_PROXY=http://user:password@proxy:port"}
	case status == http.StatusNotFound, status == http.StatusGone:
		return &FailureCause{
			"wrong_path", fmt.Sprintf("there is nothing at %s (HTTP %d)", pathOf(at), status),
			"correct the path in its url; endpoints are often /mcp, or /sse with the older transport (\"type\": \"sse\")",
		}
	case status == http.StatusMethodNotAllowed:
		return &FailureCause{
			"wrong_path", fmt.Sprintf("%s does not accept messages (HTTP 405)", pathOf(at)),
			"correct the path in its url, or set \"type\": \"sse\"",
		}
	case status == http.StatusTooManyRequests:
		return &FailureCause{"rate_limited", "it received too many requests (HTTP 429)", "wait, then run retort doctor " + shellQuote(s.Server)}
	case status >= 500:
		return &FailureCause{
			"server_error", fmt.Sprintf("it reports an internal error (HTTP %d)", status),
			"wait, or ask its operator; curl -i " + shellQuote(s.URL),
		}
	case status >= 400:
		return &FailureCause{
			"refused_request", fmt.Sprintf("it refuses the first message of every MCP client (HTTP %d)", status),
			"check its url and headers: curl -i " + shellQuote(s.URL),
		}
	}
	return nil
}

func pathOf(at *url.URL) string {
	if at.Path == "" {
		return "/"
	}
	return at.Path
}

// explainNotMCP explains why a URL answers with something other than MCP messages.
func explainNotMCP(s FailureSymptom, _ *url.URL) *FailureCause {
	switch {
	case strings.Contains(s.Message, `"text/html"`):
		return &FailureCause{
			"html", "its url leads to a web page, not to an MCP server",
			"correct its url: the endpoint is often at /mcp; the page may also come from a login or a proxy",
		}
	case strings.Contains(s.Message, "which is not an MCP message"),
		strings.Contains(s.Message, "which is not an event stream"), strings.Contains(s.Message, "is not an MCP message"):
		return &FailureCause{"not_mcp", "the service at its url does not speak MCP", "correct its url: the endpoint is often at /mcp"}
	case strings.Contains(s.Message, "no authorization for the server could be obtained"):
		return &FailureCause{"login", "no login for it could be obtained: " + s.Message, "retort auth login " + shellQuote(s.Server)}
	case strings.Contains(s.Message, "redirects"):
		return &FailureCause{"redirect", s.Message, s.Hint}
	case strings.Contains(strings.ToLower(s.Message), "protocol version"):
		return &FailureCause{"older_protocol", "it uses a version of the protocol that Retort does not support", "update the server"}
	}
	return nil
}
