package web_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"retort/internal/mcpserver/web"
)

func (p *place) dial() net.Conn {
	p.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(strings.TrimSuffix(p.url, web.Path), "http://"))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}

// Requests that come by drops are ended, in the headers and in the body.
func TestSlowRequests(t *testing.T) {
	p := open(t, func(o *web.Options) { o.Limits.Read = 300 * time.Millisecond })
	for name, start := range map[string]string{
		"headers": "POST /mcp HTTP/1.1\r\nHost: localhost\r\n",
		"body":    "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
	} {
		t.Run(name, func(t *testing.T) {
			c := p.dial()
			_, _ = io.WriteString(c, start)
			ended := make(chan string, 1)
			go func() { text, _ := io.ReadAll(c); ended <- string(text) }()
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					_, _ = io.WriteString(c, "X")
				case text := <-ended:
					if name == "body" && !strings.HasPrefix(text, "HTTP/1.1 408") {
						t.Errorf("%q", text)
					}
					return
				case <-time.After(10 * time.Second):
					t.Fatal("the connection stands")
				}
			}
		})
	}
	if r, text := p.send("POST", "/mcp", hello); r.StatusCode != 200 {
		t.Error(r.Status, text)
	}
}

// A program takes as long as it takes, whatever a request may take to arrive.
func TestReadTimeoutIsNotForAnswers(t *testing.T) {
	p := open(t, func(o *web.Options) { o.Limits.Read = 200 * time.Millisecond })
	body, modern := program("await sleep(900); return 'late'", "")
	if r, text := p.send("POST", "/mcp", body, modern...); r.StatusCode != 200 || !strings.Contains(text, `"late"`) {
		t.Error(r.Status, text)
	}
}

func TestLargeHeaders(t *testing.T) {
	p := open(t, func(o *web.Options) { o.Limits.Header = 4096 })
	if r, _ := p.send("POST", "/mcp", hello, "X-Large: "+strings.Repeat("x", 20_000)); r.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Error(r.Status)
	}
}

// Connections beyond the limit wait until one ends.
func TestConnections(t *testing.T) {
	p := open(t, func(o *web.Options) { o.Limits.Connections = 2 })
	first, second := p.dial(), p.dial()
	third := p.dial()
	_, _ = io.WriteString(third, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	_ = third.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	if line, err := bufio.NewReader(third).ReadString('\n'); err == nil {
		t.Errorf("answered %q", line)
	}
	_, _ = first.Close(), second.Close()
	_ = third.SetReadDeadline(time.Now().Add(10 * time.Second))
	if line, err := bufio.NewReader(third).ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 200") {
		t.Errorf("%q %v", line, err)
	}
}

// pair writes a certificate for a name, which is its own authority.
func pair(t *testing.T, dir, name string) {
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
	dir := t.TempDir()
	pair(t, dir, "retort.example")
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
	if _, err := web.Listen(web.Options{Addr: "127.0.0.1:0", Cert: filepath.Join(dir, "key.pem"), Key: filepath.Join(dir, "key.pem")}); err == nil {
		t.Error("a certificate that is none is taken")
	}
}
