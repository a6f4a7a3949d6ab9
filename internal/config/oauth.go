package config

import (
	"net/netip"
	"net/url"
	"regexp"
)

// OAuth configures the authorization server whose tokens are accepted. An empty Issuer means none.
type OAuth struct {
	Issuer     string
	Audience   string   // that tokens must be for
	Resource   string   // the URL of this server, if Audience is not a URL
	JWKS       string   // the URL of the issuer's keys, if its metadata does not name it
	Scopes     []string // that a token must have, all of them
	Principal  string   // the claim that names the principal
	Algorithms []string // of signatures
}

func (o *OAuth) readFunc() readFunc {
	address := func(s *string) readFunc {
		return readChecked(s, "an https address such as https://login.example.com (http is allowed for this machine only)", isTrustworthy)
	}
	printing := regexp.MustCompile(`^[\x21\x23-\x5b\x5d-\x7e]{1,256}$`).MatchString
	whole := requireKeys(readObject(
		fieldReader{"issuer", address(&o.Issuer)},
		fieldReader{"audience", readChecked(&o.Audience, "the audience of tokens, such as https://retort.example.com/mcp", printing)},
		fieldReader{"resource", address(&o.Resource)},
		fieldReader{"jwks", address(&o.JWKS)},
		fieldReader{"scopes", readList(&o.Scopes, func(s *string) readFunc { return readChecked(s, "a scope such as mcp:tools", printing) })},
		fieldReader{"principal", readChecked(&o.Principal, "the name of a claim, such as sub or email", printing)},
		fieldReader{"algorithms", readList(&o.Algorithms, func(s *string) readFunc {
			return readOneOf(s, "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
		})},
	), "issuer", "audience")
	return func(r *nodeReader, n *valueNode) {
		before := len(r.problems)
		whole(r, n)
		if len(r.problems) == before && o.Resource == "" && !isTrustworthy(o.Audience) {
			r.addProblem(
				n, "resource: https://retort.example.com/mcp",
				"resource is missing: the audience is not a URL, so clients cannot learn the address of this server",
			)
		}
	}
}

// isTrustworthy reports whether answers from a URL can be trusted: it uses https or names this machine.
func isTrustworthy(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	address, failed := netip.ParseAddr(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || failed == nil && address.IsLoopback())
}
