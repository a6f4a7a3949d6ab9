package engine

import (
	"context"
	"sync"
	"time"

	"retort/internal/audit"
	"retort/internal/audit/sqlstore"
	"retort/internal/config"
	"retort/internal/core"
)

// Span selects the executions that usage is counted for.
type Span = audit.UsageSpan

// Usage holds the totals from the audit log of a configuration.
type Usage struct {
	audit.Usage
	Bytes int64 `json:"record_bytes"`
	Cost  *Cost `json:"cost,omitempty"` // nil if the settings name no price
	// Warnings names the files of the audit log that could not be read and are not counted.
	Warnings []string `json:"warnings,omitempty"`
}

// Cost is the cost of tokens at the price in the settings.
type Cost struct {
	PerMillion float64 `json:"per_million_tokens"`
	Currency   string  `json:"currency"`
	Returned   float64 `json:"returned"`
	Avoided    float64 `json:"avoided"`
}

// Used adds up the audit log of all engines of a configuration, including running ones. If the audit log is disabled,
// the error is of kind invalid_arguments.
func Used(ctx context.Context, c Config, s Span) (Usage, error) {
	loaded, err := c.load()
	if err != nil {
		return Usage{}, err
	}
	if !loaded.Settings.AuditLogging.Bool() || loaded.Home == "" {
		return Usage{}, core.Errorf(core.KindInvalidArguments, "stats", "nothing is recorded, so there is nothing to count").
			WithHint("auditLogging: true in retort.yaml records executions from then on")
	}
	kept, err := c.record(ctx, sqlstore.Options{ReadOnly: true})
	if err != nil {
		return Usage{}, known(err)
	}
	defer kept.close()
	var u Usage
	if u.Usage, err = kept.Usage(ctx, s, true); err != nil {
		return Usage{}, known(err)
	}
	for _, one := range kept.Stores {
		if n, err := one.Size(ctx); err == nil {
			u.Bytes += n
		}
	}
	for _, err := range kept.Unread() {
		u.Warnings = append(u.Warnings, "left out: "+core.AsError(err).Message)
	}
	u.Cost = costOf(loaded.Settings.Stats.Price, u.Usage)
	return u, nil
}

func costOf(p config.Price, u audit.Usage) *Cost {
	if p.Input == 0 {
		return nil
	}
	return &Cost{p.Input, p.Currency, float64(u.Returned) / 1e6 * p.Input, float64(u.Avoided) / 1e6 * p.Input}
}

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
	span := Span{Session: session, Principal: e.pipeline.Policy.Principal()}
	return e.recalled.of(span.Principal+"\x00"+session, func(ctx context.Context) (*Recorded, error) {
		kept, err := e.parts.recorded(ctx, sqlstore.Options{ReadOnly: true})
		if err != nil {
			return nil, err
		}
		defer kept.close()
		u, err := kept.Usage(ctx, span, false)
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
