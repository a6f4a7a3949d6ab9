package client

import (
	"context"
	"maps"
	"slices"
	"sync"

	"retort/internal/core"
)

// instancesOf creates the instance pool of a server. It starts nothing.
func (p *Pool) instancesOf(spec ServerSpec) *instancePool {
	ctx, cancel := context.WithCancel(p.base)
	main := newServer(ctx, spec, p.o, p.place, p.logLevel)
	main.idle = spec.idleTimeout(true)
	n := newInstances(spec, main, func(owner core.Caller) *serverConn {
		return main.newInstance(core.WithCaller(ctx, owner), p.o, p.place, p.logLevel)
	})
	n.cancel = cancel
	return n
}

// allInstances returns the instances of all servers.
func (p *Pool) allInstances() []*instancePool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.Collect(maps.Values(p.servers))
}

// Revision returns a number that changes with each PutServer and is never 0. A call whose context has an earlier
// number (core.WithRevision) does not reach servers that were put in later.
func (p *Pool) Revision() uint64 {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.revision
}

// PutServer adds a server. An earlier server of the same name must have been dropped.
func (p *Pool) PutServer(spec ServerSpec) {
	n := p.instancesOf(spec)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.revision++
	n.addedRevision = p.revision
	delete(p.dropped, spec.Name)
	p.servers[spec.Name] = n
}

// DropServers removes the servers named in why and ends them. why contains, for each server, the error with which its
// pending and later calls fail. The returned function waits until the servers have ended, at most a few seconds.
func (p *Pool) DropServers(why map[string]*core.Error) (ended func()) {
	var gone []*instancePool
	p.mu.Lock()
	for name, e := range why {
		if n := p.servers[name]; n != nil {
			gone = append(gone, n)
			n.endInstances(e)
		}
		delete(p.servers, name)
		p.dropped[name] = e
	}
	p.mu.Unlock()
	var wg sync.WaitGroup
	for _, n := range gone {
		p.ending.Add(1)
		wg.Go(func() {
			defer p.ending.Done()
			n.close()
		})
	}
	return wg.Wait
}

// endInstances makes all pending and later uses of the server's instances fail with the error why. close must be
// called afterwards.
func (n *instancePool) endInstances(why *core.Error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed, n.why = true, why
	n.main.endServer(why)
	for _, i := range n.own {
		i.endServer(why)
	}
	n.cancel()
}

// endServer makes all pending and later uses of the server fail.
func (s *serverConn) endServer(why *core.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.why = true, why
	if s.session != nil {
		s.session.link.failAll(why)
	}
}

// closedError returns the error for uses of a server that was dropped for the reason why, or closed with the Pool.
func closedError(why *core.Error) *core.Error {
	if why != nil {
		return why
	}
	return errClosed()
}

// checkRevision refuses a call whose context belongs to an older configuration of the server.
func (n *instancePool) checkRevision(ctx context.Context) *core.Error {
	if known := core.RevisionOf(ctx); known == 0 || n.addedRevision <= known {
		return nil
	}
	return core.Errorf(
		core.KindToolChanged, "upstream",
		"the entry of the server %q was added or changed after the program began; the call was not sent",
		n.main.spec.Name,
	).
		WithHint("run the program again")
}
