package web

import (
	"sync"

	"retort/internal/core"
)

// clientAddress has the principal of a request, or of all requests of a session, with the newest token. It is safe
// for concurrent use.
type clientAddress struct {
	tenant *tenant
	mu     sync.Mutex
	now    Principal
}

// renew replaces the token of the client by another one of the same principal.
func (c *clientAddress) renew(p Principal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = p
}

func (c *clientAddress) current() Principal {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// permit returns the Permit for work that is done for the client. An expired token of an authorization server is
// replaced by a newer one of the same principal, if there is one. A revoked token is not.
func (c *clientAddress) permit() core.Permit {
	p := c.current()
	if p.Holds == nil {
		return core.Permit{}
	}
	return core.Permit{Credential: p.Credential, Check: func() *core.Error {
		p := c.current()
		if p.Holds() || expires(p) && c.tenant.renewed() {
			return nil
		}
		return core.Revoked()
	}}
}

// expires reports whether a token ends by itself, and cannot be revoked.
func expires(p Principal) bool { return p.Credential.Token == "" && !p.Credential.Expires.IsZero() }

// renew notes the newest token that ends by itself.
func (t *tenant) renew(p Principal) {
	if !expires(p) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !p.Credential.Expires.Before(t.newest.Credential.Expires) {
		t.newest = p
	}
}

// renewed reports whether the newest such token is valid.
func (t *tenant) renewed() bool {
	t.mu.Lock()
	p := t.newest
	t.mu.Unlock()
	return p.Holds != nil && p.Holds()
}
