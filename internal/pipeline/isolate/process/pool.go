package process

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	// restAfter is how long nothing must be taken before a pool that grew with
	// demand shrinks again.
	restAfter = 30 * time.Second
	// breather is how long a program that found a child ready has the machine to
	// itself before the next child is started in its place.
	breather = 10 * time.Millisecond
)

// pool keeps children ready. Each is given out once. It grows when somebody had
// to wait, and shrinks when it rests.
type pool struct {
	spawn      func() (*child, error)
	least      int         // ready at rest
	lazy       bool        // nothing is started before somebody asks
	room       func() bool // whether the machine has memory for children that wait
	most       int         // ready at any time
	mostAtOnce int         // spawns

	mu       sync.Mutex
	ready    []*child
	target   int // how many should be ready
	starting int
	waiters  []chan spawned // in the order of their coming
	rest     *time.Timer
	later    *time.Timer // refills
	closed   bool
	spawns   sync.WaitGroup
}

type spawned struct {
	child *child
	err   error
}

func newPool(spawn func() (*child, error), least, most int, lazy bool) *pool {
	p := &pool{spawn: spawn, least: least, most: most, lazy: lazy, mostAtOnce: max(4, 2*runtime.GOMAXPROCS(0)), room: hasRoom}
	if !lazy {
		p.target = least
	}
	p.rest = time.AfterFunc(restAfter, p.shrink)
	p.later = time.AfterFunc(0, p.refillLater)
	return p
}

// take gives out a child that is ready, or the next to become so.
func (p *pool) take(ctx context.Context) (*child, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed
	}
	p.rest.Reset(restAfter)
	p.target, p.lazy = max(p.target, p.least), false
	p.ready = slices.DeleteFunc(p.ready, func(c *child) bool { return !c.alive() })
	if n := len(p.ready); n > 0 {
		c := p.ready[0]
		p.ready = slices.Delete(p.ready, 0, 1)
		p.later.Reset(breather)
		p.mu.Unlock()
		return c, nil
	}
	p.target = min(p.most, p.target+1)
	waiter := make(chan spawned, 1)
	p.waiters = append(p.waiters, waiter)
	p.refill()
	p.mu.Unlock()

	select {
	case s := <-waiter:
		return s.child, s.err
	case <-ctx.Done():
		p.abandon(waiter)
		return nil, ctx.Err()
	}
}

// postpone lets a child that was just taken have the machine to itself for longer
// than usual.
func (p *pool) postpone(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed && p.later.Stop() {
		p.later.Reset(d)
	}
}

// abandon gives back what a waiter that left was given, or its place.
func (p *pool) abandon(waiter chan spawned) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiters = slices.DeleteFunc(p.waiters, func(w chan spawned) bool { return w == waiter })
	select {
	case s := <-waiter:
		if s.child != nil {
			p.keep(s.child)
		}
	default:
	}
}

// refill starts as many children as are wanted. p.mu is held.
func (p *pool) refill() {
	target := p.target
	if target > 0 && !p.room() {
		target = 0 // those who wait are served all the same
	}
	for !p.closed && p.starting < p.mostAtOnce && len(p.ready)+p.starting < target+len(p.waiters) {
		p.starting++
		p.spawns.Go(p.add)
	}
}

func (p *pool) refillLater() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refill()
}

func (p *pool) add() {
	c, err := p.spawn()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.starting--
	switch {
	case len(p.waiters) > 0:
		p.waiters[0] <- spawned{c, err}
		p.waiters = p.waiters[1:]
	case err == nil:
		p.keep(c)
	}
	// After a failure nobody tries again before somebody asks.
	if err == nil || len(p.waiters) > 0 {
		p.refill()
	}
}

// keep takes a child in, if it is wanted. p.mu is held.
func (p *pool) keep(c *child) {
	if p.closed || len(p.ready) >= p.target {
		c.kill()
		return
	}
	p.ready = append(p.ready, c)
}

func (p *pool) shrink() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lazy {
		return
	}
	p.target = p.least
	for len(p.ready) > p.target {
		p.ready[len(p.ready)-1].kill()
		p.ready = p.ready[:len(p.ready)-1]
	}
}

// close ends the children that are ready and returns when no spawn is under
// way. Those who wait are told.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.rest.Stop()
	p.later.Stop()
	for _, w := range p.waiters {
		w <- spawned{err: errClosed}
	}
	p.waiters = nil
	for _, c := range p.ready {
		c.kill()
	}
	p.ready = nil
	p.mu.Unlock()
	p.spawns.Wait()
}
