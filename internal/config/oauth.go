package config

import (
	"net/netip"
	"net/url"
)

// OAuth configures the authorization server whose tokens are accepted. If Issuer is empty, no such tokens are
// accepted.
type OAuth struct {
	Issuer     string
	Audience   string   // audience that tokens must name
	Resource   string   // URL of this server, if Audience is not a URL
	JWKS       string   // URL of the issuer's key set, if its metadata does not name it
	Scopes     []string // scopes, all of which a token must have
	Principal  string   // claim that names the principal
	Groups     string   // claim that lists the principal's groups; "": no groups are read
	Algorithms []string // accepted signature algorithms
}

// claimText matches the values of claims that settings can name, such as audiences and scopes.
const claimText = `^[\x21\x23-\x5b\x5d-\x7e]{1,256}$`

func (o *OAuth) reader() settingReader {
	whole := requireKeys(readObject(
		fieldReader{"issuer", "Address of the authorization server.", readTrustworthy(&o.Issuer, "https://login.example.com")},
		fieldReader{"audience", "Audience that access tokens must be for.", readMatching(&o.Audience, "the audience of tokens, such as https://retort.example.com/mcp", claimText)},
		fieldReader{"resource", "Address of this server, if the audience is not one.", readTrustworthy(&o.Resource, "https://login.example.com")},
		fieldReader{"jwks", "Address of the issuer's keys, if its metadata does not name it.", readTrustworthy(&o.JWKS, "https://login.example.com")},
		fieldReader{"scopes", "Scopes that an access token must have, all of them.", readList(&o.Scopes, func(s *string) settingReader { return readMatching(s, "a scope such as mcp:tools", claimText) })},
		fieldReader{"principal", "Claim that names the principal, such as sub or email.", readMatching(&o.Principal, "the name of a claim, such as sub or email", claimText)},
		fieldReader{"groups", "Claim that lists the groups of the user, such as groups or realm_access.roles. By default no groups are read.", readMatching(&o.Groups, "the name of a claim, such as groups or realm_access.roles", claimText)},
		fieldReader{"algorithms", "Accepted algorithms of signatures.", readList(&o.Algorithms, func(s *string) settingReader {
			return readOneOf(s, "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
		})},
	), "issuer", "audience")
	return whole.checkedBy(func(r *nodeReader, n *valueNode) {
		before := len(r.problems)
		whole.read(r, n)
		if len(r.problems) == before && o.Resource == "" && !isTrustworthy(o.Audience) {
			r.addProblem(
				n, "resource: https://retort.example.com/mcp",
				"resource is missing: the audience is not a URL, so clients cannot learn the address of this server",
			)
		}
	})
}

// readTrustworthy returns a reader for the URL of a service whose responses Retort trusts. It refuses a URL that
// uses neither https nor this machine, and suggests example.
func readTrustworthy(s *string, example string) settingReader {
	return readChecked(s, "an https address such as "+example+" (http is allowed for this machine only)", isTrustworthy)
}

// isTrustworthy reports whether responses from a URL can be trusted: it uses https or names this machine.
func isTrustworthy(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	address, failed := netip.ParseAddr(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || failed == nil && address.IsLoopback())
}
