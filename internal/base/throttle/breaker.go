// Package throttle decides when an operation may be tried again: after failures (Breaker), or within a rate limit
// (Rate). Its types read no clock and take no locks. The caller passes the current time.
package throttle

import "time"

// Backoff configures the waits after consecutive failures.
type Backoff struct {
	Delay     time.Duration // wait after the first failure; doubles with each failure until the breaker opens
	OpenAfter int           // number of failures that open the breaker
	Pause     time.Duration // wait after the failure that opens the breaker; doubles with each further failure
	Longest   time.Duration // maximum wait while the breaker is open, before jitter
}

// Breaker is a circuit breaker that counts consecutive failures of an operation. After OpenAfter failures it is open:
// the operation must not be tried until the pause has passed.
type Breaker struct {
	Backoff
	Failures int       // number of consecutive failures
	RetryAt  time.Time // end of the wait after the last failure
}

// maxDoublings bounds how many times a delay is doubled, so that it cannot overflow.
const maxDoublings = 20

// wait returns the wait after the failures counted so far.
func (b *Breaker) wait() time.Duration {
	if over := b.Failures - b.OpenAfter; over >= 0 {
		return min(b.Pause<<min(over, maxDoublings), b.Longest)
	}
	return b.Delay << min(max(b.Failures-1, 0), maxDoublings)
}

// NoteFailure counts a failure. jitter must be in [0, 1). It scales the wait to between 0.5 and 1.5 times what Backoff
// specifies, so that clients that failed together do not retry together. A jitter of 0.5 leaves the wait unchanged.
func (b *Breaker) NoteFailure(now time.Time, jitter float64) {
	b.Failures++
	wait := b.wait()
	b.RetryAt = now.Add(wait/2 + time.Duration(jitter*float64(wait)))
}

// NoteSuccess resets the failure count and closes the breaker.
func (b *Breaker) NoteSuccess() { b.Failures, b.RetryAt = 0, time.Time{} }

// IsTripped reports whether there were enough consecutive failures to open the breaker. It returns true even if the
// pause has passed.
func (b *Breaker) IsTripped() bool { return b.Failures >= b.OpenAfter }

// IsOpen reports whether the breaker is open at the time now. While it is open, the operation must not be tried.
func (b *Breaker) IsOpen(now time.Time) bool { return b.IsTripped() && now.Before(b.RetryAt) }

// Postpone restarts the wait after the last failure at the time now. A caller that is about to retry the operation
// calls it, so that others do not retry at the same time.
func (b *Breaker) Postpone(now time.Time) { b.RetryAt = now.Add(b.wait()) }
