// Package egress decides which hosts programs reach over the network: none, except the domains that the user has
// allowed. All connections are decided in the same way. A host is parsed once, checked against the lists with its
// port and protocol, and resolved once. Each of its addresses is checked, and the connection goes to an address that
// was checked.
//
// A program has no socket of its own. It either asks the engine to make a request (FetchURL), or it uses its own
// proxy (ServeConn), whose connections the engine makes.
package egress

import (
	"context"
	"crypto/x509"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"retort/internal/core"
)

// Protocols that a rule can name. A tunnel is encrypted, so https and wss cannot be distinguished in it.
const (
	https = "https"
	http1 = "http"
	wss   = "wss"
	ws    = "ws"
	tcp   = "tcp"
	ssh   = "ssh" // only in a tunnel, and only at port sshPort
)

const sshPort = 22

// Rule allows hosts, with ports and protocols. A rule without protocols allows https. A rule without ports allows the
// standard ports of its protocols. tcp has no standard port, so a rule with tcp must list ports. If a rule names ssh,
// port 22 is reserved for ssh and tcp.
type Rule struct {
	Domain    string // host name, or "*." and a name for all hosts below that name
	Ports     []int
	Protocols []string
}

// Secret describes a header that is added to requests to a domain. Programs never see its value.
type Secret struct {
	Domain string // host name, or "*." and a name for all hosts below that name
	Header string
	Value  string
}

// Resolver resolves host names to addresses. *net.Resolver implements it.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Dialer connects to an IP address and port. *net.Dialer implements it.
type Dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// Options configures a Network. The zero value allows no host.
type Options struct {
	Allow []Rule
	// Open also allows https and http, at their standard ports, to hosts that no rule names.
	Open    bool
	Deny    []string // domains, addresses and address ranges that are denied even if Allow lists them
	Secrets []Secret
	// Rate limits the number of requests and tunnels within the time Per. Each rule has its own limit, and so has each
	// host that only Open allows. If Rate or Per is zero, the limit is 100 per minute.
	Rate int
	Per  time.Duration
	// Bytes limits the number of bytes that one execution may send and receive in total. Zero means 100 MB.
	Bytes int64
	// Body limits the body of a response to FetchURL, in bytes. Zero means 16 MiB.
	Body int64
	// Roots holds the certificate authorities that FetchURL trusts. Nil means those of the operating system.
	Roots    *x509.CertPool
	Resolver Resolver // resolver for host names; nil means the resolver of the operating system
	Dialer   Dialer   // dialer for all connections; nil means a net.Dialer
	// Own returns the addresses of this machine, which no program may reach. If it is nil, the addresses are read from
	// the machine's network interfaces.
	Own func() []netip.Addr
	Now func() time.Time // clock for the rate limits; nil means time.Now
}

// Network decides which hosts programs may reach, and connects to them. It is safe for concurrent use.
type Network struct {
	o       Options
	rules   []Rule // Options.Allow with normalised domains and default protocols and ports
	secrets []Secret
	denied  targetSet // hosts and address ranges of Options.Deny
	scopes  []compiledScope
	rates   *rateLimiter
}

const (
	defaultBody = 16 << 20
)

// New returns a Network with these options. Its errors are of kind invalid_arguments.
func New(o Options) (*Network, error) {
	n := &Network{o: o.withDefaults()}
	for _, r := range o.Allow {
		checked, err := r.normalizeRule()
		if err != nil {
			return nil, err
		}
		n.rules = append(n.rules, checked)
	}
	for _, s := range o.Secrets {
		domain, err := parsePattern(s.Domain)
		if err != nil {
			return nil, err
		}
		if !isHeaderName(s.Header) || !isHeaderValue(s.Value) || s.Value == "" || isReservedHeader(s.Header) {
			return nil, invalidErrorf("network.secrets: the header %s for %s cannot be sent", quoteShort(s.Header), s.Domain)
		}
		n.secrets = append(n.secrets, Secret{domain, s.Header, s.Value})
	}
	var err error
	if n.denied, err = parseTargets(o.Deny); err != nil {
		return nil, err
	}
	n.rates = newRateLimiter(n.o.Rate, n.o.Per)
	return n, nil
}

func (o Options) withDefaults() Options {
	if o.Rate <= 0 || o.Per <= 0 {
		o.Rate, o.Per = core.DefaultNetworkRequests, time.Minute
	}
	if o.Bytes <= 0 {
		o.Bytes = core.DefaultNetworkBytes
	}
	if o.Body <= 0 {
		o.Body = defaultBody
	}
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Dialer == nil {
		o.Dialer = &net.Dialer{Timeout: dialTimeout}
	}
	if o.Own == nil {
		o.Own = ownAddresses
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// IsClosed reports whether the network allows no host.
func (n *Network) IsClosed() bool {
	return n == nil || len(n.rules) == 0 && !n.o.Open || slices.ContainsFunc(n.scopes, compiledScope.allowsNone)
}

var defaultPorts = map[string]int{https: 443, wss: 443, http1: 80, ws: 80, ssh: sshPort}

func (r Rule) normalizeRule() (Rule, error) {
	domain, err := parsePattern(r.Domain)
	if err != nil {
		return r, err
	}
	c := Rule{domain, slices.Clone(r.Ports), slices.Clone(r.Protocols)}
	if len(c.Protocols) == 0 {
		c.Protocols = []string{https}
	}
	for _, p := range c.Protocols {
		switch port, known := defaultPorts[p]; {
		case known && len(r.Ports) == 0 && !slices.Contains(c.Ports, port):
			c.Ports = append(c.Ports, port)
		case !known && p != tcp:
			return r, invalidErrorf("network.whitelist: unknown protocol %s", quoteShort(p))
		case p == tcp && len(r.Ports) == 0:
			return r, invalidErrorf("network.whitelist: %s allows tcp, but does not list ports", r.Domain)
		case p == ssh && !slices.Contains(c.Ports, sshPort):
			return r, invalidErrorf("network.whitelist: %s allows ssh, which is possible only on port 22, but lists other ports", r.Domain)
		}
	}
	return c, nil
}

// allowsPort reports whether the rule allows a protocol at a port.
func (r Rule) allowsPort(protocol string, port int) bool {
	if !slices.Contains(r.Protocols, protocol) || !slices.Contains(r.Ports, port) {
		return false
	}
	if protocol == ssh || port == sshPort && slices.Contains(r.Protocols, ssh) {
		return port == sshPort && (protocol == ssh || protocol == tcp)
	}
	return true
}

// parsePattern returns a domain from the settings in the form in which it is compared with hosts.
func parsePattern(domain string) (string, error) {
	name, wild := strings.CutPrefix(domain, "*.")
	host, refused := ParseHost(name)
	if refused != nil {
		return "", invalidErrorf("network: %s is not a domain: %s", quoteShort(domain), refused.Message)
	}
	if wild {
		return "*." + host, nil
	}
	return host, nil
}

func matchesPattern(pattern, host string) bool {
	if below, wild := strings.CutPrefix(pattern, "*"); wild {
		return len(host) > len(below) && strings.HasSuffix(host, below)
	}
	return pattern == host
}

func ownAddresses() []netip.Addr {
	var own []netip.Addr
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			own = append(own, plainAddr(p.Addr()))
		}
	}
	return own
}

func invalidErrorf(format string, args ...any) error {
	return core.Errorf(core.KindInvalidArguments, "egress", format, args...)
}
