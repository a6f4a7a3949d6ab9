package core

import (
	"context"
	"sync"
)

// HeldMemory represents a reserved share of the engine's memory budget for answers. Free releases all of it and may
// be called more than once. Shrink releases all but n bytes.
type HeldMemory interface {
	Shrink(n int64)
	Free()
}

// YieldingMemory represents the memory for transforming an answer. If several answers are transformed at the same
// time, their transformations take turns.
type YieldingMemory interface {
	HeldMemory
	// Yield lets waiting transformations run first. It returns the error of ctx if ctx ends.
	Yield(ctx context.Context) error
}

// MemoryClaim holds the memory that an execution, or one of its calls, uses for answers. It is safe for concurrent
// use. A nil MemoryClaim holds nothing.
type MemoryClaim struct {
	holder string
	parent *MemoryClaim
	budget MemoryBudget // nil bounds nothing

	mu    sync.Mutex
	users int // additional owners that must call Free
	work  HeldMemory
	value HeldMemory
	calls map[*MemoryClaim]bool // those of its calls that hold something
	freed bool
}

// NewClaim returns a MemoryClaim whose memory is counted under the name holder. It has the budget of parent, which
// may be nil. When parent is freed, the new MemoryClaim is freed as well.
func NewClaim(parent *MemoryClaim, holder string) *MemoryClaim {
	c := &MemoryClaim{holder: holder, parent: parent}
	if parent != nil {
		c.budget = parent.budget
	}
	return c
}

// WithClaim returns a context with a new MemoryClaim. Its memory is counted under the name holder. If ctx already has
// a MemoryClaim, freeing that one also frees the new one.
func WithClaim(ctx context.Context, holder string) (context.Context, *MemoryClaim) {
	c := NewClaim(ClaimOf(ctx), holder)
	return WithBounds(ctx, WorkBounds{Claim: c}), c
}

// WithBudget is like WithClaim, with a budget that bounds the memory for results.
func WithBudget(ctx context.Context, holder string, budget MemoryBudget) (context.Context, *MemoryClaim) {
	c := NewClaim(ClaimOf(ctx), holder)
	c.budget = budget
	return WithBounds(ctx, WorkBounds{Claim: c}), c
}

// ClaimOf returns the MemoryClaim of the context, or nil.
func ClaimOf(ctx context.Context) *MemoryClaim {
	return findBounds(ctx, func(b *WorkBounds) bool { return b.Claim != nil }).Claim
}

// AdmitResult waits until the MemoryClaim's budget has room to receive a result of n bytes from a program. Without a
// budget it does not wait.
func (c *MemoryClaim) AdmitResult(ctx context.Context, n int64) error {
	if c == nil || c.budget == nil {
		return nil
	}
	return c.budget.Receive(ctx, c, n)
}

// AdmitReport waits until the MemoryClaim's budget has room to prepare a result of n bytes for the model. Without a
// budget it does not wait.
func (c *MemoryClaim) AdmitReport(ctx context.Context, n int64) error {
	if c == nil || c.budget == nil {
		return nil
	}
	return c.budget.Report(ctx, c, n)
}

// IsHolding reports whether the MemoryClaim holds any memory.
func (c *MemoryClaim) IsHolding() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.work != nil || c.value != nil
}

// HolderName returns the name under which the memory is counted.
func (c *MemoryClaim) HolderName() string {
	if c == nil {
		return ""
	}
	return c.holder
}

// HoldTransformation makes the MemoryClaim responsible for two reserved amounts of memory: work, which transforming
// an answer needs, and value, which its result needs. Either may be nil. The memory that was held before for the same
// purpose is released. If the MemoryClaim was already freed, both are released at once.
func (c *MemoryClaim) HoldTransformation(work, value HeldMemory) {
	if c != nil && c.replaceHeld(&work, &value) {
		c.parent.adoptCall(c)
	}
	freeEach(work, value)
}

// replaceHeld replaces the reserved memory that the MemoryClaim holds. *work is the new memory for transforming an
// answer, and *value the new memory for the result of the transformation. Afterwards *work and *value are the memory
// that was held before, which the caller must free. A nil *work or *value replaces nothing. If the MemoryClaim was
// already freed, replaceHeld changes nothing and returns false.
func (c *MemoryClaim) replaceHeld(work, value *HeldMemory) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.freed {
		return false
	}
	if *work != nil {
		c.work, *work = *work, c.work
	}
	if *value != nil {
		c.value, *value = *value, c.value
	}
	return true
}

func (c *MemoryClaim) adoptCall(call *MemoryClaim) {
	if c == nil {
		return
	}
	c.mu.Lock()
	freed := c.freed
	if !freed {
		if c.calls == nil {
			c.calls = map[*MemoryClaim]bool{}
		}
		c.calls[call] = true
	}
	c.mu.Unlock()
	if freed {
		call.freeAll()
	}
}

// FinishTransformation releases the memory of a finished transformation and reduces the memory that is held for its
// result to n bytes.
func (c *MemoryClaim) FinishTransformation(n int64) {
	if c == nil {
		return
	}
	c.mu.Lock()
	work, value := c.work, c.value
	c.work = nil
	c.mu.Unlock()
	if value != nil {
		value.Shrink(n)
	}
	freeEach(work)
}

// Release releases the memory of an answer when the same call is about to get another answer instead. The MemoryClaim
// can be used again.
func (c *MemoryClaim) Release() {
	if c == nil {
		return
	}
	c.mu.Lock()
	work, value := c.work, c.value
	c.work, c.value = nil, nil
	c.mu.Unlock()
	freeEach(work, value)
}

// Yield lets waiting transformations run first. It returns the error of ctx if ctx ends.
func (c *MemoryClaim) Yield(ctx context.Context) error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	work, ok := c.work.(YieldingMemory)
	c.mu.Unlock()
	if !ok {
		return nil
	}
	return work.Yield(ctx)
}

// AddHolder adds an owner of the memory. Free must be called once for each owner before it releases the memory.
func (c *MemoryClaim) AddHolder() *MemoryClaim {
	if c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.users++
	}
	return c
}

// Free releases all memory when the last owner calls it.
func (c *MemoryClaim) Free() {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.users--
	last := c.users < 0
	c.mu.Unlock()
	if last {
		c.freeAll()
	}
}

// freeAll releases the memory of this MemoryClaim and of those that were made for its calls, however many owners it
// has.
func (c *MemoryClaim) freeAll() {
	c.mu.Lock()
	work, value, calls := c.work, c.value, c.calls
	c.freed, c.work, c.value, c.calls = true, nil, nil, nil
	c.mu.Unlock()
	freeEach(work, value)
	for call := range calls {
		call.freeAll()
	}
	if c.parent != nil {
		c.parent.mu.Lock()
		delete(c.parent.calls, c)
		c.parent.mu.Unlock()
	}
}

func freeEach(held ...HeldMemory) {
	for _, h := range held {
		if h != nil {
			h.Free()
		}
	}
}

// MemoryBudget bounds the memory for results of programs.
type MemoryBudget interface {
	// Receive waits until the budget has room to receive a result of n bytes from a program. The memory is counted
	// for claim.
	Receive(ctx context.Context, claim *MemoryClaim, n int64) error
	// Report waits until the budget has room to prepare a result of n bytes for the model.
	Report(ctx context.Context, claim *MemoryClaim, n int64) error
}
