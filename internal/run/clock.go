package run

import (
	"context"
	"sync"
	"time"
)

type pauseKey struct{}

// WithPause returns a context of which Pause calls pause. The resume that
// pause returns is called once.
func WithPause(ctx context.Context, pause func() (resume func())) context.Context {
	return context.WithValue(ctx, pauseKey{}, pause)
}

// Pause stops the clock of the execution that ctx belongs to, until resume is
// called: time in which a person is waited for is not the program's. Where no
// clock runs, it does nothing.
func Pause(ctx context.Context) (resume func()) {
	if pause, ok := ctx.Value(pauseKey{}).(func() func()); ok {
		return pause()
	}
	return func() {}
}

// clock ends something when it has run for some time in all.
type clock struct {
	outer context.Context
	end   func()

	mu     sync.Mutex
	left   time.Duration
	began  time.Time
	paused int
	timer  *time.Timer
}

func (c *clock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused = max(0, c.paused-1); c.paused == 0 && c.left > 0 {
		c.began, c.timer = time.Now(), time.AfterFunc(c.left, c.end)
	}
}

func (c *clock) pause() (resume func()) {
	c.mu.Lock()
	if c.paused++; c.paused == 1 && c.timer.Stop() {
		c.left = max(c.left-time.Since(c.began), time.Millisecond)
	}
	c.mu.Unlock()
	outer := Pause(c.outer)
	return func() { c.resume(); outer() }
}

func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = 0
	c.timer.Stop()
}
