package search

import (
	"sync"
	"time"

	"retort/internal/base/throttle"
)

const (
	maxFailures = 2 // failures in a row before the endpoint is blocked
	firstPause  = 30 * time.Second
	lastPause   = 10 * time.Minute
	exactly     = 0.5 // the jitter of one endpoint alone
)

// circuitBreaker blocks requests to an endpoint that fails, so that searches lose no time with it. After a pause it
// allows one attempt. Each failed attempt doubles the pause.
type circuitBreaker struct {
	now func() time.Time

	mu      sync.Mutex
	breaker throttle.Breaker
	err     error // the last failure
}

func newCircuitBreaker(now func() time.Time) *circuitBreaker {
	return &circuitBreaker{
		now: now, breaker: throttle.Breaker{Backoff: throttle.Backoff{OpenAfter: maxFailures, Pause: firstPause, Longest: lastPause}},
	}
}

// allowAttempt returns nil if an attempt may be made, otherwise an error that gives the reason.
func (b *circuitBreaker) allowAttempt() (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.breaker.IsTripped() {
		return true, nil
	}
	now := b.now()
	if b.breaker.IsOpen(now) {
		return false, b.err
	}
	b.breaker.Postpone(now) // others wait for how this one ends
	return true, nil
}

// finishAttempt records the result of an attempt. A nil error means success.
func (b *circuitBreaker) finishAttempt(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
	if err == nil {
		b.breaker.NoteSuccess()
		return
	}
	b.breaker.NoteFailure(b.now(), exactly)
}

// remainingPause returns the time until the next attempt is allowed.
func (b *circuitBreaker) remainingPause() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.breaker.IsTripped() {
		return 0
	}
	return max(b.breaker.RetryAt.Sub(b.now()), 0)
}

// lastFailure returns the last failure, or nil if the last attempt succeeded.
func (b *circuitBreaker) lastFailure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}
