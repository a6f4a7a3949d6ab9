// Package memory limits the memory that an engine (a running instance of Retort) uses for tool results to a budget in
// bytes. The budget has three parts. The first part is for results while they arrive. No request waits for it: a
// result that does not fit is written to disk. The second part holds a result until the program or the client has
// received it. The third part is for converting a result. The parts are always acquired in the same order, and a
// running conversion waits for no other part, so requests cannot deadlock.
package memory

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"retort/internal/core"
)

const (
	// Small is the maximum size, in bytes, of results that are not counted. Limits on concurrency already bound the
	// number of such results.
	Small = 32 << 10

	ownBytes       = 96 << 20 // bytes of the limit that are not for results
	minAnswerBytes = 64 << 20 // minimum number of bytes for results, even if the limit is small
	// mostFresh is the maximum number of bytes of results that have arrived and are not read yet. Other results go to
	// disk.
	mostFresh        = 256 << 20
	transformFactor  = 6         // memory for a conversion, as a multiple of the result's size
	heavyAnswerBytes = 256 << 10 // minimum size of a result, in bytes, whose conversion needs a turn
	piecewiseBytes   = 32 << 20  // bytes for converting a result piece by piece
)

// Budget bounds the memory of all tool results of an engine. It is safe for concurrent use.
type Budget struct {
	limit  int64
	fresh  *MemoryPool // results as they have arrived; an owner is a server
	values *MemoryPool // results as programs get them, and results of programs; an owner is an execution
	work   *MemoryPool // memory for conversions; an owner is a server or an execution
	turns  *MemoryPool // turns on the processor for conversions of large results

	reclaim func() // returns free memory to the operating system
	mu      sync.Mutex
	timer   *time.Timer // timer for the next call of reclaim; nil if none is scheduled
	last    time.Time   // time of the last call of reclaim
	closed  bool
}

// New returns a Budget for an engine that may use limit bytes of memory in total.
func New(limit int64) *Budget {
	room := max(limit-ownBytes, minAnswerBytes)
	b := &Budget{
		limit:   limit,
		fresh:   newSharedPool(min(room/8, mostFresh)),
		values:  newSharedPool(room * 3 / 8),
		work:    newSharedPool(room / 2),
		turns:   NewPool(int64(max(1, runtime.GOMAXPROCS(0)/2)), 1),
		reclaim: giveBack,
	}
	for _, p := range []*MemoryPool{b.fresh, b.values, b.work} {
		p.drained = b.scheduleRelease
	}
	return b
}

// newSharedPool returns a MemoryPool of total bytes in which each owner, such as a server, can hold at most a quarter
// of the total.
func newSharedPool(total int64) *MemoryPool { return NewPool(total, total/4) }

// LimitBytes returns the memory that the engine may use, in bytes.
func (b *Budget) LimitBytes() int64 { return b.limit }

// FreshPool returns the pool that accounts for the memory of results while they arrive. The owner of such memory is
// the server that sends the result.
func (b *Budget) FreshPool() *MemoryPool { return b.fresh }

// HasWaiters reports whether any request is waiting for memory.
func (b *Budget) HasWaiters() bool { return b.values.HasWaiters() || b.work.HasWaiters() }

// TakeTurn waits until owner may start processor-intensive work on a large result. The caller must call done at the end
// of the work.
func (b *Budget) TakeTurn(ctx context.Context, owner string) (done func(), err error) {
	h, err := b.turns.TakeBytes(ctx, owner, 1)
	if err != nil {
		return nil, err
	}
	return h.Free, nil
}

// AdmitAnswer waits until there is memory to convert a result of n bytes from server. It adds the memory for the
// conversion and for the result to claim. If claim is nil, it releases the memory immediately.
func (b *Budget) AdmitAnswer(ctx context.Context, claim *core.MemoryClaim, server string, n int64) error {
	if n <= Small {
		return nil
	}
	value, err := b.values.TakeBytes(ctx, claim.HolderName(), n+n/4)
	if err != nil {
		return err
	}
	work, err := b.startTransform(ctx, server, transformFactor*n, n >= heavyAnswerBytes)
	if err != nil {
		value.Free()
		return err
	}
	claim.HoldTransformation(work, value)
	return nil
}

// AdmitPiecewise works like AdmitAnswer for a result that is converted piece by piece and is never in memory as a
// whole.
func (b *Budget) AdmitPiecewise(ctx context.Context, claim *core.MemoryClaim, server string) error {
	work, err := b.startTransform(ctx, server, piecewiseBytes, true)
	if err == nil {
		claim.HoldTransformation(work, nil)
	}
	return err
}

// Receive waits until there is memory to receive the final result of an execution, which has n bytes. That memory does
// not count towards the share that the execution has for its tool results, because the program has ended and no longer
// reads them.
func (b *Budget) Receive(ctx context.Context, claim *core.MemoryClaim, n int64) error {
	if n <= Small {
		return nil
	}
	value, err := b.values.TakeBytes(ctx, claim.HolderName()+"\x00result", n)
	if err == nil {
		claim.HoldTransformation(nil, value)
	}
	return err
}

// Report waits until there is memory to convert a result of n bytes to the text that the model gets.
func (b *Budget) Report(ctx context.Context, claim *core.MemoryClaim, n int64) error {
	if n <= Small {
		return nil
	}
	work, err := b.startTransform(ctx, claim.HolderName(), transformFactor*n, n >= heavyAnswerBytes)
	if err == nil {
		claim.HoldTransformation(work, nil)
	}
	return err
}

// ReserveLoad waits until there is memory to load a message of n bytes from server that is not the response to a
// call.
func (b *Budget) ReserveLoad(ctx context.Context, server string, n int64) (core.HeldMemory, error) {
	if n <= Small {
		return nil, nil
	}
	return b.work.TakeBytes(ctx, server, 2*n)
}

// startTransform begins a conversion. It acquires the n bytes of memory that the conversion needs. A long conversion
// also waits for its turn on the processor.
func (b *Budget) startTransform(ctx context.Context, owner string, n int64, long bool) (*transformWork, error) {
	bytes, err := b.work.TakeBytes(ctx, owner, n)
	if err != nil {
		return nil, err
	}
	w := &transformWork{bytes: bytes, owner: owner}
	if !long {
		return w, nil
	}
	if w.turn, err = b.turns.TakeBytes(ctx, owner, 1); err != nil {
		bytes.Free()
		return nil, err
	}
	w.turns = b.turns
	return w, nil
}

// transformWork represents a running conversion: the memory and the turn on the processor that it holds.
type transformWork struct {
	bytes *MemoryHold
	owner string
	turns *MemoryPool // pool of turns; nil if the conversion needs no turn

	mu   sync.Mutex
	turn *MemoryHold // nil while the conversion waits for its turn
	over bool
}

// Free ends the conversion and releases its memory and its turn.
func (w *transformWork) Free() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.turn.Free()
	w.bytes.Free()
}

// Shrink ends the conversion, like Free. It ignores its argument, the amount of memory to keep, because a finished
// conversion needs none.
func (w *transformWork) Shrink(int64) { w.Free() }

// Yield lets other conversions run that are waiting for their turn on the processor. If there are any, this conversion
// gives up its turn and waits for its next one. Otherwise Yield does nothing.
func (w *transformWork) Yield(ctx context.Context) error {
	if w.turns == nil || !w.turns.HasWaiters() {
		return nil
	}
	w.mu.Lock()
	w.turn.Free()
	w.turn = nil
	over := w.over
	w.mu.Unlock()
	if over {
		return nil
	}
	turn, err := w.turns.TakeBytes(ctx, w.owner, 1)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		turn.Free()
	} else {
		w.turn = turn
	}
	return nil
}

const (
	// afterBurst is the delay after a burst of large results before memory is returned to the operating system.
	// betweenReclaims is the minimum time between two such returns.
	afterBurst      = time.Second
	betweenReclaims = 5 * time.Second
)

// scheduleRelease schedules the return of free memory to the operating system. A pool calls it when its used memory
// has dropped from at least much to at most little.
func (b *Budget) scheduleRelease() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer == nil && !b.closed {
		b.timer = time.AfterFunc(max(afterBurst, betweenReclaims-time.Since(b.last)), b.giveBack)
	}
}

func (b *Budget) giveBack() {
	b.reclaim()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timer, b.last = nil, time.Now()
}

// giveBack returns free memory to the operating system. It collects garbage twice, because the contents of a
// sync.Pool survive one collection.
func giveBack() {
	runtime.GC()
	debug.FreeOSMemory()
}

// Close cancels the scheduled return of memory to the operating system.
func (b *Budget) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if b.timer != nil {
		b.timer.Stop()
	}
	return nil
}
