package egress

import (
	"net/netip"
	"slices"
	"strings"
)

// Scope narrows a Network for some of its users.
type Scope struct {
	Allow []string // domains, of which "*" is every host; nil allows every host
	Deny  []string // domains, addresses and ranges; stronger
	Rule  string   // the name of the setting, for error messages
}

// Narrowed returns a Network that allows only what n and every scope allow. It shares its rate limits with n. Its
// errors are of kind invalid_arguments.
func (n *Network) Narrowed(scopes ...Scope) (*Network, error) {
	if len(scopes) == 0 {
		return n, nil
	}
	narrowed := *n
	narrowed.scopes = slices.Clone(n.scopes)
	for _, s := range scopes {
		c, err := s.compile()
		if err != nil {
			return nil, err
		}
		narrowed.scopes = append(narrowed.scopes, c)
	}
	return &narrowed, nil
}

// scope holds a Scope compiled for comparison with hosts and addresses.
type scope struct {
	every  bool
	allow  []string
	denied targets
	rule   string
}

func (s Scope) compile() (scope, error) {
	c := scope{every: s.Allow == nil || slices.Contains(s.Allow, "*"), rule: s.Rule}
	for _, a := range s.Allow {
		if a == "*" {
			continue
		}
		domain, err := pattern(a)
		if err != nil {
			return scope{}, err
		}
		c.allow = append(c.allow, domain)
	}
	var err error
	c.denied, err = parseTargets(s.Deny)
	return c, err
}

func (s scope) closed() bool { return !s.every && len(s.allow) == 0 }

// refuses returns the setting that refuses a host, or "" if none does.
func (s scope) refuses(host string) string {
	switch {
	case s.denied.names(host):
		return s.rule + ".deny"
	case !s.every && !slices.ContainsFunc(s.allow, func(p string) bool { return matches(p, host) }):
		return s.rule + ".allow, which does not name it"
	}
	return ""
}

// targets holds denied hosts and addresses.
type targets struct {
	domains []string
	ranges  []netip.Prefix
}

func parseTargets(written []string) (t targets, err error) {
	for _, what := range written {
		if p, err := netip.ParsePrefix(what); err == nil {
			t.ranges = append(t.ranges, p.Masked())
			continue
		}
		if a, err := netip.ParseAddr(what); err == nil {
			a = plain(a)
			t.ranges = append(t.ranges, netip.PrefixFrom(a, a.BitLen()))
			continue
		}
		domain, err := pattern(what)
		if err != nil {
			return targets{}, err
		}
		t.domains = append(t.domains, domain)
	}
	return t, nil
}

func (t targets) names(host string) bool {
	return slices.ContainsFunc(t.domains, func(p string) bool { return matches(p, host) })
}

// rangeOf returns the denied range that contains an address. It returns false if none does.
func (t targets) rangeOf(a netip.Addr) (netip.Prefix, bool) {
	a = plain(a)
	for _, r := range t.ranges {
		if r.Contains(a) {
			return r, true
		}
	}
	return netip.Prefix{}, false
}

// Lists reports whether the blacklist denies a host as a program wrote it: a name, or an IP address, which no program
// reaches anyway.
func (n *Network) Lists(host string) bool {
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		_, listed := n.denied.rangeOf(a)
		return listed
	}
	return n.denied.names(host)
}
