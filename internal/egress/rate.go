package egress

import (
	"sync"
	"time"

	"retort/internal/base/throttle"
)

// maxRateKeys bounds the number of token buckets in memory. There is one bucket per rate limit key. Full buckets are
// removed first, because a removed bucket counts as full. If no bucket is full, new keys share one bucket.
const maxRateKeys = 4096

// rateLimiter limits how often events may happen for each key. It has a token bucket for each key.
type rateLimiter struct {
	rate throttle.Rate

	mu  sync.Mutex
	by  map[string]throttle.Bucket
	all throttle.Bucket // bucket shared by the keys that have no bucket in by
}

func newRateLimiter(most int, per time.Duration) *rateLimiter {
	return &rateLimiter{rate: throttle.Rate{Most: most, Per: per}, by: map[string]throttle.Bucket{}}
}

// takeToken counts one event of a key. If the limit of the key is reached, it counts nothing and returns how long to
// wait until an event is allowed.
func (r *rateLimiter) takeToken(key string, now time.Time) (wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b, known := r.by[key]
	if !known {
		if len(r.by) >= maxRateKeys {
			r.removeFull(now)
		}
		if len(r.by) >= maxRateKeys {
			return r.rate.Take(&r.all, 1, now)
		}
		b = r.rate.Full(now)
	}
	wait = r.rate.Take(&b, 1, now)
	r.by[key] = b
	return wait
}

func (r *rateLimiter) removeFull(now time.Time) {
	for key, b := range r.by {
		if r.rate.IsFull(b, now) {
			delete(r.by, key)
		}
	}
}
