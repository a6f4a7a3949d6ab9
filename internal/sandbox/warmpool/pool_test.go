package warmpool

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"retort/internal/devel/testenv"
)

type item struct{ dead atomic.Bool }

func (i *item) IsAlive() bool { return !i.dead.Load() }
func (i *item) Kill()         { i.dead.Store(true) }

func startItem() (*item, error) { return &item{}, nil }

// TestPoolWithoutRoom checks that a pool on a machine with little memory keeps no items ready but still serves Take.
func TestPoolWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(PoolOptions[*item]{Start: startItem, Least: 2, Most: 8, Room: func() bool { return false }})
		defer p.Close()
		for range 3 {
			if i, err := p.Take(t.Context()); err != nil || !i.IsAlive() {
				t.Fatal(i, err)
			}
		}
		time.Sleep(time.Hour)
		if n := len(p.ReadyItems()); n > 0 {
			t.Errorf("%d items wait", n)
		}
	})
}

// TestDeadItem checks that Take never returns an item that died while it was ready.
func TestDeadItem(t *testing.T) {
	p := NewPool(PoolOptions[*item]{Start: startItem, Least: 1, Most: 1})
	defer p.Close()
	testenv.WaitUntil(t, "an item is ready", func() bool { return len(p.ReadyItems()) > 0 })
	dead := p.ReadyItems()[0]
	dead.Kill()
	if i, err := p.Take(t.Context()); err != nil || i == dead {
		t.Error(i == dead, err)
	}
}

// TestCalm checks when a pool with the option Calm replaces a taken item. While other items are ready, the pool does
// so after maxRefillDelay or a call of AllowRefill. Otherwise it does so after refillDelay.
func TestCalm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var starts atomic.Int64
		start := func() (*item, error) { starts.Add(1); return &item{}, nil }
		p := NewPool(PoolOptions[*item]{Start: start, Least: 2, Most: 2, Calm: true, Room: func() bool { return true }})
		defer p.Close()
		started := func(n int64, after time.Duration) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if now := starts.Load(); now != n {
				t.Errorf("%d items were started, want %d", now, n)
			}
		}
		take := func() {
			t.Helper()
			if _, err := p.Take(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		started(2, 0)
		take()
		started(2, maxRefillDelay-time.Millisecond) // while one is ready
		p.AllowRefill()
		started(2, refillDelay-time.Millisecond)
		started(3, time.Millisecond)
		take()
		started(3, maxRefillDelay-time.Millisecond)
		started(4, time.Millisecond)
		take()
		take()
		started(4, refillDelay-time.Millisecond)
		started(6, time.Millisecond)
		if n := len(p.ReadyItems()); n != 2 {
			t.Errorf("%d items are ready, want 2", n)
		}
	})
}

// TestOnce checks that a pool with Once keeps nothing ready after the first Take, and starts one
// item for each further Take.
func TestOnce(t *testing.T) {
	for name, lazy := range map[string]bool{"one is started ahead": false, "nothing is started ahead": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var starts atomic.Int64
				start := func() (*item, error) { starts.Add(1); return &item{}, nil }
				p := NewPool(PoolOptions[*item]{Start: start, Least: 1, Most: 1, Once: true, Lazy: lazy, Room: func() bool { return true }})
				defer p.Close()
				time.Sleep(time.Hour)
				if n := starts.Load(); (n == 0) != lazy || n > 1 {
					t.Errorf("%d items were started ahead, lazy is %v", n, lazy)
				}
				for taken := range int64(3) {
					if _, err := p.Take(t.Context()); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Hour)
					if n := starts.Load(); n != taken+1 || len(p.ReadyItems()) > 0 {
						t.Errorf("after %d takes: %d items were started and %d are ready, want %d and none", taken+1, n, len(p.ReadyItems()), taken+1)
					}
				}
			})
		})
	}
}
