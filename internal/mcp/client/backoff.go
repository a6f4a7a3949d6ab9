package client

import (
	"math/rand/v2"
	"time"

	"retort/internal/base/throttle"
)

const (
	firstDelay = 250 * time.Millisecond
	openAfter  = 5 // number of failures in a row after which the circuit breaker opens
	firstOpen  = 15 * time.Second
	longestGap = 5 * time.Minute
)

// newBreaker returns the circuit breaker of a server. After each of the first failures, the delay before the next
// connection attempt grows. After openAfter failures in a row, the breaker opens: for a time that grows with each
// further failure, no connection is attempted.
func newBreaker() throttle.Breaker {
	return throttle.Breaker{Backoff: throttle.Backoff{Delay: firstDelay, OpenAfter: openAfter, Pause: firstOpen, Longest: longestGap}}
}

func randomJitter() float64 { return rand.Float64() }
