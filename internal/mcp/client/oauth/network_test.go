package oauth

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// TestWhereRequestsGo checks that requests of a login go only to public addresses and to the network that the server
// is in. The client must connect to the address that was checked: it must not resolve the host a second time.
func TestWhereRequestsGo(t *testing.T) {
	names := map[string][]string{
		"mcp.example": {"93.184.216.34"}, "auth.example": {"93.184.216.35", "2606:2800:220:1::1"}, "inside.example": {"10.0.0.5"}, "both.example": {"93.184.216.36", "127.0.0.1"},
		"intranet.example": {"10.1.2.3"}, "other.intranet": {"192.168.7.7"}, "local.example": {"127.0.0.1"}, "cloud.example": {"169.254.169.254"}, "mapped.example": {"::ffff:10.0.0.1"},
		"nowhere.example": {},
	}
	for _, c := range []struct {
		server, url string
		dials       string // address that the client must connect to; "" if the request must be refused
	}{
		{"https://mcp.example/mcp", "https://auth.example/token", "93.184.216.35:443"},
		{"https://mcp.example/mcp", "https://93.184.216.40:8443/token", "93.184.216.40:8443"},
		{"https://mcp.example/mcp", "https://inside.example/token", ""},
		{"https://mcp.example/mcp", "https://both.example/token", ""},
		{"https://mcp.example/mcp", "https://local.example/token", ""},
		{"https://mcp.example/mcp", "https://localhost/token", ""},
		{"https://mcp.example/mcp", "https://127.1.2.3/token", ""},
		{"https://mcp.example/mcp", "https://[::1]/token", ""},
		{"https://mcp.example/mcp", "https://0.0.0.0/token", ""},
		{"https://mcp.example/mcp", "https://[fe80::1]/token", ""},
		{"https://mcp.example/mcp", "https://[fd00::1]/token", ""},
		{"https://mcp.example/mcp", "https://100.64.0.1/token", ""},
		{"https://mcp.example/mcp", "https://cloud.example/token", ""},
		{"https://mcp.example/mcp", "https://mapped.example/token", ""},
		{"https://mcp.example/mcp", "https://[::ffff:7f00:1]/token", ""},
		{"https://mcp.example/mcp", "https://224.0.0.1/token", ""},
		{"https://mcp.example/mcp", "https://nowhere.example/token", ""},
		{"https://mcp.example/mcp", "http://auth.example/token", ""},
		{"https://mcp.example/mcp", "http://127.0.0.1/token", ""},
		{"https://intranet.example/mcp", "https://other.intranet/token", "192.168.7.7:443"},
		{"https://intranet.example/mcp", "https://auth.example/token", "93.184.216.35:443"},
		{"https://intranet.example/mcp", "https://local.example/token", ""},
		{"https://intranet.example/mcp", "https://cloud.example/token", ""},
		{"https://intranet.example/mcp", "http://intranet.example/token", ""},
		{"http://127.0.0.1:8080/mcp", "http://localhost:9090/token", "127.0.0.1:9090"},
		{"http://127.0.0.1:8080/mcp", "https://inside.example/token", ""},
		{"http://localhost:8080/mcp", "http://127.0.0.1:9090/token", "127.0.0.1:9090"},
	} {
		var dialled []string
		lookups := map[string]int{}
		n := Network{
			Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
				lookups[host]++
				var all []netip.Addr
				for _, a := range names[host] {
					all = append(all, netip.MustParseAddr(a))
				}
				if names[host] == nil {
					return nil, errors.New("unknown")
				}
				return all, nil
			},
			Dial: func(_ context.Context, _, address string) (net.Conn, error) {
				dialled = append(dialled, address)
				return nil, errors.New("recorded")
			},
		}
		t.Setenv("HTTPS_PROXY", "")
		_, err := n.newHTTPClient(c.server).Get(c.url)
		if err == nil {
			t.Errorf("%s got through", c.url)
		}
		if c.dials == "" && len(dialled) > 0 || c.dials != "" && !slices.Contains(dialled, c.dials) {
			t.Errorf("of %s, %s: dialled %v, want %q (%v)", c.server, c.url, dialled, c.dials, err)
		}
		if strings.Contains(c.url, "auth.example") && !strings.HasPrefix(c.url, "http:") && lookups["auth.example"] != 1 {
			t.Errorf("%s was looked up %d times", c.url, lookups["auth.example"])
		}
	}
}
