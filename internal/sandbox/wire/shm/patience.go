package shm

import (
	"sync/atomic"
	"time"
)

// spinPolicy decides whether one end of the connection spins (polls without sleeping) while it waits. Spinning
// occupies a processor, so it pays only if the awaited data usually arrives immediately.
type spinPolicy struct {
	// soon is the time within which data counts as arriving immediately. most is the longest time for which an end
	// spins before it sleeps. This longest time must suffice for a wake-up and the reaction to it. Otherwise one end
	// would always spin while the other sleeps, and they would never find out that both could spin.
	soon, most time.Duration

	retriesLeft int          // number of further slow waits after which spinning is given up
	idle        int          // number of waits since the last wait with spinning
	interval    int          // number of waits after which spinning is tried again, once it was given up
	forcedSpins atomic.Int32 // number of next waits that must spin, because the other end is or may be awake
}

const (
	spinRetries   = 6
	spinEvery     = 8
	spinEveryMax  = 256
	immediateTime = 200 * time.Microsecond
	bellTime      = 400 * time.Microsecond
)

func newPatience(soon time.Duration) *spinPolicy {
	return &spinPolicy{soon: soon, most: max(soon, bellTime), retriesLeft: spinRetries, interval: spinEvery}
}

// shouldSpin reports whether this wait should begin with spinning.
func (p *spinPolicy) shouldSpin() bool {
	if p.forcedSpins.Load() > 0 {
		p.forcedSpins.Add(-1)
		return true
	}
	if p.retriesLeft > 0 {
		return true
	}
	if p.idle++; p.idle < p.interval {
		return false
	}
	p.idle = 0
	p.forcedSpins.Store(1) // the other side notices, and the next time it may be awake, too
	return true
}

// recordWait records how long a wait with spinning took, whether data arrived or not.
func (p *spinPolicy) recordWait(took time.Duration) {
	switch {
	case took <= p.soon:
		p.retriesLeft, p.idle, p.interval = spinRetries, 0, spinEvery
	case p.retriesLeft > 0:
		p.retriesLeft--
	default:
		p.interval = min(2*p.interval, spinEveryMax)
	}
}

// notePeerAwake records that the other end of the connection has woken up. The next two waits then begin with
// spinning, because data from an awake end can arrive immediately.
func (p *spinPolicy) notePeerAwake() { p.forcedSpins.Store(2) }
