package bench

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"retort/internal/egress"
)

// allowedHost is the host to which the measured requests go.
const allowedHost = "api.example.com"

// measureEgress compares requests that programs make through the proxy with the same requests made without the proxy.
// All requests go to a server on this machine, so nothing is sent to the network.
func (b *benchRun) measureEgress(ctx context.Context) error {
	site, err := newSite()
	if err != nil {
		return err
	}
	defer site.closeSite()
	allowed := egress.Rule{Domain: allowedHost}
	n, err := egress.New(egress.Options{
		Allow: []egress.Rule{allowed}, Rate: 1 << 30, Per: time.Minute, Roots: site.roots, Resolver: site, Dialer: site,
	})
	if err != nil {
		return err
	}
	proxy, err := newProxy(ctx, n)
	if err != nil {
		return err
	}
	defer proxy.close()
	direct, through := site.newClient(nil), site.newClient(proxy.address)
	for _, m := range []struct {
		name  string
		alone bool
	}{{"a connection each", true}, {"one connection", false}} {
		ways := []requestVariant{
			{"direct", func() error { return requestPage(direct, m.alone) }},
			{"through the proxy", func() error { return requestPage(through, m.alone) }},
		}
		if !m.alone {
			ways = append(ways, requestVariant{"fetch", func() error { return fetchPage(ctx, proxy.session, allowedHost) }})
		}
		if err := b.compareVariants("egress: https request, "+m.name, ways); err != nil {
			return err
		}
	}
	return b.measureRefusals(ctx, n)
}

// requestVariant describes one way to make the same request, for example directly or through the proxy.
type requestVariant struct {
	name string
	ask  func() error
}

// compareVariants measures the variants in turn, so that other load on the machine affects all of them alike. It adds
// a row for each variant. For each variant except the first, it adds another row that says how many times as long as
// the first it takes.
func (b *benchRun) compareVariants(name string, ways []requestVariant) error {
	const warm, runs = 50, 500
	took := make([][]float64, len(ways))
	for i := range warm + runs {
		for j, w := range ways {
			began := time.Now()
			if err := w.ask(); err != nil {
				return err
			}
			if i >= warm {
				took[j] = append(took[j], float64(time.Since(began))/float64(time.Microsecond))
			}
		}
	}
	for j, w := range ways {
		b.addRow(name+": "+w.name, took[j], "µs", 0)
	}
	measured := b.rows[len(b.rows)-len(ways):]
	for j, w := range ways[1:] {
		b.rows = append(b.rows, ResultRow{
			Name: name + ": " + w.name + " against direct", Median: measured[j+1].Median / measured[0].Median,
			Unit: "times",
		})
	}
	return nil
}

// measureRefusals measures how many consecutive requests per second the network can refuse and record.
func (b *benchRun) measureRefusals(ctx context.Context, n *egress.Network) error {
	const many = 5000 // fewer than one execution may attempt
	session := n.Open(egress.ExecutionHooks{})
	defer session.Close()
	began := time.Now()
	for range many {
		if fetchPage(ctx, session, "evil.example.com") == nil {
			return errors.New("a request that nobody allows was made")
		}
	}
	b.rows = append(b.rows, ResultRow{Name: "egress: refusals of fetch in a second", Median: many / time.Since(began).Seconds(), Runs: many})
	proxy, err := newProxy(ctx, n)
	if err != nil {
		return err
	}
	defer proxy.close()
	began = time.Now()
	for range many / 5 {
		if err := refusedTunnel(proxy.address.Host); err != nil {
			return err
		}
	}
	b.rows = append(b.rows, ResultRow{
		Name:   "egress: refusals of the proxy in a second, a connection each",
		Median: many / 5 / time.Since(began).Seconds(), Runs: many / 5,
	})
	return nil
}

func refusedTunnel(proxy string) error {
	conn, err := net.Dial("tcp", proxy)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "CONNECT evil.example.com:443 HTTP/1.1\r\nHost: evil.example.com:443\r\n\r\n"); err != nil {
		return err
	}
	status := make([]byte, 12)
	if _, err := io.ReadFull(conn, status); err != nil || string(status) != "HTTP/1.1 403" {
		return fmt.Errorf("a tunnel that nobody allows: %q, %w", status, err)
	}
	return nil
}

// requestPage makes a request and reads the response. If alone is true, it uses a new connection.
func requestPage(c *http.Client, alone bool) error {
	if alone {
		c.CloseIdleConnections()
	}
	r, err := c.Get("https://" + allowedHost + "/")
	if err != nil {
		return err
	}
	defer r.Body.Close()
	_, err = io.Copy(io.Discard, r.Body)
	return err
}

// fetchPage makes a request in the same way as a program's fetch.
func fetchPage(ctx context.Context, s *egress.Session, host string) error {
	arguments, err := json.Marshal(egress.Request{URL: "https://" + host + "/", Method: http.MethodGet})
	if err != nil {
		return err
	}
	_, err = s.HostFunctions()["fetch"](ctx, arguments)
	return err
}

// localSite is a server on this machine that plays a remote host.
type localSite struct {
	roots    *x509.CertPool
	listener net.Listener
	server   *http.Server
}

// fakeAddress is the address to which every host name resolves in the measurements. It is never dialled.
var fakeAddress = netip.MustParseAddr("93.184.215.14")

func newSite() (*localSite, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	own := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: allowedHost}, DNSNames: []string{allowedHost},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, own, own, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParseCertificate(signed)
	if err != nil {
		return nil, err
	}
	s := &localSite{roots: x509.NewCertPool()}
	s.roots.AddCert(parsed)
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	s.server = &http.Server{
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{signed}, PrivateKey: key}}}, ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"ok":true}`) }),
	}
	go func() { _ = s.server.ServeTLS(s.listener, "", "") }() // until close
	return s, nil
}

func (s *localSite) closeSite() { _ = s.server.Close() }

// LookupNetIP implements egress.Resolver.
func (s *localSite) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{fakeAddress}, nil
}

// DialContext implements egress.Dialer. It connects to the site, whatever the address is.
func (s *localSite) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", s.listener.Addr().String())
}

// newClient returns a client that connects to the site, through proxy unless it is nil.
func (s *localSite) newClient(proxy *url.URL) *http.Client {
	t := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.roots, MinVersion: tls.VersionTLS12}, DialContext: s.DialContext}
	if proxy != nil {
		t.Proxy, t.DialContext = http.ProxyURL(proxy), nil
	}
	return &http.Client{Transport: t, Timeout: time.Minute}
}

// localProxy represents the proxy of one execution, listening on a port of this machine.
type localProxy struct {
	session *egress.Session
	address *url.URL
	close   func()
}

func newProxy(ctx context.Context, n *egress.Network) (*localProxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &localProxy{session: n.Open(egress.ExecutionHooks{}), address: &url.URL{Scheme: "http", Host: l.Addr().String()}}
	p.close = func() {
		_ = l.Close()
		p.session.Close()
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go p.session.ServeConn(ctx, conn)
		}
	}()
	return p, nil
}
