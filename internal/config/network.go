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
	BytesPerRun        int64  // bytes that one execution may send and receive
	Certificates       string // absolute path of a PEM file with certificate authorities; "": those of the machine
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
	Domain    string // domain name, or *.name for all its subdomains
	Ports     []int
	Protocols []string // https, http, wss, ws, tcp, ssh
}

// NetworkSecret describes a header with a secret value, which is added to the requests that programs send to a
// domain. Programs never see the value.
type NetworkSecret struct {
	Domain string // domain name, or *.name for all its subdomains
	Header string
	Value  string
}

func (n Network) withDefaults() Network {
	setDefault(&n.Default, NetworkDeny)
	setDefault(&n.RateLimitPerDomain, Rate{Count: core.DefaultNetworkRequests, Per: time.Minute})
	setDefault(&n.BytesPerRun, core.DefaultNetworkBytes)
	return n
}

func (n *Network) reader() settingReader {
	return readObject(
		fieldReader{"default", "Whether programs may reach hosts that are on neither list.", readOneOf(&n.Default, NetworkDeny, NetworkAllow)},
		fieldReader{"whitelist", "Hosts that programs may reach.", readList(&n.Whitelist, (*NetworkRule).reader)},
		fieldReader{"blacklist", "Domains, addresses and ranges that programs may not reach. It is stronger than whitelist.", readList(&n.Blacklist, readNetworkTarget)},
		fieldReader{"rateLimitPerDomain", "Maximum rate of requests to one domain.", readRate(&n.RateLimitPerDomain, 1_000_000)},
		fieldReader{"bytesPerRun", "Bytes that one execution may send and receive.", readSize(&n.BytesPerRun, kib, tib)},
		fieldReader{"certificates", "File with certificate authorities (PEM), in addition to those of the machine. Python's own connections accept only these.", readPath(&n.Certificates)},
		fieldReader{"secrets", "Headers with secret values, which Retort adds to requests. Programs never see the values.", readList(&n.Secrets, (*NetworkSecret).reader)},
	)
}

func (n *NetworkRule) reader() settingReader {
	whole := readObject(
		fieldReader{"domain", "A name, or *.name for everything below it.", readDomain(&n.Domain)},
		fieldReader{"ports", "Allowed ports. The default is the standard ports of the protocols.", readList(&n.Ports, func(p *int) settingReader { return readInt(p, 1, 65_535) })},
		fieldReader{"protocols", "Allowed protocols. The default is https.", readList(&n.Protocols, func(p *string) settingReader { return readOneOf(p, "https", "http", "wss", "ws", "tcp", "ssh") })},
	)
	domain := readDomain(&n.Domain)
	return settingReader{
		read: func(r *nodeReader, v *valueNode) {
			if v.kind == textKind {
				domain.read(r, v)
				return
			}
			whole.read(r, v)
			if slices.Contains(n.Protocols, "ssh") && len(n.Ports) > 0 && !slices.Contains(n.Ports, 22) {
				r.addProblem(v, "add 22 to ports", "ssh is allowed only on port 22")
			}
			if v.kind == objectKind && v.findEntry("domain") == nil {
				r.addProblem(v, "", "the rule does not name a domain")
			}
		},
		schema: anyOf(typeSchema("string"), whole.schema.withRequired("domain")),
		show:   whole.show,
	}
}

func (s *NetworkSecret) reader() settingReader {
	whole := readObject(
		fieldReader{"domain", "A name, or *.name for everything below it.", readDomain(&s.Domain)},
		fieldReader{"header", "Name of the header.", readMatching(&s.Header, "the name of a header", headerPattern)},
		fieldReader{"value", "Value of the header, usually a variable such as ${TOKEN}.", secret(readChecked(&s.Value, "the value of a header", func(v string) bool { return v != "" && !strings.ContainsAny(v, "\r\n\x00") }))},
	)
	whole.schema = whole.schema.withRequired("domain", "header", "value")
	return whole.checkedBy(func(r *nodeReader, v *valueNode) {
		whole.read(r, v)
		if v.kind == objectKind && (v.findEntry("domain") == nil || v.findEntry("header") == nil || v.findEntry("value") == nil) {
			r.addProblem(v, "", "a network secret needs a domain, a header and a value")
		}
	})
}

const headerPattern = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"

func readNetworkTarget(s *string) settingReader {
	return readChecked(s, "a domain, an address or a range such as 10.0.0.0/8", isTarget)
}

func readDomain(s *string) settingReader {
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
