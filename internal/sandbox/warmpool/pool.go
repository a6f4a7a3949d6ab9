package warmpool

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	// shrinkDelay is the time without requests after which a pool shrinks to its minimum number of ready items.
	shrinkDelay = 30 * time.Second
	// refillDelay is the delay before a replacement guest is started. Without it, starting the replacement would
	// compete for a processor with the program that got the ready guest.
	refillDelay = 10 * time.Millisecond
	// maxRefillDelay bounds how long the pool waits before it replaces an item if other items are ready. It normally
	// waits until the program that uses the taken item no longer needs the processor, because starting a new item
	// would take processor time from that program.
	maxRefillDelay = time.Second
)

// ErrClosed is returned by a pool or a backend that was closed.
var ErrClosed = errors.New("the backend is closed")

// PoolItem is implemented by the items that a WarmPool keeps ready.
type PoolItem interface {
	comparable
	IsAlive() bool // reports whether the item still runs
	Kill()         // ends the item without waiting for its end; must be idempotent
}

// PoolOptions configures a WarmPool.
type PoolOptions[T PoolItem] struct {
	// Start starts an item and returns it when it is ready. After an error, nothing of the item may be left.
	Start func() (T, error)
	Least int  // number of ready items while there are few requests
	Most  int  // maximum number of ready items
	Lazy  bool // start no item before the first call of Take
	Once  bool // do not replace a taken item before the next call of Take
	// Calm makes the pool replace a taken item only after AllowRefill or maxRefillDelay, as long as other items are
	// ready.
	Calm bool
	Room func() bool // reports whether the machine has memory for ready items; nil means to ask the system
}

// WarmPool keeps items ready, such as started guests. It hands out each item once. It grows if a caller had to wait,
// and shrinks if it has had no request for a while.
type WarmPool[T PoolItem] struct {
	PoolOptions[T]
	mostAtOnce int // maximum number of items that are started at the same time

	mu       sync.Mutex
	ready    []T
	target   int // number of items that should be ready
	starting int
	waiters  []chan startResult[T] // callers of Take that wait for an item, in order of arrival
	rest     *time.Timer
	later    *time.Timer // timer that starts replacements when its delay has passed
	closed   bool
	starts   sync.WaitGroup
}

type startResult[T PoolItem] struct {
	item T
	err  error
}

// NewPool returns a WarmPool and starts to fill it, unless it is lazy. The caller must close it.
func NewPool[T PoolItem](o PoolOptions[T]) *WarmPool[T] {
	p := &WarmPool[T]{PoolOptions: o, mostAtOnce: max(4, 2*runtime.GOMAXPROCS(0))}
	if o.Room == nil {
		p.Room = hasRoom
	}
	if !o.Lazy {
		p.target = o.Least
	}
	p.rest = time.AfterFunc(shrinkDelay, p.shrinkIdle)
	p.later = time.AfterFunc(0, p.refillLater)
	return p
}

// Take returns a ready item, or waits for the next one.
func (p *WarmPool[T]) Take(ctx context.Context) (T, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		var none T
		return none, ErrClosed
	}
	p.rest.Reset(shrinkDelay)
	if p.Once {
		p.target, p.Lazy = 0, true
	} else {
		p.target, p.Lazy = max(p.target, p.Least), false
	}
	p.ready = slices.DeleteFunc(p.ready, func(i T) bool { return !i.IsAlive() })
	if n := len(p.ready); n > 0 {
		item := p.ready[0]
		p.ready = slices.Delete(p.ready, 0, 1)
		p.later.Reset(p.quietPeriod())
		p.mu.Unlock()
		return item, nil
	}
	if !p.Once {
		p.target = min(p.Most, p.target+1)
	}
	waiter := make(chan startResult[T], 1)
	p.waiters = append(p.waiters, waiter)
	p.startWanted()
	p.mu.Unlock()

	select {
	case s := <-waiter:
		return s.item, s.err
	case <-ctx.Done():
		p.returnUnused(waiter)
		var none T
		return none, ctx.Err()
	}
}

// quietPeriod returns how long the pool waits before it replaces an item that was just taken, so that the receiver
// has the processor to itself. The caller must hold p.mu.
func (p *WarmPool[T]) quietPeriod() time.Duration {
	if p.Calm && len(p.ready) > 0 {
		return maxRefillDelay
	}
	return refillDelay
}

// AllowRefill lets a pool with the option Calm start replacements soon. It is called when the receiver of an item no
// longer needs the processor to itself.
func (p *WarmPool[T]) AllowRefill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Calm && !p.closed {
		p.later.Reset(refillDelay)
	}
}

// PostponeRefill delays a pending start of replacements by d, so that the receiver of an item has the processor to
// itself.
func (p *WarmPool[T]) PostponeRefill(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed && p.later.Stop() {
		p.later.Reset(d)
	}
}

// returnUnused cleans up after a call of Take that stopped waiting. It removes waiter from the queue of waiting
// callers. If waiter was already given an item, that item becomes available to other callers.
func (p *WarmPool[T]) returnUnused(waiter chan startResult[T]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiters = slices.DeleteFunc(p.waiters, func(w chan startResult[T]) bool { return w == waiter })
	select {
	case s := <-waiter:
		if s.err == nil {
			p.addReady(s.item)
		}
	default:
	}
}

// startWanted starts items until there are enough for the pool's target size and for the waiting callers. The caller
// must hold p.mu.
func (p *WarmPool[T]) startWanted() {
	target := p.target
	if target > 0 && !p.Room() {
		target = 0 // waiters are still served
	}
	for !p.closed && p.starting < p.mostAtOnce && len(p.ready)+p.starting < target+len(p.waiters) {
		p.starting++
		p.starts.Go(p.startItem)
	}
}

func (p *WarmPool[T]) refillLater() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.startWanted()
}

func (p *WarmPool[T]) startItem() {
	item, err := p.Start()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.starting--
	switch {
	case len(p.waiters) > 0:
		p.waiters[0] <- startResult[T]{item, err}
		p.waiters = p.waiters[1:]
	case err == nil:
		p.addReady(item)
	}
	// After a failure nothing is started before the next Take.
	if err == nil || len(p.waiters) > 0 {
		p.startWanted()
	}
}

// addReady adds an item to the ready items of the pool, or kills it if the pool does not need it. The caller must
// hold p.mu.
func (p *WarmPool[T]) addReady(item T) {
	if p.closed || len(p.ready) >= p.target {
		item.Kill()
		return
	}
	p.ready = append(p.ready, item)
}

func (p *WarmPool[T]) shrinkIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Lazy {
		return
	}
	p.target = p.Least
	for len(p.ready) > p.target {
		p.ready[len(p.ready)-1].Kill()
		p.ready = p.ready[:len(p.ready)-1]
	}
}

// ReadyItems returns the items that are ready now.
func (p *WarmPool[T]) ReadyItems() []T {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.ready)
}

// Close kills the ready items and returns when no start is in progress. Waiting calls of Take return ErrClosed.
func (p *WarmPool[T]) Close() {
	p.mu.Lock()
	p.closed = true
	p.rest.Stop()
	p.later.Stop()
	for _, w := range p.waiters {
		w <- startResult[T]{err: ErrClosed}
	}
	p.waiters = nil
	for _, item := range p.ready {
		item.Kill()
	}
	p.ready = nil
	p.mu.Unlock()
	p.starts.Wait()
}
