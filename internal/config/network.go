package config

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"retort/internal/core"
)

// Network configures which hosts a program may reach directly.
type Network struct {
	Default            NetworkDefault
	Whitelist          []NetworkRule
	Blacklist          []string // domains, addresses and CIDR ranges
	RateLimitPerDomain Rate
	BytesPerRun        int64  // that one execution may send and receive
	Certificates       string // absolute path of a file with authorities, PEM; the machine's if empty
	Secrets            []NetworkSecret
}

// NetworkDefault selects whether programs may reach hosts that are neither on the network's whitelist nor on its
// blacklist.
type NetworkDefault string

// The values of NetworkDefault, for hosts on neither the whitelist nor the blacklist. NetworkAllow means https and
// http at their standard ports.
const (
	NetworkDeny  NetworkDefault = "deny"
	NetworkAllow NetworkDefault = "allow"
)

// NetworkRule allows hosts, with ports and protocols. Without ports, the standard ports of the protocols are allowed.
// Without protocols, https is allowed.
type NetworkRule struct {
	Domain    string // a name, or *.name for everything below it
	Ports     []int
	Protocols []string // https, http, wss, ws, tcp, ssh
}

// NetworkSecret describes a header with a secret value, which is added to the requests that programs send to a
// domain. Programs never see the value.
type NetworkSecret struct {
	Domain string // a name, or *.name for everything below it
	Header string
	Value  string
}

func (n Network) withDefaults() Network {
	setDefault(&n.Default, NetworkDeny)
	setDefault(&n.RateLimitPerDomain, Rate{Count: core.DefaultNetworkRequests, Per: time.Minute})
	setDefault(&n.BytesPerRun, core.DefaultNetworkBytes)
	return n
}

func (n *Network) readFunc() readFunc {
	return readObject(
		fieldReader{"default", readOneOf(&n.Default, NetworkDeny, NetworkAllow)},
		fieldReader{"whitelist", readList(&n.Whitelist, (*NetworkRule).readFunc)},
		fieldReader{"blacklist", readList(&n.Blacklist, readNetworkTarget)},
		fieldReader{"rateLimitPerDomain", readRate(&n.RateLimitPerDomain, 1_000_000)},
		fieldReader{"bytesPerRun", readSize(&n.BytesPerRun, kib, tib)},
		fieldReader{"certificates", readPath(&n.Certificates)},
		fieldReader{"secrets", readList(&n.Secrets, (*NetworkSecret).readFunc)},
	)
}

func (n *NetworkRule) readFunc() readFunc {
	whole := readObject(
		fieldReader{"domain", readDomain(&n.Domain)},
		fieldReader{"ports", readList(&n.Ports, func(p *int) readFunc { return readInt(p, 1, 65_535) })},
		fieldReader{"protocols", readList(&n.Protocols, func(p *string) readFunc { return readOneOf(p, "https", "http", "wss", "ws", "tcp", "ssh") })},
	)
	return func(r *nodeReader, v *valueNode) {
		if v.kind == textKind {
			readDomain(&n.Domain)(r, v)
			return
		}
		whole(r, v)
		if slices.Contains(n.Protocols, "ssh") && len(n.Ports) > 0 && !slices.Contains(n.Ports, 22) {
			r.addProblem(v, "add 22 to ports", "ssh is allowed only on port 22")
		}
		if v.kind == objectKind && v.findEntry("domain") == nil {
			r.addProblem(v, "", "the rule does not name a domain")
		}
	}
}

func (s *NetworkSecret) readFunc() readFunc {
	whole := readObject(
		fieldReader{"domain", readDomain(&s.Domain)},
		fieldReader{"header", readChecked(&s.Header, "the name of a header", isHeader)},
		fieldReader{"value", readChecked(&s.Value, "the value of a header", func(v string) bool { return v != "" && !strings.ContainsAny(v, "\r\n\x00") })},
	)
	return func(r *nodeReader, v *valueNode) {
		whole(r, v)
		if v.kind == objectKind && (v.findEntry("domain") == nil || v.findEntry("header") == nil || v.findEntry("value") == nil) {
			r.addProblem(v, "", "a network secret needs a domain, a header and a value")
		}
	}
}

func isHeader(name string) bool {
	return regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$").MatchString(name)
}

func readNetworkTarget(s *string) readFunc {
	return readChecked(s, "a domain, an address or a range such as 10.0.0.0/8", isTarget)
}

func readDomain(s *string) readFunc {
	return readChecked(s, "a domain such as *.example.com", isDomain)
}

func isDomain(s string) bool {
	label := regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$`)
	s = strings.TrimPrefix(s, "*.")
	parts := strings.Split(s, ".")
	for _, part := range parts {
		if !label.MatchString(part) {
			return false
		}
	}
	if strings.Trim(parts[len(parts)-1], "0123456789") == "" { // an IP address is not a domain
		return false
	}
	return len(s) <= 253
}

func isTarget(s string) bool {
	if _, err := netip.ParsePrefix(s); err == nil {
		return true
	}
	_, err := netip.ParseAddr(s)
	return err == nil || isDomain(s)
}
