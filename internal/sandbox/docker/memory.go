package docker

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"retort/internal/core"
)

const (
	// baselineMemory is the minimum memory that a guest uses before its program arrives, in bytes.
	baselineMemory = 8 << 20
	// relayBaseline is the minimum memory that a relay uses, in bytes.
	relayBaseline = 4 << 20
	// kernelBaseline is the maximum memory that gVisor's kernel and a guest use together, in bytes. It includes the
	// memory that a guest may use above its program's limit before it refuses to allocate more.
	kernelBaseline = 64 << 20
	// sampleInterval sets how often the daemon is asked for the memory of a running program. Each request costs the
	// daemon some milliseconds.
	sampleInterval = 250 * time.Millisecond
	// overLimitGrace is how long a program may stay above its memory limit before it is ended. It is not ended
	// immediately, because its runtime may be about to collect garbage.
	overLimitGrace = 3 * sampleInterval
	// minSampledRuntime is the shortest running time of a program for which its final memory is measured. For a
	// shorter program, the daemon's response would take too long in comparison.
	minSampledRuntime = 50 * time.Millisecond
	// statsTimeout bounds how long the daemon may take to report memory. Some daemons report only once a second.
	// lastStatsTimeout is the shorter timeout at the end of a program, when the caller waits for the result.
	statsTimeout, lastStatsTimeout = 2 * time.Second, 20 * time.Millisecond
)

// Limit implements warmpool.Guest. It raises the container's limits for a program that may use more than most
// programs. Lower limits are left to the guest, which enforces them exactly.
func (c *guestContainer) Limit(l core.Limits) {
	c.began = time.Now()
	if memoryAllowance(l) > memoryAllowance(c.limits) || l.CPU != c.limits.CPU {
		most := max(c.daemon.memoryRoom(c.image, l), c.daemon.memoryRoom(c.image, c.limits))
		update := map[string]any{"Memory": most, "NanoCpus": int64(l.CPU * 1e9)}
		if c.daemon.swap {
			update["MemorySwap"] = most
		}
		// If it cannot be raised, the program's error names the lower limit.
		_ = c.daemon.api.callJSON(context.Background(), http.MethodPost, "/containers/"+c.id+"/update", nil, update, nil)
	}
	go c.watchMemory(l)
}

// watchMemory ends a program that stays above its memory limit. Such a program might never end by itself, because it
// can catch every out-of-memory error and try again.
func (c *guestContainer) watchMemory(l core.Limits) {
	tick := time.NewTicker(sampleInterval)
	defer tick.Stop()
	most := baselineMemory + l.Memory
	if c.daemon.kernel {
		most = kernelBaseline + l.Memory
	}
	if c.image.network != nil {
		most += relayBaseline
	}
	var above time.Time // since when
	for {
		select {
		case <-c.ended:
			return
		case <-tick.C:
		}
		now := c.currentMemory(statsTimeout)
		switch {
		case c.killed.Load():
			return
		case now == 0: // the daemon was too busy to tell
		case now < most:
			above = time.Time{}
		case above.IsZero():
			above = time.Now()
		}
		if !above.IsZero() && time.Since(above) >= overLimitGrace {
			c.outgrown.Store(true)
			c.Kill()
			return
		}
	}
}

// currentMemory returns the memory of the container in bytes, or 0 if the daemon does not report it in time. It omits
// the page cache, which the kernel can reclaim. Under gVisor it counts shared memory, because the gVisor kernel keeps
// all memory of programs there.
func (c *guestContainer) currentMemory(within time.Duration) int64 {
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
	if c.daemon.api.callJSON(
		ctx, http.MethodGet, "/containers/"+c.id+"/stats", url.Values{"stream": {"0"}, "one-shot": {"1"}}, nil, &said,
	) != nil {
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
	return c.peak.Note(now)
}

// Peak implements warmpool.Guest.
func (c *guestContainer) Peak() int64 {
	if !c.began.IsZero() && time.Since(c.began) > minSampledRuntime && !c.killed.Load() {
		c.currentMemory(lastStatsTimeout)
	}
	return c.peak.Bytes()
}
