package engine

import (
	"crypto/x509"
	"maps"
	"os"
	"slices"
	"strings"

	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/egress"
	"retort/internal/pipeline"
	"retort/internal/sandbox/interpreter"
)

// internet resolves names and connects to addresses for the requests of programs. nil means the network of this
// machine.
type internet interface {
	egress.Resolver
	egress.Dialer
}

// openNetwork creates the network for programs from the settings. Without settings it blocks everything.
func openNetwork(c *configuration) (*egress.Network, error) {
	s := c.config.Settings.Network
	o := egress.Options{
		Open: s.Default == config.NetworkAllow, Deny: s.Blacklist, Rate: s.RateLimitPerDomain.Count,
		Per: s.RateLimitPerDomain.Per, Bytes: s.BytesPerRun,
	}
	for _, r := range s.Whitelist {
		o.Allow = append(o.Allow, egress.Rule(r))
	}
	for _, secret := range s.Secrets {
		o.Secrets = append(o.Secrets, egress.Secret(secret))
	}
	if to := c.source.internet; to != nil {
		o.Resolver, o.Dialer = to, to
	}
	var err error
	if s.Certificates != "" {
		if o.Roots, err = loadAuthorities(s.Certificates); err != nil {
			return nil, err
		}
	}
	network, err := egress.New(o)
	if err != nil {
		return nil, err
	}
	for _, name := range append(slices.Collect(maps.Keys(c.config.Settings.Principals)), "") {
		view := c.policy.ViewFor(name)
		if group, ok := strings.CutPrefix(name, core.GroupPrefix); ok {
			view = c.policy.ViewFor("", group)
		}
		if _, err := pipeline.NarrowNetwork(network, view); err != nil {
			return nil, err
		}
	}
	return network, nil
}

// loadAuthorities returns the certificate authorities of this machine and those in a file.
func loadAuthorities(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, core.Errorf(core.KindInvalidArguments, "retort.open", "network.certificates: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, core.Errorf(core.KindInvalidArguments, "retort.open", "network.certificates: there is no certificate in %s", file)
	}
	return pool, nil
}

// proxyOf returns the proxy settings with which interpreted programs reach the network; nil if the network is closed.
func proxyOf(network *egress.Network, s config.Settings) *interpreter.ProxyNetwork {
	if network.IsClosed() {
		return nil
	}
	return &interpreter.ProxyNetwork{Certificates: s.Network.Certificates}
}
