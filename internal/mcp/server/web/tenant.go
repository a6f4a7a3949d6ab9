package web

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"retort/internal/base/throttle"
	"retort/internal/mcp/server"
)

// principalTenant is one principal with its own MCP server, so that ids from other principals' sessions are unknown to
// it. A principal whose tokens name different groups has a tenant for each set of groups. So every session keeps the
// groups with which it began.
type principalTenant struct {
	server *server.Server
	http   *server.HTTPHandlers
	engine Engine
	limits ListenerLimits
	all    interface{ Add(int64) int64 } // counts the sessions of all principals

	requests requestLedger

	mu             sync.Mutex
	quota          throttle.Bucket // number of requests that may come now
	calls          int             // number of tool calls in progress
	active         int             // number of requests in progress
	used           time.Time
	sessions       map[string]*tenantSession
	newestExpiring BearerPrincipal // of the principal's tokens that can only expire, the one that expires latest
}

type tenantSession struct {
	busy int // number of requests in progress
	used time.Time
	// client holds the newest token of the session's client. It is nil for an event stream, which ends with its own
	// token.
	client *tokenHolder
}

// tenantOf returns the tenant of a principal with these groups, and creates it if needed.
func (l *Listener) tenantOf(p BearerPrincipal) (*principalTenant, error) {
	key := fmt.Sprintf("%q %q", p.Name, slices.Sorted(slices.Values(p.Groups)))
	l.mu.Lock()
	defer l.mu.Unlock()
	if t, ok := l.tenants[key]; ok {
		t.enterRequests(1)
		return t, nil
	}
	o := l.Server
	o.Principal = p.Name
	engine := l.Engine(p.Name, p.Groups)
	server, err := server.New(gatedEngine{engine, l.slots}, o)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	t := &principalTenant{
		server: server, http: server.NewHTTPHandlers(), engine: engine, limits: l.Limits, all: &l.sessions,
		quota: throttle.Rate{Most: l.Limits.Requests, Per: time.Minute}.Full(now), used: now, active: 1, sessions: map[string]*tenantSession{},
	}
	l.tenants[key] = t
	return t, nil
}

// enterRequests adds n to the number of the principal's requests in progress. n is positive when requests begin, and
// negative when they have ended. It also records that the principal was active now.
func (t *principalTenant) enterRequests(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.active += n
	t.used = time.Now()
}

// takeQuota takes n requests from the principal's quota. If fewer than n are left, it takes none and returns how long
// the principal must wait.
func (t *principalTenant) takeQuota(n int) (wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	wait = throttle.Rate{Most: t.limits.Requests, Per: time.Minute}.Take(&t.quota, n, time.Now())
	return time.Duration(math.Ceil(wait.Seconds())) * time.Second
}

// beginCalls admits n calls unless the principal would then have too many in progress. Executions that continue
// although their request has ended also count.
func (t *principalTenant) beginCalls(calls int) bool {
	running := t.engine.CountRunning()
	t.mu.Lock()
	defer t.mu.Unlock()
	if max(t.calls, running)+calls > t.limits.Executions {
		return false
	}
	t.calls += calls
	return true
}

func (t *principalTenant) endCalls(calls int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls -= calls
}

// makeRoom makes room for a new session. If the principal has too many sessions, it ends the one that has been unused
// for longest. It returns false if all sessions are in use.
func (t *principalTenant) makeRoom() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.sessions) < t.limits.Sessions {
		return true
	}
	var oldest string
	for id, s := range t.sessions {
		if s.busy == 0 && (oldest == "" || s.used.Before(t.sessions[oldest].used)) {
			oldest = id
		}
	}
	if oldest == "" {
		return false
	}
	t.dropSession(oldest)
	return true
}

// dropSession forgets a session and ends it. The caller must hold t.mu.
func (t *principalTenant) dropSession(id string) {
	delete(t.sessions, id)
	t.all.Add(-1)
	t.http.EndSession(id)
}

// openSession adds a session, or an event stream that counts as one, and marks it as in use.
func (t *principalTenant) openSession(id string, c *tokenHolder) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sessions[id] == nil {
		t.sessions[id] = &tenantSession{client: c}
		t.all.Add(1)
	}
	t.sessions[id].busy++
}

// touchSession marks a session as in use, and replaces its token by the newest one of the client c. From then on, the
// work in the session is permitted by the new token. touchSession returns false if the session does not exist or is
// ending.
func (t *principalTenant) touchSession(id string, c *tokenHolder) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sessions[id]
	if s == nil {
		return false
	}
	s.busy++
	if s.client != nil {
		s.client.setPrincipal(c.currentPrincipal())
	}
	return true
}

func (t *principalTenant) releaseSession(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.sessions[id]; s != nil {
		s.busy--
		s.used = time.Now()
	}
}

// closeSession removes a session that its client has ended.
func (t *principalTenant) closeSession(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sessions[id] != nil {
		t.dropSession(id)
	}
}

// expireSessions ends unused sessions. It reports whether the principal has no sessions left.
func (t *principalTenant) expireSessions(now time.Time) (empty bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, s := range t.sessions {
		if s.busy == 0 && now.Sub(s.used) >= t.limits.Idle {
			t.dropSession(id)
		}
	}
	return len(t.sessions) == 0 && t.active == 0 && now.Sub(t.used) >= forgetTenantAfter
}

// forgetTenantAfter is how long a principal without sessions is remembered. After that time its quota would be full
// again anyway.
const forgetTenantAfter = 2 * time.Minute

// sweepTenants periodically ends unused sessions and removes unused principals, until ctx ends.
func (l *Listener) sweepTenants(ctx context.Context) {
	tick := time.NewTicker(min(l.Limits.Idle/4+time.Millisecond, time.Minute))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			l.refused.endQuietWindow(now)
			l.mu.Lock()
			for name, t := range l.tenants {
				if t.expireSessions(now) {
					delete(l.tenants, name)
					t.server.Close()
				}
			}
			l.mu.Unlock()
		}
	}
}

// newStreamName returns a name for an event stream, which is a session without an id.
func newStreamName() string { return "stream-" + rand.Text() }
