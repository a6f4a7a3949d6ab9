package admin

import (
	"context"

	"retort/internal/audit"
	"retort/internal/audit/sqlstore"
	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/engine"
)

// UsageSpan selects the entries of the audit log from which SumUsage counts usage.
type UsageSpan = audit.UsageSpan

// Usage holds the totals that SumUsage derives from the audit log.
type Usage struct {
	audit.Usage
	Bytes int64 `json:"record_bytes"`
	Cost  *Cost `json:"cost,omitempty"` // nil if the settings name no price
	// Warnings has a message for each file of the audit log that could not be read. The entries in these files are
	// not counted.
	Warnings []string `json:"warnings,omitempty"`
}

// Cost holds what the tokens cost that were returned to the model, and what the avoided tokens would have cost, at
// the price per token in the settings.
type Cost struct {
	PerMillion float64 `json:"per_million_tokens"`
	Currency   string  `json:"currency"`
	Returned   float64 `json:"returned"`
	Avoided    float64 `json:"avoided"`
}

// SumUsage adds up the usage in the audit log of all engines of a configuration, including running ones. If the audit
// log is disabled, the error has the kind invalid_arguments.
func SumUsage(ctx context.Context, c engine.Config, span UsageSpan) (Usage, error) {
	s, err := openStores(c)
	if err != nil {
		return Usage{}, err
	}
	if !s.LoadedConfig().Settings.AuditLogging.IsOn() || s.LoadedConfig().Home == "" {
		return Usage{}, core.Errorf(core.KindInvalidArguments, "stats", "nothing is recorded, so there is nothing to count").
			WithHint("set auditLogging: true in retort.yaml to record executions from now on")
	}
	kept, err := s.ReadAudit(ctx, sqlstore.Options{ReadOnly: true})
	if err != nil {
		return Usage{}, asError(err)
	}
	defer kept.Close()
	var u Usage
	if u.Usage, err = kept.SumUsage(ctx, span, true); err != nil {
		return Usage{}, asError(err)
	}
	for _, one := range kept.Stores {
		if n, err := one.Size(ctx); err == nil {
			u.Bytes += n
		}
	}
	for _, err := range kept.UnreadErrors() {
		u.Warnings = append(u.Warnings, "omitted: "+core.AsError(err).Message)
	}
	u.Cost = costOf(s.LoadedConfig().Settings.Stats.Price, u.Usage)
	return u, nil
}

func costOf(p config.Price, u audit.Usage) *Cost {
	if p.Input == 0 {
		return nil
	}
	return &Cost{p.Input, p.Currency, float64(u.Returned) / 1e6 * p.Input, float64(u.Avoided) / 1e6 * p.Input}
}
