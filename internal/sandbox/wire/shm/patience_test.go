package shm

import (
	"testing"
	"time"
)

// TestSpinPolicy checks that spinPolicy keeps spinning while data arrives immediately, spins rarely otherwise, and
// spins again when the other end is awake.
func TestSpinPolicy(t *testing.T) {
	p := newPatience(immediateTime)
	tries := func(waits int, took time.Duration) (n int) {
		for range waits {
			if p.shouldSpin() {
				n++
				p.recordWait(took)
			}
		}
		return n
	}
	if n := tries(1000, time.Microsecond); n != 1000 {
		t.Errorf("%d of 1000 where it was worth it", n)
	}
	if n := tries(1000, time.Second); n < spinRetries || n > spinRetries+20 {
		t.Errorf("%d of 1000 where it was not", n)
	}
	if n := tries(10_000, time.Second); n < 2 || n > 2*10_000/spinEveryMax+2 {
		t.Errorf("%d of 10,000 after that", n)
	}
	p.notePeerAwake()
	if n := tries(2, time.Microsecond); n != 2 {
		t.Errorf("%d of 2 for a reason", n)
	}
	if n := tries(1000, time.Microsecond); n != 1000 {
		t.Errorf("%d of 1000 where it is worth it again", n)
	}
}
