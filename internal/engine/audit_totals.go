package engine

import (
	"context"
	"sync"
	"time"

	"retort/internal/audit"
	"retort/internal/audit/sqlstore"
	"retort/internal/core"
)

// RecordedTotals counts the executions in the audit log, including those of other engines and earlier days.
type RecordedTotals struct {
	Executions int64            `json:"executions"`
	ByStatus   map[string]int64 `json:"by_status,omitempty"`
	ToolCalls  int64            `json:"tool_calls"`
	Tokens     core.TokenStats  `json:"tokens"`
	Since      string           `json:"since,omitempty"` // first recorded day, in the form 2026-05-04
}

// totalsCache caches totals of the audit log and refreshes them in the background.
type totalsCache struct {
	ctx     context.Context
	cancel  context.CancelFunc
	refresh sync.WaitGroup

	mu     sync.Mutex
	totals map[string]*cachedTotals
	closed bool
}

// cachedTotals holds the totals of one session, or those of all sessions.
type cachedTotals struct {
	value   *RecordedTotals // nil until a refresh has succeeded
	renewed time.Time       // end of the last refresh
	ready   chan struct{}   // closed when the running refresh ends; nil if none is running
}

const (
	maxTotalsAge  = time.Minute            // age from which totals are refreshed
	totalsTimeout = 100 * time.Millisecond // how long a caller waits for a refresh
	maxTotals     = 100                    // cached sessions
)

func newTotalsCache() *totalsCache {
	ctx, cancel := context.WithCancel(context.Background())
	return &totalsCache{ctx: ctx, cancel: cancel, totals: map[string]*cachedTotals{}}
}

// totalsFor returns the totals that are cached under key. If they are older than a minute, it calls sum in the
// background to refresh them, and waits at most 100 ms for the result. It returns nil if no totals are known by then.
func (c *totalsCache) totalsFor(key string, sum func(context.Context) (*RecordedTotals, error)) *RecordedTotals {
	c.mu.Lock()
	one := c.totals[key]
	if one == nil {
		if len(c.totals) >= maxTotals {
			clear(c.totals)
		}
		one = &cachedTotals{}
		c.totals[key] = one
	}
	if one.ready == nil && time.Since(one.renewed) > maxTotalsAge && !c.closed {
		one.ready = make(chan struct{})
		c.refresh.Go(func() { c.renew(one, sum) })
	}
	ready := one.ready
	c.mu.Unlock()
	if ready != nil {
		select {
		case <-ready:
		case <-time.After(totalsTimeout):
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return one.value
}

func (c *totalsCache) renew(one *cachedTotals, sum func(context.Context) (*RecordedTotals, error)) {
	value, err := sum(c.ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		one.value = value
	}
	one.renewed = time.Now()
	close(one.ready)
	one.ready = nil
}

// Close cancels the refreshes and waits for them.
func (c *totalsCache) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.refresh.Wait()
	return nil
}

// recordedTotals returns the totals of the audit log, for one session or, if session is empty, for all. It returns
// nil if nothing is recorded or no totals are known yet.
func (e *Engine) recordedTotals(session string) *RecordedTotals {
	if e.data.audit == nil {
		return nil
	}
	span := audit.UsageSpan{Session: session, Principal: e.pipeline.Policy.Principal()}
	return e.data.totals.totalsFor(span.Principal+"\x00"+session, func(ctx context.Context) (*RecordedTotals, error) {
		kept, err := e.ReadAudit(ctx, sqlstore.Options{ReadOnly: true})
		if err != nil {
			return nil, err
		}
		defer kept.Close()
		u, err := kept.SumUsage(ctx, span, false)
		if err != nil {
			return nil, err
		}
		total := &RecordedTotals{
			Executions: u.Executions, ByStatus: u.ByStatus, ToolCalls: u.Calls,
			Tokens: core.TokenStats{Returned: int(u.Returned), Avoided: int(u.Avoided)},
		}
		if len(u.Days) > 0 {
			total.Since = u.Days[0].Day
		}
		return total, nil
	})
}
