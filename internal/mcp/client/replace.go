package client

import (
	"context"
	"maps"
	"slices"
	"sync"

	"retort/internal/core"
)

// instancesOf makes the instances of a server, and starts nothing.
func (p *Pool) instancesOf(spec Server) *instances {
	ctx, cancel := context.WithCancel(p.base)
	main := newServer(ctx, spec, p.o, p.place, p.logLevel)
	main.idle = spec.idle(true)
	n := newInstances(spec, main, func(owner core.Caller) *serverConn {
		return main.another(core.WithCaller(ctx, owner), p.o, p.place, p.logLevel)
	})
	n.cancel = cancel
	return n
}

// all returns the instances of all servers.
func (p *Pool) all() []*instances {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.Collect(maps.Values(p.servers))
}

// Revision is another number whenever Put was called; it is never 0. A call of a context with an earlier one
// (core.WithRevision) does not reach what was put since.
func (p *Pool) Revision() uint64 {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.revision
}

// Put takes a server in. One of its name must have been dropped before.
func (p *Pool) Put(spec Server) {
	n := p.instancesOf(spec)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.revision++
	n.born = p.revision
	delete(p.dropped, spec.Name)
	p.servers[spec.Name] = n
}

// Drop takes servers out, at once, and ends them: the error by a server's name is that of calls under way and of
// those to come. ended waits until nothing is left of them, within a few seconds.
func (p *Pool) Drop(why map[string]*core.Error) (ended func()) {
	var gone []*instances
	p.mu.Lock()
	for name, e := range why {
		if n := p.servers[name]; n != nil {
			gone = append(gone, n)
			n.end(e)
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

// end has all uses of the instances fail from now on, those under way too. close does the rest.
func (n *instances) end(why *core.Error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed, n.why = true, why
	n.main.end(why)
	for _, i := range n.own {
		i.end(why)
	}
	n.cancel()
}

// end has all uses of the server fail from now on.
func (s *serverConn) end(why *core.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.why = true, why
	if s.session != nil {
		s.session.link.fail(why)
	}
}

// closedError returns the error of uses of what was ended for a reason, or closed with the Pool if there is none.
func closedError(why *core.Error) *core.Error {
	if why != nil {
		return why
	}
	return errClosed()
}

// outdated refuses a caller who does not know the server as it is configured now.
func (n *instances) outdated(ctx context.Context) *core.Error {
	if known := core.RevisionOf(ctx); known == 0 || n.born <= known {
		return nil
	}
	return core.Errorf(core.KindToolChanged, "upstream", "the entry of the server %q was added or changed after the program began; the call was not sent", n.main.spec.Name).
		WithHint("run the program again")
}
