package client

import (
	"cmp"
	"context"
	"sync"
	"time"

	"retort/internal/core"
)

// Isolation determines which callers share an instance of a server, and with it the server's memory and credentials.
type Isolation string

// IsolationShared and the following constants are the isolations. The zero value means IsolationPrincipal for a server
// that has an Authorizer or is Stateful, otherwise IsolationShared.
const (
	IsolationShared    Isolation = "shared"    // all callers share one instance
	IsolationPrincipal Isolation = "principal" // all sessions of a principal share one instance
	IsolationSession   Isolation = "session"   // each session of a principal has its own instance
)

const (
	defaultIdle      = 10 * time.Minute
	defaultInstances = 16
	roomPatience     = 10 * time.Second // how long to wait for an instance to become idle if there are too many
)

// effectiveIsolation returns the isolation in effect, which is the default if none is set.
func (spec ServerSpec) effectiveIsolation() Isolation {
	switch {
	case spec.Isolation != "":
		return spec.Isolation
	case spec.Auth != nil || spec.Stateful:
		return IsolationPrincipal
	}
	return IsolationShared
}

// idleTimeout returns how long an instance may be without a call before it ends, or 0 if it never ends. Unless Idle
// is set, an instance of a stateful server never ends. Neither does an instance that all callers share, if the server
// is not a process.
func (spec ServerSpec) idleTimeout(shared bool) time.Duration {
	switch {
	case spec.Idle > 0:
		return spec.Idle
	case spec.Idle < 0, spec.Stateful, shared && spec.Command == "":
		return 0
	}
	return defaultIdle
}

// instancePool manages the instances of one server: processes or connections, each with its own state at the server.
// The main instance lists the tools and serves callers without an instance of their own. Other instances are created
// when needed. They end when they have been idle for some time. An idle instance ends immediately if another caller
// needs an instance and their number has reached its limit.
type instancePool struct {
	main          *serverConn
	make          func(core.Caller) *serverConn
	keep          Isolation
	idle          time.Duration
	most          int
	wait          time.Duration // how long a caller waits for room for another instance
	addedRevision uint64        // revision of the Pool when the server was added; 0 for the Pool's first servers

	cancel context.CancelFunc

	mu      sync.Mutex
	why     *core.Error // reason why the server was dropped; nil if it was not, or if the whole Pool is closed
	own     map[core.Caller]*pooledInstance
	closing int           // number of instances that are no longer in own and have not ended yet
	room    chan struct{} // closed when there may be room for another instance
	closed  bool
	wg      sync.WaitGroup
}

type pooledInstance struct {
	*serverConn
	owner  core.Caller
	users  int
	used   time.Time // time at which the last use ended
	expiry *time.Timer
}

func newInstances(spec ServerSpec, main *serverConn, create func(core.Caller) *serverConn) *instancePool {
	return &instancePool{
		main: main, make: create, keep: spec.effectiveIsolation(), idle: spec.idleTimeout(false),
		most: cmp.Or(max(spec.Instances, 0), defaultInstances),
		wait: roomPatience, own: map[core.Caller]*pooledInstance{}, room: make(chan struct{}),
	}
}

// ownerOf returns the owner of the instance that serves the caller c: c itself, its principal, or the zero Caller for
// the shared instance.
func (n *instancePool) ownerOf(c core.Caller) core.Caller {
	switch n.keep {
	case IsolationPrincipal:
		return core.Caller{Principal: c.Principal}
	case IsolationSession:
		return c
	}
	return core.Caller{}
}

// takeInstance returns the instance for the caller of ctx. The instance does not end before done is called. If there
// are too many instances, it closes an idle one or waits until one becomes idle.
func (n *instancePool) takeInstance(ctx context.Context) (_ *serverConn, done func(), _ *core.Error) {
	if refused := n.checkRevision(ctx); refused != nil {
		return nil, nil, refused
	}
	owner := n.ownerOf(core.CallerOf(ctx))
	if owner == (core.Caller{}) {
		return n.main, func() {}, nil
	}
	late := time.NewTimer(n.wait)
	defer late.Stop()
	for evicted := false; ; {
		i, room, err := n.enterInstance(owner, &evicted)
		if err != nil {
			return nil, nil, err
		}
		if i != nil {
			return i.serverConn, func() { n.leaveInstance(i) }, nil
		}
		select {
		case <-room:
		case <-late.C:
			return nil, nil, core.Errorf(core.KindLimit, "upstream", "all %d instances of the server are in use by others", n.most).
				WithHint("try again later; a person can raise servers.%s.instances in the settings", n.main.spec.Name)
		case <-ctx.Done():
			return nil, nil, errCancelled(ctx, "while waiting for an instance of the server")
		}
	}
}

// enterInstance returns the instance of owner. If the number of instances has reached its limit, it closes an idle
// one and returns a channel. When that channel is closed, the caller must call enterInstance again with the same
// variable evicted, which records that an instance was already closed.
func (n *instancePool) enterInstance(owner core.Caller, evicted *bool) (*pooledInstance, <-chan struct{}, *core.Error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, nil, closedError(n.why)
	}
	i, ok := n.own[owner]
	if !ok && len(n.own)+n.closing >= n.most {
		if !*evicted || n.closing == 0 {
			*evicted = n.evictIdle()
		}
		return nil, n.room, nil
	}
	if !ok {
		i = &pooledInstance{serverConn: n.make(owner), owner: owner}
		n.own[owner] = i
	}
	i.users++
	return i, nil, nil
}

// leaveInstance records the end of one use of an instance.
func (n *instancePool) leaveInstance(i *pooledInstance) {
	n.mu.Lock()
	defer n.mu.Unlock()
	i.users--
	if i.used = time.Now(); i.users > 0 {
		return
	}
	n.wakeWaiters()
	switch {
	case n.closed || n.idle == 0:
	case i.expiry == nil:
		i.expiry = time.AfterFunc(n.idle, func() { n.closeIdle(i) })
	default:
		i.expiry.Reset(n.idle)
	}
}

// closeIdle closes an instance that has been idle for its idle timeout.
func (n *instancePool) closeIdle(i *pooledInstance) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed && n.own[i.owner] == i && i.users == 0 && time.Since(i.used) >= n.idle {
		i.log.Info("stopped, because it was idle", "instance_of", i.owner.Principal)
		n.removeInstance(i)
	}
}

// evictIdle closes the instance that has been idle longest, if any is idle. The caller must hold mu.
func (n *instancePool) evictIdle() bool {
	var oldest *pooledInstance
	for _, i := range n.own {
		if i.users == 0 && (oldest == nil || i.used.Before(oldest.used)) {
			oldest = i
		}
	}
	if oldest == nil {
		return false
	}
	oldest.log.Info("stopped, because others need its place", "instance_of", oldest.owner.Principal)
	n.removeInstance(oldest)
	return true
}

// removeInstance removes an instance and closes it in the background. The caller must hold mu.
func (n *instancePool) removeInstance(i *pooledInstance) {
	delete(n.own, i.owner)
	if i.expiry != nil {
		i.expiry.Stop()
	}
	n.closing++
	n.wg.Go(func() {
		i.close()
		n.mu.Lock()
		defer n.mu.Unlock()
		n.closing--
		n.wakeWaiters()
	})
}

// wakeWaiters wakes the callers that wait for room. The caller must hold mu.
func (n *instancePool) wakeWaiters() {
	close(n.room)
	n.room = make(chan struct{})
}

// countInstances returns the number of instances apart from the main one.
func (n *instancePool) countInstances() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.own)
}

// close ends all instances. It returns when their processes and connections are gone.
func (n *instancePool) close() {
	n.mu.Lock()
	n.closed = true
	for _, i := range n.own {
		n.removeInstance(i)
	}
	n.mu.Unlock()
	n.main.close()
	n.wg.Wait()
	n.cancel()
}
