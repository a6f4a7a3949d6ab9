package egress

import (
	"net/netip"
	"slices"
	"strings"
)

// AccessScope restricts which hosts of a Network one group of users can reach, for example one principal.
type AccessScope struct {
	Allow []string // domains that the scope allows; "*" allows every host, and so does nil
	Deny  []string // domains, addresses and address ranges that are denied even if Allow lists them
	Rule  string   // name of the setting that defines the scope, for error messages
}

// WithScopes returns a Network that allows only what n and every scope allow. It shares its rate limits with n. Its
// errors are of kind invalid_arguments.
func (n *Network) WithScopes(scopes ...AccessScope) (*Network, error) {
	if len(scopes) == 0 {
		return n, nil
	}
	narrowed := *n
	narrowed.scopes = slices.Clone(n.scopes)
	for _, s := range scopes {
		c, err := s.compileScope()
		if err != nil {
			return nil, err
		}
		narrowed.scopes = append(narrowed.scopes, c)
	}
	return &narrowed, nil
}

// compiledScope holds an AccessScope in a form for fast comparison with hosts and addresses.
type compiledScope struct {
	every  bool
	allow  []string
	denied targetSet
	rule   string
}

func (s AccessScope) compileScope() (compiledScope, error) {
	c := compiledScope{every: s.Allow == nil || slices.Contains(s.Allow, "*"), rule: s.Rule}
	for _, a := range s.Allow {
		if a == "*" {
			continue
		}
		domain, err := parsePattern(a)
		if err != nil {
			return compiledScope{}, err
		}
		c.allow = append(c.allow, domain)
	}
	var err error
	c.denied, err = parseTargets(s.Deny)
	return c, err
}

func (s compiledScope) allowsNone() bool { return !s.every && len(s.allow) == 0 }

// refusalRule returns the name of the setting that denies a host, or "" if the scope allows the host.
func (s compiledScope) refusalRule(host string) string {
	switch {
	case s.denied.matchesHost(host):
		return s.rule + ".deny"
	case !s.every && !slices.ContainsFunc(s.allow, func(p string) bool { return matchesPattern(p, host) }):
		return s.rule + ".allow, which does not contain it"
	}
	return ""
}

// targetSet holds the hosts and address ranges that are denied.
type targetSet struct {
	domains []string
	ranges  []netip.Prefix
}

func parseTargets(written []string) (t targetSet, err error) {
	for _, what := range written {
		if p, err := netip.ParsePrefix(what); err == nil {
			t.ranges = append(t.ranges, p.Masked())
			continue
		}
		if a, err := netip.ParseAddr(what); err == nil {
			a = plainAddr(a)
			t.ranges = append(t.ranges, netip.PrefixFrom(a, a.BitLen()))
			continue
		}
		domain, err := parsePattern(what)
		if err != nil {
			return targetSet{}, err
		}
		t.domains = append(t.domains, domain)
	}
	return t, nil
}

func (t targetSet) matchesHost(host string) bool {
	return slices.ContainsFunc(t.domains, func(p string) bool { return matchesPattern(p, host) })
}

// rangeOf returns the denied address range that contains an address. Its second result is false if no range does.
func (t targetSet) rangeOf(a netip.Addr) (netip.Prefix, bool) {
	a = plainAddr(a)
	for _, r := range t.ranges {
		if r.Contains(a) {
			return r, true
		}
	}
	return netip.Prefix{}, false
}

// IsBlacklisted reports whether the blacklist denies a host. The host is a name or an IP address, in the form in which
// the program wrote it.
func (n *Network) IsBlacklisted(host string) bool {
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		_, listed := n.denied.rangeOf(a)
		return listed
	}
	return n.denied.matchesHost(host)
}
