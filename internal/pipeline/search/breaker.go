package search

import (
	"sync"
	"time"
)

const (
	tolerated  = 2 // failures in a row before the endpoint is blocked
	firstPause = 30 * time.Second
	lastPause  = 10 * time.Minute
)

// breaker blocks requests to an endpoint that fails, so that they cost no time. After a pause it allows one attempt.
// Each failed attempt doubles the pause.
type breaker struct {
	now func() time.Time

	mu       sync.Mutex
	failures int
	until    time.Time // no attempt before
	err      error     // the last failure
}

// allow reports whether an attempt may be made. If not, the error gives the reason.
func (b *breaker) allow() (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < tolerated {
		return true, nil
	}
	now := b.now()
	if now.Before(b.until) {
		return false, b.err
	}
	b.until = now.Add(b.pause()) // others wait for how this one ends
	return true, nil
}

func (b *breaker) pause() time.Duration {
	return min(firstPause<<min(max(b.failures-tolerated, 0), 10), lastPause)
}

// done reports the result of an attempt.
func (b *breaker) done(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.failures, b.err = 0, nil
		return
	}
	b.failures++
	b.err = err
	b.until = b.now().Add(b.pause())
}

// wait returns how long it takes until an attempt is allowed.
func (b *breaker) wait() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < tolerated {
		return 0
	}
	return max(b.until.Sub(b.now()), 0)
}

// failure returns the last failure, or nil if the last attempt succeeded.
func (b *breaker) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}
