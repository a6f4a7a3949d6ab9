package egress

import (
	"sync"
	"time"
)

// maxKeys bounds the memory of rates. Full buckets are removed first, which makes no difference to their keys.
const maxKeys = 4096

// rates limits events by key. Each key has a bucket of most tokens, which is full again after the time per.
type rates struct {
	most float64
	per  time.Duration

	mu  sync.Mutex
	by  map[string]bucket
	all bucket // of what has no place in by
}

type bucket struct {
	left float64
	at   time.Time
}

func newRates(most int, per time.Duration) *rates {
	return &rates{most: float64(most), per: per, by: map[string]bucket{}}
}

// take counts one event, or returns how long to wait until one is allowed. A clock that goes back adds no tokens.
func (r *rates) take(key string, now time.Time) (wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b, known := r.by[key]
	if !known {
		if len(r.by) >= maxKeys {
			r.sweep(now)
		}
		b = bucket{r.most, now}
		if len(r.by) >= maxKeys {
			b = r.all
		}
	}
	b = r.filled(b, now)
	if b.left < 1 {
		wait = time.Duration((1 - b.left) / r.most * float64(r.per))
	} else {
		b.left--
	}
	if known || len(r.by) < maxKeys {
		r.by[key] = b
	} else {
		r.all = b
	}
	return wait
}

func (r *rates) filled(b bucket, now time.Time) bucket {
	if since := now.Sub(b.at); since > 0 {
		b.left = min(r.most, b.left+since.Seconds()/r.per.Seconds()*r.most)
	}
	b.at = now
	return b
}

func (r *rates) sweep(now time.Time) {
	for key, b := range r.by {
		if r.filled(b, now).left >= r.most {
			delete(r.by, key)
		}
	}
}
