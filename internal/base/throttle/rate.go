package throttle

import "time"

// Rate represents a rate limit of Most events within the duration Per.
type Rate struct {
	Most int
	Per  time.Duration
}

// Bucket is a token bucket. It holds the number of events of a Rate that are still allowed. The zero Bucket is full.
type Bucket struct {
	left float64
	at   time.Time
}

// Full returns a Bucket that is full at the time now.
func (r Rate) Full(now time.Time) Bucket { return Bucket{float64(r.Most), now} }

// Take takes n events from the bucket. If the bucket has too few, it takes none and returns how long to wait for them.
func (r Rate) Take(b *Bucket, n int, now time.Time) (wait time.Duration) {
	r.fill(b, now)
	if need := float64(n) - b.left; need > 0 {
		return time.Duration(need / float64(r.Most) * float64(r.Per))
	}
	b.left -= float64(n)
	return 0
}

// IsFull reports whether the bucket is full at the time now.
func (r Rate) IsFull(b Bucket, now time.Time) bool {
	r.fill(&b, now)
	return b.left >= float64(r.Most)
}

// fill adds to the bucket the events that the rate has allowed since the last fill. If the clock was set back, it
// adds nothing.
func (r Rate) fill(b *Bucket, now time.Time) {
	if since := now.Sub(b.at); since > 0 {
		most := float64(r.Most)
		b.left = min(most, b.left+since.Seconds()/r.Per.Seconds()*most)
	}
	b.at = now
}
