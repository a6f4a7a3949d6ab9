package standby

import (
	"sync/atomic"
	"testing"
	"time"
)

type item struct{ dead atomic.Bool }

func (i *item) Alive() bool { return !i.dead.Load() }
func (i *item) Kill()       { i.dead.Store(true) }

func startItem() (*item, error) { return &item{}, nil }

// Where memory is scarce, nothing waits, and who asks is served all the same.
func TestPoolWithoutRoom(t *testing.T) {
	p := NewPool(PoolOptions[*item]{Start: startItem, Least: 2, Most: 8, Room: func() bool { return false }})
	defer p.Close()
	for range 3 {
		if i, err := p.Take(t.Context()); err != nil || !i.Alive() {
			t.Fatal(i, err)
		}
	}
	time.Sleep(100 * time.Millisecond)
	if n := len(p.Ready()); n > 0 {
		t.Errorf("%d items wait", n)
	}
}

// What died while it waited is not given out.
func TestDeadItem(t *testing.T) {
	p := NewPool(PoolOptions[*item]{Start: startItem, Least: 1, Most: 1})
	defer p.Close()
	for len(p.Ready()) == 0 {
		time.Sleep(time.Millisecond)
	}
	dead := p.Ready()[0]
	dead.Kill()
	if i, err := p.Take(t.Context()); err != nil || i == dead {
		t.Error(i == dead, err)
	}
}

// Who has taken an item has the machine to itself while there are others, and no longer than it
// needs it; when there are none, another one is started.
func TestCalm(t *testing.T) {
	var starts atomic.Int64
	start := func() (*item, error) { starts.Add(1); return &item{}, nil }
	p := NewPool(PoolOptions[*item]{Start: start, Least: 2, Most: 2, Calm: true, Room: func() bool { return true }})
	defer p.Close()
	ready := func(n int) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); len(p.Ready()) != n; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d items are ready, not %d", len(p.Ready()), n)
			}
		}
	}
	take := func() {
		t.Helper()
		if _, err := p.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ready(2)
	take()
	time.Sleep(5 * breather)
	if n := starts.Load(); n != 2 {
		t.Errorf("%d items were started while one was ready", n)
	}
	p.Refill()
	ready(2)
	take()
	ready(2) // after a while
	take()
	take()
	ready(2) // at once
}
