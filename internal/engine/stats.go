package engine

import (
	"context"
	"sync"
	"time"

	"retort/internal/audit"
	"retort/internal/audit/sqlstore"
	"retort/internal/core"
)

// Recorded counts the executions in the audit log, including those of other engines and earlier days.
type Recorded struct {
	Executions int64            `json:"executions"`
	ByStatus   map[string]int64 `json:"by_status,omitempty"`
	ToolCalls  int64            `json:"tool_calls"`
	Tokens     core.TokenStats  `json:"tokens"`
	Since      string           `json:"since,omitempty"` // a day
}

// recalled caches totals of the audit log and refreshes them in the background. The zero value is ready to use.
type recalled struct {
	mu     sync.Mutex
	known  map[string]*recall
	closed bool
	ctx    context.Context
	cancel context.CancelFunc
	all    sync.WaitGroup
}

type recall struct {
	totals *Recorded // nil: not known yet
	at     time.Time
	ready  chan struct{} // closed when the adding under way has ended, or nil
}

const (
	freshly    = time.Minute            // totals count so long
	impatience = 100 * time.Millisecond // with totals that are added up
	maxRecalls = 100                    // sessions whose totals are kept
)

// of returns the totals for key. It starts a refresh if they are older than a minute, and waits at most 100 ms for
// it. It returns nil if no totals are known by then.
func (r *recalled) of(key string, add func(context.Context) (*Recorded, error)) *Recorded {
	r.mu.Lock()
	if r.known == nil {
		r.known = map[string]*recall{}
		r.ctx, r.cancel = context.WithCancel(context.Background())
	}
	one := r.known[key]
	if one == nil {
		if len(r.known) >= maxRecalls {
			clear(r.known)
		}
		one = &recall{}
		r.known[key] = one
	}
	if one.ready == nil && time.Since(one.at) > freshly && !r.closed {
		one.ready = make(chan struct{})
		r.all.Go(func() { r.renew(one, add) })
	}
	ready := one.ready
	r.mu.Unlock()
	if ready != nil {
		select {
		case <-ready:
		case <-time.After(impatience):
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return one.totals
}

func (r *recalled) renew(one *recall, add func(context.Context) (*Recorded, error)) {
	totals, err := add(r.ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		one.totals = totals
	}
	one.at = time.Now()
	close(one.ready)
	one.ready = nil
}

// Close cancels the refreshes and waits for them.
func (r *recalled) Close() error {
	r.mu.Lock()
	r.closed = true
	if r.cancel != nil {
		r.cancel()
	}
	r.mu.Unlock()
	r.all.Wait()
	return nil
}

// history returns the totals of the audit log, for one session or, if session is empty, for all.
func (e *Engine) history(session string) *Recorded {
	if e.audit == nil {
		return nil
	}
	span := audit.UsageSpan{Session: session, Principal: e.pipeline.Policy.Principal()}
	return e.recalled.of(span.Principal+"\x00"+session, func(ctx context.Context) (*Recorded, error) {
		kept, err := e.ReadAudit(ctx, sqlstore.Options{ReadOnly: true})
		if err != nil {
			return nil, err
		}
		defer kept.Close()
		u, err := kept.SumUsage(ctx, span, false)
		if err != nil {
			return nil, err
		}
		total := &Recorded{
			Executions: u.Executions, ByStatus: u.ByStatus, ToolCalls: u.Calls,
			Tokens: core.TokenStats{Returned: int(u.Returned), Avoided: int(u.Avoided)},
		}
		if len(u.Days) > 0 {
			total.Since = u.Days[0].Day
		}
		return total, nil
	})
}
