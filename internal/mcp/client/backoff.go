package client

import (
	"math/rand/v2"
	"time"
)

const (
	firstDelay = 250 * time.Millisecond
	openAfter  = 5 // failures in a row
	firstOpen  = 15 * time.Second
	longestGap = 5 * time.Minute
)

// retryBreaker decides when to retry a server that fails. After each of the first failures the delay grows. After
// openAfter failures in a row the breaker opens for increasing times, in which nothing is tried.
type retryBreaker struct {
	failures int
	retryAt  time.Time
}

// noteFailure notes a failure. jitter, in [0, 1), spreads the tries of many servers
// that failed together.
func (b *retryBreaker) noteFailure(now time.Time, jitter float64) {
	b.failures++
	delay := firstDelay << min(b.failures-1, 20)
	if over := b.failures - openAfter; over >= 0 {
		delay = min(firstOpen<<min(over, 20), longestGap)
	}
	b.retryAt = now.Add(delay/2 + time.Duration(jitter*float64(delay)))
}

// noteSuccess closes the breaker.
func (b *retryBreaker) noteSuccess() { *b = retryBreaker{} }

// isOpen reports whether uses are to fail at once.
func (b *retryBreaker) isOpen(now time.Time) bool {
	return b.failures >= openAfter && now.Before(b.retryAt)
}

func randomJitter() float64 { return rand.Float64() }
