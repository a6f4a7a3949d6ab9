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
