// Package deadline limits the active time of an operation. Time spent waiting for a person does not count.
package deadline

import (
	"context"
	"sync"
	"time"

	"retort/internal/core"
)

// With returns a context that ends after the duration d of active time. Its cause is then context.DeadlineExceeded.
// core.PauseClock stops the clocks of this context and of its parent contexts.
func With(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	timed, cancel := context.WithCancelCause(ctx)
	c := &runClock{left: d, outer: ctx, end: func() { cancel(context.DeadlineExceeded) }}
	c.startClock()
	return core.WithPause(timed, c.pauseClock), func() { c.stopClock(); cancel(context.Canceled) }
}

// runClock cancels an operation after it has run for a given time. Time while the clock is stopped does not count.
type runClock struct {
	outer context.Context
	end   func()

	mu     sync.Mutex
	left   time.Duration
	began  time.Time
	paused int
	timer  *time.Timer
}

func (c *runClock) startClock() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused = max(0, c.paused-1); c.paused == 0 && c.left > 0 {
		c.began, c.timer = time.Now(), time.AfterFunc(c.left, c.end)
	}
}

func (c *runClock) pauseClock() (resume func()) {
	c.mu.Lock()
	if c.paused++; c.paused == 1 && c.timer.Stop() {
		c.left = max(c.left-time.Since(c.began), time.Millisecond)
	}
	c.mu.Unlock()
	outer := core.PauseClock(c.outer)
	return func() { c.startClock(); outer() }
}

func (c *runClock) stopClock() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = 0
	c.timer.Stop()
}
