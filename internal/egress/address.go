package egress

import "net/netip"

// forbiddenPrefixes lists the address ranges that programs must not reach, even if the settings allow them. Each range
// has a description for error messages.
var forbiddenPrefixes = []struct {
	prefix netip.Prefix
	what   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "this machine"},
	{netip.MustParsePrefix("10.0.0.0/8"), "a private network"},
	{netip.MustParsePrefix("100.64.0.0/10"), "a provider's internal network"},
	{netip.MustParsePrefix("127.0.0.0/8"), "this machine"},
	{netip.MustParsePrefix("168.63.129.16/32"), "the metadata of a cloud"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local, which clouds use for metadata"},
	{netip.MustParsePrefix("172.16.0.0/12"), "a private network"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved for protocols"},
	{netip.MustParsePrefix("192.0.2.0/24"), "for documentation"},
	{netip.MustParsePrefix("192.31.196.0/24"), "reserved"},
	{netip.MustParsePrefix("192.52.193.0/24"), "reserved"},
	{netip.MustParsePrefix("192.88.99.0/24"), "a 6to4 relay"},
	{netip.MustParsePrefix("192.168.0.0/16"), "a private network"},
	{netip.MustParsePrefix("192.175.48.0/24"), "reserved"},
	{netip.MustParsePrefix("198.18.0.0/15"), "for benchmarks"},
	{netip.MustParsePrefix("198.51.100.0/24"), "for documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "for documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("::1/128"), "this machine"},
	{netip.MustParsePrefix("::/128"), "this machine"},
	{netip.MustParsePrefix("::ffff:0:0/96"), "an IPv4-mapped address"},
	{netip.MustParsePrefix("64:ff9b::/96"), "a translation to IPv4"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "a translation to IPv4"},
	{netip.MustParsePrefix("2001::/32"), "a tunnel (Teredo)"},
	{netip.MustParsePrefix("2001::/23"), "reserved for protocols"},
	{netip.MustParsePrefix("2001:db8::/32"), "for documentation"},
	{netip.MustParsePrefix("2002::/16"), "a tunnel (6to4)"},
	{netip.MustParsePrefix("3fff::/20"), "for documentation"},
	{netip.MustParsePrefix("fc00::/7"), "a private network"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("fec0::/10"), "a private network"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

// globalPrefix contains all IPv6 addresses that are currently assigned for use on the Internet.
var globalPrefix = netip.MustParsePrefix("2000::/3")

// forbiddenReason returns a description of the forbidden range that contains an address, or "" if programs may reach
// the address.
func forbiddenReason(a netip.Addr) string {
	if !a.IsValid() {
		return "no address"
	}
	a = plainAddr(a)
	for _, n := range forbiddenPrefixes {
		if n.prefix.Contains(a) {
			return n.what
		}
	}
	if a.Is6() && !globalPrefix.Contains(a) {
		return "not on the Internet"
	}
	return ""
}

// plainAddr returns an address in the form used for comparison: without a zone, and as IPv4 if it was mapped into
// IPv6.
func plainAddr(a netip.Addr) netip.Addr { return a.WithZone("").Unmap() }
