package shm

import (
	"sync/atomic"
	"time"
)

// patience decides whether a side waits awake. That takes a processor, and is worth it only
// where what is waited for comes at once, each time.
type patience struct {
	// soon is what is at once. most is for how long a side waits awake at all: long enough for a
	// bell and what it brings about, or a side that waits awake while the other sleeps would
	// never find that both could.
	soon, most time.Duration

	hope     int          // how often it may be in vain before it is given up
	idle     int          // waits since the last one awake
	interval int          // of those after which one is tried all the same
	urged    atomic.Int32 // tries for which there is a reason
}

const (
	hopes     = 6
	often     = 8
	seldom    = 256
	atOnce    = 200 * time.Microsecond
	bellTakes = 400 * time.Microsecond
)

func newPatience(soon time.Duration) *patience {
	return &patience{soon: soon, most: max(soon, bellTakes), hope: hopes, interval: often}
}

// worthwhile says whether to wait awake this time.
func (p *patience) worthwhile() bool {
	if p.urged.Load() > 0 {
		p.urged.Add(-1)
		return true
	}
	if p.hope > 0 {
		return true
	}
	if p.idle++; p.idle < p.interval {
		return false
	}
	p.idle = 0
	p.urged.Store(1) // the other side notices, and the next time it may be awake, too
	return true
}

// judge is told how long something took to come, or was waited for in vain.
func (p *patience) judge(took time.Duration) {
	switch {
	case took <= p.soon:
		p.hope, p.idle, p.interval = hopes, 0, often
	case p.hope > 0:
		p.hope--
	default:
		p.interval = min(2*p.interval, seldom)
	}
}

// urge is told that the other side, which has slept each time before, is awake.
func (p *patience) urge() { p.urged.Store(2) }
