package warmpool

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestMemoryPeak(t *testing.T) {
	var p MemoryPeak
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			if now := p.Note(int64(i)); now != int64(i) {
				t.Errorf("noted %d as %d", i, now)
			}
		})
	}
	all.Wait()
	if p.Bytes() != 99 {
		t.Errorf("the peak is %d", p.Bytes())
	}
}

func TestWatchMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, used := time.Now(), int64(0)
		grow := func() int64 { used += 10; return used }
		if !WatchMemory(nil, time.Second, grow, func(now int64) bool { return now > 30 }) || time.Since(began) != 4*time.Second {
			t.Errorf("it took %v to see %d bytes", time.Since(began), used)
		}
		gone := make(chan struct{})
		time.AfterFunc(90*time.Millisecond, func() { close(gone) })
		if WatchMemory(gone, time.Second, grow, func(int64) bool { return true }) {
			t.Error("it measured a guest that is gone")
		}
	})
}
