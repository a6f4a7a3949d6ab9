package web

import (
	"crypto/tls"
	"os"
	"sync"
	"time"

	"retort/internal/core"
)

// reloadingCertificate represents a TLS certificate that is loaded again when its files change.
type reloadingCertificate struct {
	cert, key string

	mu      sync.Mutex
	now     *tls.Certificate
	changed time.Time // modification time of the certificate's file
	looked  time.Time
}

func openCertificate(cert, key string) (*reloadingCertificate, error) {
	c := &reloadingCertificate{cert: cert, key: key}
	if err := c.loadFiles(); err != nil {
		return nil,
			core.Errorf(core.KindInvalidArguments, "http", "http.tls: %w", err).WithHint("cert and key must be PEM files of the same key pair")
	}
	return c, nil
}

func (c *reloadingCertificate) loadFiles() error {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return err
	}
	c.now, c.looked = &pair, time.Now()
	if info, err := os.Stat(c.cert); err == nil {
		c.changed = info.ModTime()
	}
	return nil
}

// sweepInterval is the shortest interval at which the files of the certificate are checked for changes.
const sweepInterval = time.Minute

// getCertificate returns the current certificate. If a new one cannot be loaded, it returns the previous one.
func (c *reloadingCertificate) getCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) < sweepInterval {
		return c.now, nil
	}
	c.looked = time.Now()
	if info, err := os.Stat(c.cert); err == nil && !info.ModTime().Equal(c.changed) {
		_ = c.loadFiles()
	}
	return c.now, nil
}

// isForHost reports whether the certificate is valid for a host name.
func (c *reloadingCertificate) isForHost(host string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now.Leaf != nil && c.now.Leaf.VerifyHostname(host) == nil
}
