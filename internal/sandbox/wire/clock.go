package wire

import (
	"sync"
	"time"
)

// clock calls expired after a span of active time.
type clock struct {
	mu      sync.Mutex
	left    time.Duration // when the clock was last stopped
	started time.Time     // when it was last started
	pauses  int           // pauses in force
	ended   bool
	timer   *time.Timer
}

func startClock(span time.Duration, expired func()) *clock {
	return &clock{left: span, started: time.Now(), timer: time.AfterFunc(span, expired)}
}

// pause stops the clock until resume is called, which is idempotent. With several pauses at the same time, the clock
// runs again after the last has ended.
func (c *clock) pause() (resume func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pauses++
	if c.pauses == 1 && c.timer.Stop() {
		c.left -= time.Since(c.started)
	}
	return sync.OnceFunc(c.resume)
}

func (c *clock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pauses--
	if c.pauses == 0 && !c.ended {
		c.started = time.Now()
		c.timer.Reset(c.left)
	}
}

// stop stops the clock permanently.
func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer.Stop()
	c.ended = true
}
