package docker

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"retort/internal/core"
)

const (
	// footing is what a guest has of memory before its program comes, at least.
	footing = 8 << 20
	// relayFooting is what a relay has, at least.
	relayFooting = 4 << 20
	// kernelFooting is what gVisor's kernel and a guest have together, at most, and what a guest
	// may have above its program's memory before it refuses more.
	kernelFooting = 64 << 20
	// lookEvery is how often the daemon is asked what a program takes that runs for
	// longer than that. To ask costs the daemon some milliseconds.
	lookEvery = 250 * time.Millisecond
	// stuck is how long a program may have more than its memory, look for look: its runtime
	// may be about to collect garbage.
	stuck = 3 * lookEvery
	// brief is how long a program runs of which nobody asks what it took.
	brief = 50 * time.Millisecond
	// patience is how long the daemon may take to tell: some answer once a second. At the
	// end of a program, who waits for what it has made does not wait for that.
	patience, lastPatience = 2 * time.Second, 20 * time.Millisecond
)

// Limit implements warmpool.Guest: a program that may use more than others gets it. Less
// is left to the guest, which bounds its program exactly.
func (c *container) Limit(l core.Limits) {
	c.began = time.Now()
	if allowance(l) > allowance(c.limits) || l.CPU != c.limits.CPU {
		most := max(c.daemon.room(c.image, l), c.daemon.room(c.image, c.limits))
		update := map[string]any{"Memory": most, "NanoCpus": int64(l.CPU * 1e9)}
		if c.daemon.swap {
			update["MemorySwap"] = most
		}
		// If it cannot be raised, the program is told of the limit that there is.
		_ = c.daemon.api.call(context.Background(), http.MethodPost, "/containers/"+c.id+"/update", nil, update, nil)
	}
	go c.watch(l)
}

// watch ends a program that stays above its memory. One whose runtime refuses it more may
// catch that, and try for ever.
func (c *container) watch(l core.Limits) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	most := footing + l.Memory
	if c.daemon.kernel {
		most = kernelFooting + l.Memory
	}
	if c.image.network != nil {
		most += relayFooting
	}
	var above time.Time // since when
	for {
		select {
		case <-c.ended:
			return
		case <-tick.C:
		}
		now := c.look(patience)
		switch {
		case c.killed.Load():
			return
		case now == 0: // the daemon was too busy to tell
		case now < most:
			above = time.Time{}
		case above.IsZero():
			above = time.Now()
		}
		if !above.IsZero() && time.Since(above) >= stuck {
			c.outgrown.Store(true)
			c.Kill()
			return
		}
	}
}

// look asks what the container takes, in bytes; 0 if that is not told in time. What it has of
// files, which the kernel takes back when it needs room, does not count. All that programs have in
// gVisor is shared memory of its kernel's.
func (c *container) look(within time.Duration) int64 {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	var said struct {
		Memory struct {
			Usage int64
			Stats struct {
				Anon, RSS int64
				Active    int64 `json:"active_anon"`
				Inactive  int64 `json:"inactive_anon"`
			}
		} `json:"memory_stats"`
	}
	if c.daemon.api.call(ctx, http.MethodGet, "/containers/"+c.id+"/stats", url.Values{"stream": {"0"}, "one-shot": {"1"}}, nil, &said) != nil {
		return 0
	}
	stats := said.Memory.Stats
	now := max(stats.Anon, stats.RSS)
	if c.daemon.kernel {
		now = stats.Active + stats.Inactive
	}
	if now == 0 { // where runsc is asked, it does not tell them apart
		now = said.Memory.Usage
	}
	for {
		old := c.peak.Load()
		if now <= old || c.peak.CompareAndSwap(old, now) {
			return now
		}
	}
}

// Peak implements warmpool.Guest.
func (c *container) Peak() int64 {
	if !c.began.IsZero() && time.Since(c.began) > brief && !c.killed.Load() {
		c.look(lastPatience)
	}
	return c.peak.Load()
}
