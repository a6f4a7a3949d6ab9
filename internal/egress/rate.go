package egress

import (
	"sync"
	"time"

	"retort/internal/base/throttle"
)

// maxKeys bounds the memory of rates. Full buckets are removed first, which makes no difference to their keys.
const maxKeys = 4096

// rates limits events by key. Each key has a bucket of its own.
type rates struct {
	rate throttle.Rate

	mu  sync.Mutex
	by  map[string]throttle.Bucket
	all throttle.Bucket // of what has no place in by
}

func newRates(most int, per time.Duration) *rates {
	return &rates{rate: throttle.Rate{Most: most, Per: per}, by: map[string]throttle.Bucket{}}
}

// take counts one event, or returns how long to wait until one is allowed.
func (r *rates) take(key string, now time.Time) (wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b, known := r.by[key]
	if !known {
		if len(r.by) >= maxKeys {
			r.sweep(now)
		}
		if len(r.by) >= maxKeys {
			return r.rate.Take(&r.all, 1, now)
		}
		b = r.rate.Full(now)
	}
	wait = r.rate.Take(&b, 1, now)
	r.by[key] = b
	return wait
}

func (r *rates) sweep(now time.Time) {
	for key, b := range r.by {
		if r.rate.IsFull(b, now) {
			delete(r.by, key)
		}
	}
}
