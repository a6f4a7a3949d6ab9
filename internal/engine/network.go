package engine

import (
	"crypto/x509"
	"maps"
	"os"
	"slices"

	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/egress"
	"retort/internal/pipeline"
	"retort/internal/pipeline/check/rules"
	"retort/internal/sandbox/interpreter"
)

// internet sends the requests of programs; nil means the network of this machine.
type internet interface {
	egress.Resolver
	egress.Dialer
}

// openNetwork creates the network for programs from the settings. Without settings all of it is blocked.
func (p *parts) openNetwork(to internet) error {
	s := p.config.Settings.Network
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
	if to != nil {
		o.Resolver, o.Dialer = to, to
	}
	var err error
	if s.Certificates != "" {
		if o.Roots, err = authorities(s.Certificates); err != nil {
			return err
		}
	}
	if p.network, err = egress.New(o); err != nil {
		return err
	}
	for _, name := range append(slices.Collect(maps.Keys(p.config.Settings.Principals)), "") {
		if _, err = pipeline.NarrowNetwork(p.network, p.policy.ViewFor(name)); err != nil {
			return err
		}
	}
	return nil
}

// authorities returns the certificate authorities of this machine and those in a file.
func authorities(file string) (*x509.CertPool, error) {
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

// proxied returns the proxy settings with which interpreted programs reach the network; nil if the network is closed.
func (p *parts) proxied() *interpreter.ProxyNetwork {
	if p.network.IsClosed() {
		return nil
	}
	return &interpreter.ProxyNetwork{Certificates: p.config.Settings.Network.Certificates}
}

// level returns the rules that programs are checked against.
func (p *parts) level() rules.StrictnessLevel {
	level := levels[p.config.Settings.SecurityLevel]
	if !p.network.IsClosed() {
		level |= rules.Networked
	}
	if len(p.config.Settings.Commands) > 0 {
		level |= rules.Commanding
	}
	return level
}
