package memory

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"retort/internal/core"
)

// taker takes amounts from a pool in several goroutines. It records the order in which the pool grants them.
type taker struct {
	t     *testing.T
	pool  *MemoryPool
	mu    sync.Mutex
	order []string
	holds map[string]*MemoryHold
}

func (k *taker) take(name, owner string, n int64) {
	go func() {
		h, err := k.pool.TakeBytes(k.t.Context(), owner, n)
		if err != nil {
			return
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.order = append(k.order, name)
		k.holds[name] = h
	}()
	synctest.Wait()
}

func (k *taker) free(name string) {
	k.mu.Lock()
	h := k.holds[name]
	k.mu.Unlock()
	h.Free()
	h.Free() // which changes nothing
	synctest.Wait()
}

func newTaker(t *testing.T, total, share int64) *taker {
	return &taker{t: t, pool: NewPool(total, share), holds: map[string]*MemoryHold{}}
}

func (k *taker) want(names ...string) {
	k.t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if !slices.Equal(k.order, names) {
		k.t.Fatalf("served %v, want %v", k.order, names)
	}
}

func TestPoolServesOwnersInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTaker(t, 10, 10)
		k.take("a1", "a", 10)
		k.take("a2", "a", 10)
		k.take("a3", "a", 10)
		k.take("b1", "b", 10)
		k.want("a1")
		k.free("a1")
		k.free("a2")
		k.want("a1", "a2", "b1") // and not a3, which came before
		k.free("b1")
		k.want("a1", "a2", "b1", "a3")
		k.free("a3")
		if k.pool.UsedBytes() != 0 || len(k.pool.owners) != 0 || len(k.pool.queues) != 0 {
			t.Errorf("left: %+v", k.pool)
		}
	})
}

func TestPoolShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTaker(t, 12, 4)
		k.take("a1", "a", 3)
		k.take("a2", "a", 3) // over its share
		k.take("b1", "b", 8) // over its share in one piece
		k.want("a1", "b1")
		k.free("a1")
		k.want("a1", "b1", "a2")
		if _, ok := k.pool.TryTake("c", 2); ok {
			t.Error("more than there is")
		}
		if h, ok := k.pool.TryTake("c", 1); !ok || h.TryGrow(1) {
			t.Error("the last one could not be had, or more than that")
		}
	})
}

// TestPoolKeepsLargeRequestsInOrder checks that small requests do not overtake a waiting large one.
func TestPoolKeepsLargeRequestsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTaker(t, 10, 10)
		k.take("small", "a", 5)
		k.take("large", "b", 10)
		k.take("later", "c", 1)
		k.want("small")
		if _, ok := k.pool.TryTake("d", 1); ok {
			t.Error("somebody went before who waits")
		}
		k.free("small")
		k.want("small", "large")
		k.holds["large"].Shrink(9)
		synctest.Wait()
		k.want("small", "large", "later")
		k.free("large")
		k.take("more than there is", "e", 100)
		k.free("later")
		k.want("small", "large", "later", "more than there is")
	})
}

func TestPoolWaitingEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(10, 10)
		h, _ := p.TakeBytes(t.Context(), "a", 10)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.TakeBytes(ctx, "b", 10); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if p.HasWaiters() {
			t.Error("it still waits")
		}
		h.Free()
		if _, ok := p.TryTake("c", 10); !ok {
			t.Error("the pool is not empty")
		}
	})
}

// TestNothingDeadlocks runs 16 programs with 32 concurrent calls each, with results of many sizes, and cancels some of
// them. It checks that all finish and release all memory.
func TestNothingDeadlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(1)
		defer b.Close()
		b.reclaim = func() {}
		var all sync.WaitGroup
		for program := range 16 {
			for call := range 32 {
				all.Go(func() {
					n := int64(program+1) * int64(call+1) << 16
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+call%7)*time.Minute)
					defer cancel()
					ctx, claim := core.WithClaim(ctx, string(rune('a'+program)))
					defer claim.Free()
					if b.AdmitAnswer(ctx, claim, string(rune('A'+call%8)), n) != nil {
						return
					}
					time.Sleep(time.Duration(call) * 10 * time.Millisecond) // transforms
					claim.FinishTransformation(n)
					time.Sleep(time.Duration(program) * 100 * time.Millisecond) // the program does not read
					if claim.Free(); b.Receive(ctx, claim, n) == nil {
						_ = b.Report(ctx, claim, n)
					}
				})
			}
		}
		all.Wait()
		for name, p := range map[string]*MemoryPool{"fresh": b.fresh, "values": b.values, "work": b.work, "turns": b.turns} {
			if p.UsedBytes() != 0 || p.HasWaiters() {
				t.Errorf("%s: %d in use", name, p.UsedBytes())
			}
		}
	})
}

func TestClaims(t *testing.T) {
	b := New(1 << 30)
	defer b.Close()
	ctx, execution := core.WithClaim(t.Context(), "x")
	inner, call := core.WithClaim(ctx, "x")
	const n = 1 << 20
	if err := b.AdmitAnswer(inner, core.ClaimOf(inner), "s", n); err != nil {
		t.Fatal(err)
	}
	if b.work.UsedBytes() != transformFactor*n || b.values.UsedBytes() < n || b.turns.UsedBytes() != 1 || !call.IsHolding() {
		t.Errorf("%d for work, %d for the value, %d turns", b.work.UsedBytes(), b.values.UsedBytes(), b.turns.UsedBytes())
	}
	call.FinishTransformation(10)
	if b.work.UsedBytes() != 0 || b.values.UsedBytes() != 10 || b.turns.UsedBytes() != 0 {
		t.Errorf("transformed: %d for work, %d for the value, %d turns", b.work.UsedBytes(), b.values.UsedBytes(), b.turns.UsedBytes())
	}
	call.AddHolder().Free()
	if b.values.UsedBytes() != 10 {
		t.Error("it was freed while somebody else has the value")
	}
	execution.Free() // the program ends before it has read the answer
	if b.values.UsedBytes() != 0 {
		t.Errorf("%d in use after the end of the execution", b.values.UsedBytes())
	}
	if err := b.AdmitAnswer(inner, call, "s", n); err != nil || b.values.UsedBytes() != 0 || b.work.UsedBytes() != 0 {
		t.Errorf("what has ended holds %d and %d, %v", b.values.UsedBytes(), b.work.UsedBytes(), err)
	}
	if err := b.AdmitAnswer(t.Context(), nil, "s", n); err != nil || b.values.UsedBytes() != 0 || b.work.UsedBytes() != 0 {
		t.Errorf("nobody holds %d and %d, %v", b.values.UsedBytes(), b.work.UsedBytes(), err)
	}
}

// TestYield checks that a conversion of a large result in pieces lets a waiting conversion run first.
func TestYield(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(1 << 30)
		defer b.Close()
		b.turns = NewPool(1, 1)
		ctx, claim := core.WithClaim(t.Context(), "x")
		if err := b.AdmitPiecewise(ctx, claim, "s"); err != nil {
			t.Fatal(err)
		}
		if err := claim.Yield(ctx); err != nil || b.turns.UsedBytes() != 1 {
			t.Errorf("nobody waits, and it has not kept its turn: %v", err)
		}
		other := make(chan struct{})
		go func() {
			done, err := b.TakeTurn(t.Context(), "other")
			if err != nil {
				t.Error(err)
				return
			}
			close(other)
			done()
		}()
		synctest.Wait()
		if err := claim.Yield(ctx); err != nil || b.turns.UsedBytes() != 1 {
			t.Errorf("%d turns, %v", b.turns.UsedBytes(), err)
		}
		<-other
		claim.Free()
		if b.turns.UsedBytes() != 0 || b.work.UsedBytes() != 0 {
			t.Errorf("left: %d turns, %d bytes", b.turns.UsedBytes(), b.work.UsedBytes())
		}
	})
}

// TestReclaim checks that memory is returned to the operating system after large results were in memory, at most once
// per betweenReclaims. After many small results it must not be returned.
func TestReclaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(1 << 30)
		defer b.Close()
		var times []time.Duration
		start := time.Now()
		b.reclaim = func() { times = append(times, time.Since(start)) }
		for range 100 {
			b.work.ForceTake("s", much/2).Free()
		}
		time.Sleep(time.Minute)
		if len(times) != 0 {
			t.Errorf("after little: %v", times)
		}
		start = time.Now()
		for range 8 {
			b.work.ForceTake("s", much).Free()
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		want := []time.Duration{afterBurst, afterBurst + betweenReclaims, afterBurst + 2*betweenReclaims}
		if !slices.Equal(times, want) {
			t.Errorf("after %v, want %v", times, want)
		}
	})
}
