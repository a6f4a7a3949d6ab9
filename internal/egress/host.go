package egress

import (
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"retort/internal/core"
)

const (
	maxHost  = 253
	maxLabel = 63
)

// ParseHost converts a host to the only form that is compared, resolved and requested: an ASCII name in lower case
// without a trailing dot. It refuses invalid names, and IP addresses in any notation. No other code parses hosts.
func ParseHost(host string) (string, *core.Error) {
	if host == "" {
		return "", policyErrorf("the address does not contain a host")
	}
	if len(host) > maxHost+1 {
		return "", policyErrorf("the host is longer than %d characters", maxHost)
	}
	for _, r := range host {
		if r <= ' ' || r == 0x7f || r == '\uFFFD' {
			return "", policyErrorf("the host %s contains an invalid character", quoteShort(host))
		}
	}
	if strings.ContainsAny(host, "[]:") {
		return "", literalAddressError(host)
	}
	name := strings.TrimSuffix(host, ".")
	if needsIDNA(name) {
		ascii, err := idna.Lookup.ToASCII(name)
		if err != nil {
			return "", policyErrorf("the host %s is not a valid name: %v", quoteShort(host), err)
		}
		name = strings.TrimSuffix(ascii, ".")
	}
	name = strings.ToLower(name)
	labels := strings.Split(name, ".")
	for _, l := range labels {
		if !isLabel(l) {
			return "", policyErrorf("the host %s is not a valid name", quoteShort(host))
		}
	}
	if len(name) > maxHost {
		return "", policyErrorf("the host is longer than %d characters", maxHost)
	}
	if isNumber(labels[len(labels)-1]) {
		return "", literalAddressError(host)
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return "", literalAddressError(host)
	}
	return name, nil
}

// needsIDNA reports whether a name has non-ASCII characters or contains "xn--", which marks an encoded label.
func needsIDNA(name string) bool {
	for i := range len(name) {
		if name[i] >= 0x80 {
			return true
		}
	}
	return strings.Contains(strings.ToLower(name), "xn--")
}

func isLabel(l string) bool {
	if l == "" || len(l) > maxLabel || l[0] == '-' || l[len(l)-1] == '-' {
		return false
	}
	for i := range len(l) {
		c := l[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}

// isNumber reports whether the last label of a host, l, makes some parsers read the host as an IP address. Examples
// of such hosts are 127.1, 0x7f.1, 0177.0.0.1 and 2130706433.
func isNumber(l string) bool {
	if digits := strings.TrimPrefix(l, "0x"); digits != l {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return strings.Trim(l, "0123456789") == ""
}

func literalAddressError(host string) *core.Error {
	return policyErrorf("%s is an address, not a name", quoteShort(host)).WithHint(
		"programs reach hosts only by name, and only those in the setting network.whitelist",
	)
}

// ParsePort parses the port of a URL.
func ParsePort(text string) (int, *core.Error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || text[0] == '0' || strings.Trim(text, "0123456789") != "" {
		return 0, policyErrorf("%s is not a valid port", quoteShort(text))
	}
	return int(n), nil
}

// parseAuthority parses host:port. Both are required.
func parseAuthority(text string) (string, int, *core.Error) {
	at := strings.LastIndexByte(text, ':')
	if at < 0 {
		return "", 0, policyErrorf("%s does not contain a port", quoteShort(text))
	}
	if strings.ContainsAny(text, "@/\\?#%") {
		return "", 0, policyErrorf("%s contains more than a host and a port", quoteShort(text))
	}
	host, refused := ParseHost(text[:at])
	if refused != nil {
		return "", 0, refused
	}
	port, refused := ParsePort(text[at+1:])
	return host, port, refused
}

// quoteShort shortens and quotes a text that a program has supplied, for an error message.
func quoteShort(text string) string {
	const most = 80
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strconv.QuoteToASCII(text)
}

func policyErrorf(format string, args ...any) *core.Error {
	return core.Errorf(core.KindPolicy, "egress", format, args...)
}
