package web

import (
	"sync"

	"retort/internal/core"
)

// tokenHolder stores the principal of a request, or of all requests in a session, with its newest token. It is safe
// for concurrent use.
type tokenHolder struct {
	tenant *principalTenant
	mu     sync.Mutex
	now    BearerPrincipal
}

// setPrincipal replaces the token by a newer one of the same principal.
func (c *tokenHolder) setPrincipal(p BearerPrincipal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = p
}

func (c *tokenHolder) currentPrincipal() BearerPrincipal {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// callPermit returns the Permit for the work that a client has requested. The work must end when the Permit is no
// longer valid, which is when the client's token becomes invalid. If a token of an authorization server has merely
// expired and the same principal has sent a newer one, the Permit stays valid. If a token was revoked, a newer one
// does not help.
func (c *tokenHolder) callPermit() core.Permit {
	p := c.currentPrincipal()
	if p.Holds == nil {
		return core.Permit{}
	}
	return core.Permit{Credential: p.Credential, Check: func() *core.Error {
		p := c.currentPrincipal()
		if p.Holds() || expiresByItself(p) && c.tenant.isTokenCurrent() {
			return nil
		}
		return core.RevokedError()
	}}
}

// expiresByItself reports whether a token of this kind can only expire and cannot be revoked.
func expiresByItself(p BearerPrincipal) bool {
	return p.Credential.Token == "" && !p.Credential.Expires.IsZero()
}

// noteToken remembers the token of p if it expires latest among the principal's tokens. It ignores tokens that can be
// revoked.
func (t *principalTenant) noteToken(p BearerPrincipal) {
	if !expiresByItself(p) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !p.Credential.Expires.Before(t.newestExpiring.Credential.Expires) {
		t.newestExpiring = p
	}
}

// isTokenCurrent reports whether the token stored by noteToken is still valid.
func (t *principalTenant) isTokenCurrent() bool {
	t.mu.Lock()
	p := t.newestExpiring
	t.mu.Unlock()
	return p.Holds != nil && p.Holds()
}
