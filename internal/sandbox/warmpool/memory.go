package warmpool

import (
	"sync/atomic"
	"time"
)

// MemoryPeak records the peak memory of a guest. It is safe for concurrent use.
type MemoryPeak struct{ bytes atomic.Int64 }

// Note records the number of bytes of memory that the guest uses at present, and returns this number.
func (p *MemoryPeak) Note(now int64) int64 {
	for {
		old := p.bytes.Load()
		if now <= old || p.bytes.CompareAndSwap(old, now) {
			return now
		}
	}
}

// Bytes returns the peak so far, in bytes.
func (p *MemoryPeak) Bytes() int64 { return p.bytes.Load() }

// WatchMemory measures the memory of a guest at the interval every. It stops when the guest is gone, or when the
// function exceeds returns true for a measured value. WatchMemory reports whether exceeds has returned true.
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
