// Package throttle decides when something may be done again: after failures, and as often as a rate allows. Its types
// read no clock and take no lock.
package throttle

import "time"

// Backoff says how long to wait after failures in a row.
type Backoff struct {
	Delay     time.Duration // after the first failure; doubles with each until the breaker opens
	OpenAfter int           // number of failures that open the breaker
	Pause     time.Duration // after the failure that opens the breaker; doubles with each
	Longest   time.Duration // bounds Pause
}

// Breaker counts the failures of something. After OpenAfter failures in a row it is open: nothing may be tried until
// the pause has passed.
type Breaker struct {
	Backoff
	Failures int       // in a row
	RetryAt  time.Time // when the wait after the last failure ends
}

// maxDoublings keeps a doubled duration from overflowing.
const maxDoublings = 20

// wait returns how long to wait after the failures so far.
func (b *Breaker) wait() time.Duration {
	if over := b.Failures - b.OpenAfter; over >= 0 {
		return min(b.Pause<<min(over, maxDoublings), b.Longest)
	}
	return b.Delay << min(max(b.Failures-1, 0), maxDoublings)
}

// NoteFailure counts a failure. jitter, in [0, 1), spreads the tries of many that failed together: the wait is between
// half and one and a half of what Backoff says. 0.5 means exactly that.
func (b *Breaker) NoteFailure(now time.Time, jitter float64) {
	b.Failures++
	wait := b.wait()
	b.RetryAt = now.Add(wait/2 + time.Duration(jitter*float64(wait)))
}

// NoteSuccess closes the breaker.
func (b *Breaker) NoteSuccess() { b.Failures, b.RetryAt = 0, time.Time{} }

// IsTripped reports whether the last failures were enough to open the breaker.
func (b *Breaker) IsTripped() bool { return b.Failures >= b.OpenAfter }

// IsOpen reports whether nothing may be tried now.
func (b *Breaker) IsOpen(now time.Time) bool { return b.IsTripped() && now.Before(b.RetryAt) }

// Postpone starts the wait again, for a try whose result others wait for.
func (b *Breaker) Postpone(now time.Time) { b.RetryAt = now.Add(b.wait()) }
