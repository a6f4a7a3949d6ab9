package web_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"retort/internal/mcp/server/web"
)

func TestLargeHeaders(t *testing.T) {
	t.Parallel()
	p := open(t, func(o *web.Options) { o.Limits.Header = 4096 })
	if r, _ := p.send("POST", "/mcp", hello, "X-Large: "+strings.Repeat("x", 20_000)); r.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Error(r.Status)
	}
}

// writeCertificate writes a self-signed certificate for a host name and the certificate's key to files in the folder
// dir.
func writeCertificate(t *testing.T, dir, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, &about, &about, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	der, _ := x509.MarshalPKCS8PrivateKey(key)
	for file, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: cert}, "key.pem": {Type: "PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeCertificate(t, dir, "retort.example")
	p := open(t, func(o *web.Options) {
		o.Addr, o.Authenticator = "0.0.0.0:0", tokens{}
		o.Cert, o.Key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	})
	if !strings.HasPrefix(p.url, "https://") {
		t.Fatal(p.url)
	}
	_, port, _ := net.SplitHostPort(strings.TrimSuffix(strings.TrimPrefix(p.url, "https://"), web.Path))
	p.url = "https://127.0.0.1:" + port + web.Path
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}}
	for host, status := range map[string]int{"retort.example": 200, "retort.example:443": 200, "203.0.113.9": 200, "evil.example": 403} {
		r, _ := http.NewRequest("POST", p.url, strings.NewReader(hello))
		r.Host = host
		r.Header = http.Header{"Accept": {accepts}, "Content-Type": {"application/json"}, "Authorization": {"Bearer token-ann"}}
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != status || response.ProtoMajor != 2 {
			t.Errorf("%s: %s %s", host, response.Status, response.Proto)
		}
	}
	if _, err := web.OpenListener(web.Options{Addr: "127.0.0.1:0", Cert: filepath.Join(dir, "key.pem"), Key: filepath.Join(dir, "key.pem")}); err == nil {
		t.Error("an invalid certificate is accepted")
	}
}
