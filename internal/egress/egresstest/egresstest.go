// Package egresstest simulates a part of the Internet for tests. It has hosts with certificates of its own
// certificate authority, a resolver that knows these hosts, and a dialer that connects to a server on this machine
// and records the requested addresses. It sends no traffic to other machines.
package egresstest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Public is the address of every host for which a test has set no other address. It is a real public address, but the
// dialer never connects to it.
var Public = netip.MustParseAddr("93.184.215.14")

// Site is a simulated web site that serves several host names with one handler. It serves http at port 80 and https at
// every other port.
type Site struct {
	Roots       *x509.CertPool
	Certificate []byte // certificate of the certificate authority, in PEM format

	plain, sealed string // address of the local http server

	mu sync.Mutex
	// lists of addresses that the resolver returns, by host; used in order, with the last one repeated
	answers  map[string][][]netip.Addr
	resolved []string
	dialled  []string
}

// New starts a Site that serves handler for hosts until the test ends.
func New(t testing.TB, handler http.Handler, hosts ...string) *Site {
	t.Helper()
	s := &Site{answers: map[string][][]netip.Addr{}}
	for _, h := range hosts {
		s.Answer(h, Public)
	}
	certificate := s.authority(t, hosts)
	plain := httptest.NewServer(handler)
	t.Cleanup(plain.Close)
	sealed := httptest.NewUnstartedServer(handler)
	sealed.EnableHTTP2 = true
	sealed.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // of handshakes that are meant to fail
	sealed.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	sealed.StartTLS()
	t.Cleanup(sealed.Close)
	s.plain, s.sealed = plain.Listener.Addr().String(), sealed.Listener.Addr().String()
	return s
}

// authority creates a certificate authority and a certificate for hosts that it has signed.
func (s *Site) authority(t testing.TB, hosts []string) tls.Certificate {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of a test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	root, err := x509.CreateCertificate(rand.Reader, ca, ca, &key.PublicKey, key)
	must(err)
	parsed, err := x509.ParseCertificate(root)
	must(err)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "hosts of a test"}, NotBefore: ca.NotBefore,
		NotAfter: ca.NotAfter, DNSNames: hosts,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	signed, err := x509.CreateCertificate(rand.Reader, leaf, parsed, &own.PublicKey, key)
	must(err)
	s.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root})
	s.Roots = x509.NewCertPool()
	s.Roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{signed, root}, PrivateKey: own}
}

// Answer adds a list of addresses that the resolver returns for a host. The resolver returns the lists in the order in
// which they were added, and repeats the last one.
func (s *Site) Answer(host string, addrs ...netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[host] = append(s.answers[host], addrs)
}

// LookupNetIP resolves the hosts of the site. It makes the Site an egress.Resolver.
func (s *Site) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resolved = append(s.resolved, host)
	list := s.answers[host]
	if len(list) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	if len(list) > 1 {
		s.answers[host] = list[1:]
	}
	return slices.Clone(list[0]), nil
}

// DialContext connects to a server of the site if the address is Public, whatever the port. It fails for port 9 and
// for all other addresses. It makes the Site an egress.Dialer.
func (s *Site) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	s.mu.Lock()
	s.dialled = append(s.dialled, address)
	s.mu.Unlock()
	at, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp" || at.Addr() != Public {
		return nil, fmt.Errorf("dialled %s %s", network, address)
	}
	to := s.sealed
	switch at.Port() {
	case 80:
		to = s.plain
	case 9: // discard: nobody is there
		return nil, errors.New("connection refused")
	}
	var d net.Dialer
	return d.DialContext(ctx, network, to)
}

// Dialled returns the addresses that DialContext was asked for.
func (s *Site) Dialled() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.dialled)
}

// Resolved returns the hosts that LookupNetIP was asked for.
func (s *Site) Resolved() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.resolved)
}

// Strangers returns the dialled addresses that do not belong to the site. A test fails if a program reaches one of
// them.
func (s *Site) Strangers() (found []string) {
	for _, a := range s.Dialled() {
		if !strings.HasPrefix(a, Public.String()+":") {
			found = append(found, a)
		}
	}
	return found
}
