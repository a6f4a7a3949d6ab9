package wire

import (
	"sync"
	"time"
)

// activeClock calls the function expired when the clock has run for a given time. Time in which the clock is paused
// does not count.
type activeClock struct {
	mu      sync.Mutex
	left    time.Duration // time until expiry, as of the last start or stop of the clock
	started time.Time     // time at which the clock was last started
	pauses  int           // number of pauses that have not been resumed yet
	ended   bool
	timer   *time.Timer
}

func startClock(span time.Duration, expired func()) *activeClock {
	return &activeClock{left: span, started: time.Now(), timer: time.AfterFunc(span, expired)}
}

// pauseClock stops the clock until resume is called. If several pauses overlap, the clock runs again after the last
// of them. resume is idempotent.
func (c *activeClock) pauseClock() (resume func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pauses++
	if c.pauses == 1 && c.timer.Stop() {
		c.left -= time.Since(c.started)
	}
	return sync.OnceFunc(c.resumeClock)
}

func (c *activeClock) resumeClock() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pauses--
	if c.pauses == 0 && !c.ended {
		c.started = time.Now()
		c.timer.Reset(c.left)
	}
}

// stopClock stops the clock permanently.
func (c *activeClock) stopClock() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer.Stop()
	c.ended = true
}
