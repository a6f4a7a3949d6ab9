package search

import (
	"sync"
	"time"
)

const (
	maxFailures = 2 // failures in a row before the endpoint is blocked
	firstPause  = 30 * time.Second
	lastPause   = 10 * time.Minute
)

// circuitBreaker blocks requests to an endpoint that fails, so that they cost no time. After a pause it allows one attempt.
// Each failed attempt doubles the pause.
type circuitBreaker struct {
	now func() time.Time

	mu       sync.Mutex
	failures int
	until    time.Time // no attempt before
	err      error     // the last failure
}

// allowAttempt reports whether an attempt may be made. If not, the error gives the reason.
func (b *circuitBreaker) allowAttempt() (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < maxFailures {
		return true, nil
	}
	now := b.now()
	if now.Before(b.until) {
		return false, b.err
	}
	b.until = now.Add(b.pauseLength()) // others wait for how this one ends
	return true, nil
}

func (b *circuitBreaker) pauseLength() time.Duration {
	return min(firstPause<<min(max(b.failures-maxFailures, 0), 10), lastPause)
}

// finishAttempt reports the result of an attempt.
func (b *circuitBreaker) finishAttempt(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.failures, b.err = 0, nil
		return
	}
	b.failures++
	b.err = err
	b.until = b.now().Add(b.pauseLength())
}

// remainingPause returns how long it takes until an attempt is allowed.
func (b *circuitBreaker) remainingPause() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < maxFailures {
		return 0
	}
	return max(b.until.Sub(b.now()), 0)
}

// lastFailure returns the last failure, or nil if the last attempt succeeded.
func (b *circuitBreaker) lastFailure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}
