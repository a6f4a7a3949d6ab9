package warmpool

import (
	"sync/atomic"
	"time"
)

// MemoryPeak is the peak memory of a guest. It is safe for concurrent use.
type MemoryPeak struct{ bytes atomic.Int64 }

// Note notes how much memory the guest has now, in bytes, and returns that.
func (p *MemoryPeak) Note(now int64) int64 {
	for {
		old := p.bytes.Load()
		if now <= old || p.bytes.CompareAndSwap(old, now) {
			return now
		}
	}
}

// Bytes returns the peak so far.
func (p *MemoryPeak) Bytes() int64 { return p.bytes.Load() }

// WatchMemory measures the memory of a guest again and again until the guest is gone, or has more than it may. It
// reports whether it has.
func WatchMemory(gone <-chan struct{}, every time.Duration, measure func() int64, exceeds func(now int64) bool) bool {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-gone:
			return false
		case <-tick.C:
		}
		if exceeds(measure()) {
			return true
		}
	}
}
