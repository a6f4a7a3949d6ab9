package egress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"retort/internal/core"
)

const (
	dialTimeout    = 10 * time.Second
	resolveTimeout = 10 * time.Second
	maxAddresses   = 8 // maximum number of a host's addresses that are tried
)

// Target describes the destination of a request. Host must be in the form that ParseHost returns.
type Target struct {
	Host     string
	Port     int
	Protocol string // protocol in the form used in rules; https for all traffic in a tunnel
}

func (t Target) String() string { return net.JoinHostPort(t.Host, strconv.Itoa(t.Port)) }

// checkTarget decides whether the lists of allowed and denied hosts let a program use the target. It does not resolve
// the target's host. protocols lists the protocols that the program may be using. The result allowed lists those of
// them that the rules permit. key is the name under which the rate limit counts requests to the target.
func (n *Network) checkTarget(t Target, protocols ...string) (allowed []string, key string, refused *core.Error) {
	if n.denied.matchesHost(t.Host) {
		return nil, "", policyErrorf("%s is in network.blacklist", t.Host)
	}
	if n.IsClosed() {
		return nil, "", closedError(t)
	}
	if refused := n.checkScopes(t.Host); refused != nil {
		return nil, "", refused
	}
	named := false
	for _, r := range n.rules {
		if !matchesPattern(r.Domain, t.Host) {
			continue
		}
		named = true
		for _, p := range protocols {
			if r.allowsPort(p, t.Port) && !slices.Contains(allowed, p) {
				allowed, key = append(allowed, p), r.Domain
			}
		}
	}
	switch {
	case len(allowed) > 0:
		return allowed, key, nil
	case named:
		return nil, "", policyErrorf("%s is in network.whitelist, but not with %s on port %d", t.Host, strings.Join(protocols, " or "), t.Port).
			WithHint(
				"the person at the machine can allow it: network: {whitelist: [{domain: %s, ports: [%d], protocols: [%s]}]}",
				t.Host, t.Port, protocols[0],
			)
	case n.o.Open:
		for _, p := range protocols {
			if (p == https || p == http1) && defaultPorts[p] == t.Port {
				return []string{p}, t.Host, nil
			}
		}
	}
	return nil, "", policyErrorf("%s is not in network.whitelist", t.Host).
		WithHint("the person at the machine can allow it: network: {whitelist: [%s]}; or look for a tool with search_tools", t.Host)
}

// checkScopes returns an error if one of the network's scopes denies the host, otherwise nil.
func (n *Network) checkScopes(host string) *core.Error {
	for _, s := range n.scopes {
		if rule := s.refusalRule(host); rule != "" {
			return policyErrorf("%s may not be reached, because of %s", host, rule).WithHint("only the person who runs Retort can change the rule")
		}
	}
	return nil
}

// checkStillAllowed returns an error if an open connection is no longer allowed, otherwise nil. The scopes may have
// changed since the connection was opened. host is the host that it was opened for, and at is its remote address.
func (n *Network) checkStillAllowed(host string, at netip.Addr) *core.Error {
	if refused := n.checkScopes(host); refused != nil {
		return refused
	}
	if why := n.scopeRefusal(at); why != "" {
		return policyErrorf("%s resolves to %s, which is %s", host, at, why)
	}
	return nil
}

// NoNetworkError returns the error for a program that uses the network although the settings allow no host.
func NoNetworkError(what string) *core.Error {
	return policyErrorf("programs have no network access here: %s was not reached", quoteShort(HostIn(what))).
		WithHint(
			"look for a tool with search_tools. The person at the machine can allow domains with the setting network: {whitelist: [api.example.com]}",
		)
}

// HostIn returns the host of a URL. If the URL is invalid, it returns what can be recognised: the host, perhaps with
// its port, or only the scheme.
func HostIn(address string) string {
	_, t, _ := parseURL(address)
	return t.Host
}

func closedError(t Target) *core.Error { return NoNetworkError("https://" + t.Host) }

// resolveTarget resolves the host of a target and checks every address of it. If one address is forbidden, it refuses
// the whole host.
func (n *Network) resolveTarget(ctx context.Context, t Target) ([]netip.AddrPort, *core.Error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	found, err := n.o.Resolver.LookupNetIP(ctx, "ip", t.Host)
	if err != nil || len(found) == 0 {
		return nil, core.Errorf(core.KindUpstreamGone, "egress", "%s has no address", t.Host).WithHint("check the spelling of the name")
	}
	own := n.o.Own()
	var list []netip.AddrPort
	for _, a := range found {
		if why := n.addressRefusal(a, own); why != "" {
			refused := policyErrorf("%s resolves to %s, which is %s", t.Host, plainAddr(a), why).WithHint("programs reach only hosts on the Internet")
			if _, listed := n.denied.rangeOf(a); listed {
				refused.Op = opBlacklist
			}
			return nil, refused
		}
		list = append(list, netip.AddrPortFrom(plainAddr(a), uint16(t.Port)))
	}
	return list[:min(len(list), maxAddresses)], nil
}

// addressRefusal returns the reason why an address is refused, or "" if it is allowed.
func (n *Network) addressRefusal(a netip.Addr, own []netip.Addr) string {
	if why := forbiddenReason(a); why != "" {
		return why
	}
	a = plainAddr(a)
	if slices.Contains(own, a) {
		return "this machine"
	}
	if r, listed := n.denied.rangeOf(a); listed {
		return fmt.Sprintf("in network.blacklist (%s)", r)
	}
	return n.scopeRefusal(a)
}

// scopeRefusal returns a text that names the setting with which a scope denies an address, or "" if no scope denies
// it.
func (n *Network) scopeRefusal(a netip.Addr) string {
	for _, s := range n.scopes {
		if r, denied := s.denied.rangeOf(a); denied {
			return fmt.Sprintf("in %s.deny (%s)", s.rule, r)
		}
	}
	return ""
}

// opBlacklist is the operation named in the error for a host that resolves to a blacklisted address.
const opBlacklist = "egress.blacklist"

// dialTarget connects to a target that checkTarget has allowed. It returns the connection and its remote address.
func (n *Network) dialTarget(ctx context.Context, t Target) (net.Conn, netip.Addr, *core.Error) {
	list, refused := n.resolveTarget(ctx, t)
	if refused != nil {
		return nil, netip.Addr{}, refused
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	for _, a := range list {
		conn, err := n.o.Dialer.DialContext(ctx, "tcp", a.String())
		if err == nil {
			return conn, a.Addr(), nil
		}
	}
	kind, what := core.KindUpstreamGone, "cannot be reached"
	if ctx.Err() != nil {
		kind, what = core.KindUpstreamTimeout, "did not answer in time"
	}
	return nil, netip.Addr{}, core.Errorf(kind, "egress", "%s %s", t, what)
}

// secretsOf returns the secret headers that the settings add to requests to a host.
func (n *Network) secretsOf(host string) (found []Secret) {
	for _, s := range n.secrets {
		if matchesPattern(s.Domain, host) {
			found = append(found, s)
		}
	}
	return found
}
