package memory

import (
	"context"
	"slices"
	"sync"
)

// MemoryPool divides an amount, such as bytes of memory, among owners. It serves waiting owners in turn, and the
// requests of one owner in their order. Smaller requests do not overtake a request that does not fit yet.
type MemoryPool struct {
	total int64
	share int64 // maximum amount per owner; an owner that holds nothing may exceed it with one request

	mu     sync.Mutex
	used   int64
	owners map[string]int64         // amount held, by owner
	queues map[string][]*poolWaiter // waiting requests, by owner; contains no empty slices
	turns  []string                 // owners with waiting requests, in the order in which they are served
	peak   int64                    // largest used amount since it was last at most little

	// drained is called when the used amount has dropped from at least much to at most little. It must not use the
	// pool. It may be nil.
	drained func()
}

// Thresholds, in bytes, for the used memory of a pool. The pool calls drained when its used memory has dropped from at
// least much to at most little.
const (
	much   = 32 << 20
	little = 1 << 20
)

type poolWaiter struct {
	n       int64
	granted chan struct{}
}

// NewPool returns a pool that divides the amount total among owners. Each owner can hold at most the amount share.
// Only an owner that holds nothing may exceed its share, by one request that is larger than the share.
func NewPool(total, share int64) *MemoryPool {
	total = max(total, 1)
	return &MemoryPool{total: total, share: min(max(share, 1), total), owners: map[string]int64{}, queues: map[string][]*poolWaiter{}}
}

// MemoryHold represents the amount that one request has taken from a MemoryPool. A nil MemoryHold holds nothing.
type MemoryHold struct {
	pool  *MemoryPool
	owner string
	n     int64 // amount held; guarded by pool.mu
}

// TakeBytes takes the amount n from the pool for owner. It waits until that is possible or ctx is done. It treats a
// request for more than the pool's total as a request for the total.
func (p *MemoryPool) TakeBytes(ctx context.Context, owner string, n int64) (*MemoryHold, error) {
	n = min(n, p.total)
	p.mu.Lock()
	if len(p.turns) == 0 && p.hasRoom(owner, n) {
		h := p.newHold(owner, n)
		p.mu.Unlock()
		return h, nil
	}
	w := &poolWaiter{n: n, granted: make(chan struct{})}
	if len(p.queues[owner]) == 0 {
		p.turns = append(p.turns, owner)
	}
	p.queues[owner] = append(p.queues[owner], w)
	p.grantWaiting()
	p.mu.Unlock()
	select {
	case <-w.granted:
		return &MemoryHold{pool: p, owner: owner, n: n}, nil
	case <-ctx.Done():
		return nil, p.removeWaiter(owner, w, ctx)
	}
}

// removeWaiter removes a waiting request whose context is done. If the request was granted in the meantime, it
// releases the amount. It returns the context's cause.
func (p *MemoryPool) removeWaiter(owner string, w *poolWaiter, ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.queues[owner], w); i >= 0 {
		p.removeRequest(owner, i)
		p.grantWaiting()
	} else {
		p.releaseAmount(owner, w.n)
	}
	return context.Cause(ctx)
}

// TryTake takes the amount n for owner if it can do so without waiting.
func (p *MemoryPool) TryTake(owner string, n int64) (*MemoryHold, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.turns) > 0 || !p.hasRoom(owner, n) {
		return nil, false
	}
	return p.newHold(owner, n), true
}

// ForceTake takes the amount n for owner even if the pool has less left. It is for memory that is already in use.
func (p *MemoryPool) ForceTake(owner string, n int64) *MemoryHold {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.newHold(owner, n)
}

// UsedBytes returns the amount that is held now.
func (p *MemoryPool) UsedBytes() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// HasWaiters reports whether a request is waiting.
func (p *MemoryPool) HasWaiters() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.turns) > 0
}

func (p *MemoryPool) hasRoom(owner string, n int64) bool {
	return p.used+n <= p.total && p.isAllowed(owner, n)
}

func (p *MemoryPool) isAllowed(owner string, n int64) bool {
	held := p.owners[owner]
	return held == 0 || held+n <= p.share
}

// newHold takes the amount n for owner without checking that it is free. The caller must hold mu.
func (p *MemoryPool) newHold(owner string, n int64) *MemoryHold {
	p.addUsed(owner, n)
	return &MemoryHold{pool: p, owner: owner, n: n}
}

func (p *MemoryPool) addUsed(owner string, n int64) {
	p.used += n
	p.owners[owner] += n
	p.peak = max(p.peak, p.used)
}

// grantWaiting grants waiting requests that fit into the pool, one owner at a time. It skips owners whose next request
// would exceed their share. It stops at the first other request that does not fit into the pool. The caller must hold
// mu.
func (p *MemoryPool) grantWaiting() {
	for i := 0; i < len(p.turns); {
		owner := p.turns[i]
		w := p.queues[owner][0]
		if !p.isAllowed(owner, w.n) {
			i++
			continue
		}
		if p.used+w.n > p.total {
			return
		}
		p.addUsed(owner, w.n)
		close(w.granted)
		p.removeRequest(owner, 0)
		if len(p.queues[owner]) > 0 { // its next request comes after those of the others
			p.turns = append(slices.Delete(p.turns, i, i+1), owner)
		}
		i = 0
	}
}

// removeRequest removes the waiting request with index i of an owner. The caller must hold mu.
func (p *MemoryPool) removeRequest(owner string, i int) {
	p.queues[owner] = slices.Delete(p.queues[owner], i, i+1)
	if len(p.queues[owner]) == 0 {
		delete(p.queues, owner)
		p.turns = slices.DeleteFunc(p.turns, func(o string) bool { return o == owner })
	}
}

// releaseAmount releases the amount n of an owner. The caller must hold mu.
func (p *MemoryPool) releaseAmount(owner string, n int64) {
	p.used -= n
	if p.owners[owner] -= n; p.owners[owner] <= 0 {
		delete(p.owners, owner)
	}
	p.grantWaiting()
	if p.peak >= much && p.used <= little {
		p.peak = p.used
		if p.drained != nil {
			p.drained()
		}
	}
}

// TryGrow adds the amount n to the hold and returns true, but only if no request is waiting, the pool has enough left,
// and the owner's share allows it. Otherwise it returns false.
func (h *MemoryHold) TryGrow(n int64) bool {
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	return len(h.pool.turns) == 0 && h.pool.owners[h.owner]+n <= h.pool.share && h.extendBy(n)
}

// ExtendUpTo enlarges the hold by n or, if the pool has less than n left, by all that is left. It returns the amount
// added. It never waits, even if other requests are waiting, and it may take the owner above its share.
func (h *MemoryHold) ExtendUpTo(n int64) int64 {
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	n = max(0, min(n, h.pool.total-h.pool.used))
	h.extendBy(n)
	return n
}

// Amount returns the amount that is held. A nil MemoryHold holds nothing.
func (h *MemoryHold) Amount() int64 {
	if h == nil {
		return 0
	}
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	return h.n
}

func (h *MemoryHold) extendBy(n int64) bool {
	if h.pool.used+n > h.pool.total {
		return false
	}
	h.pool.addUsed(h.owner, n)
	h.n += n
	return true
}

// Shrink releases part of the hold, so that it holds at most the amount n.
func (h *MemoryHold) Shrink(n int64) {
	if h == nil {
		return
	}
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	if back := h.n - max(n, 0); back > 0 {
		h.n -= back
		h.pool.releaseAmount(h.owner, back)
	}
}

// Free releases the whole amount. Further calls do nothing.
func (h *MemoryHold) Free() { h.Shrink(0) }
