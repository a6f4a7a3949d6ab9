package docker

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"retort/internal/core"
)

const (
	// footing is the least memory that a guest has before its program arrives, in bytes.
	footing = 8 << 20
	// relayFooting is the least memory of a relay, in bytes.
	relayFooting = 4 << 20
	// kernelFooting is the most memory that gVisor's kernel and a guest use together, including what a guest may use
	// above its program's limit before it refuses more, in bytes.
	kernelFooting = 64 << 20
	// lookEvery sets the interval at which the daemon is asked for the memory of a running program. A request costs
	// the daemon some milliseconds.
	lookEvery = 250 * time.Millisecond
	// stuck sets how long a program may stay above its memory limit in all samples: its runtime may be about to
	// collect garbage.
	stuck = 3 * lookEvery
	// brief sets the running time below which the memory of a program is not measured.
	brief = 50 * time.Millisecond
	// patience bounds the time that the daemon may take to report the memory; some report once a second. lastPatience
	// applies at the end of a program, where the caller waits for the result.
	patience, lastPatience = 2 * time.Second, 20 * time.Millisecond
)

// Limit implements warmpool.Guest. It raises the container's limits for a program that may use more than others.
// Lower limits are left to the guest, which enforces them exactly.
func (c *container) Limit(l core.Limits) {
	c.began = time.Now()
	if allowance(l) > allowance(c.limits) || l.CPU != c.limits.CPU {
		most := max(c.daemon.room(c.image, l), c.daemon.room(c.image, c.limits))
		update := map[string]any{"Memory": most, "NanoCpus": int64(l.CPU * 1e9)}
		if c.daemon.swap {
			update["MemorySwap"] = most
		}
		// If it cannot be raised, the program's error names the lower limit.
		_ = c.daemon.api.call(context.Background(), http.MethodPost, "/containers/"+c.id+"/update", nil, update, nil)
	}
	go c.watch(l)
}

// watch ends a program that stays above its memory limit. A program whose runtime refuses it more memory may catch
// that and try for ever.
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

// look returns the memory of the container in bytes, or 0 if the daemon does not report it in time. The page cache,
// which the kernel can take back, does not count. In gVisor all memory of programs is shared memory of its kernel.
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
