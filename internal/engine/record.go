package engine

import (
	"context"
	"errors"
	"time"

	"retort/internal/audit"
	"retort/internal/audit/sqlstore"
	"retort/internal/core"
)

// known returns err as a *core.Error; a nil err stays nil.
func known(err error) error {
	if err == nil {
		return nil
	}
	return core.AsError(err)
}

// retains starts the background maintenance of the audit log. It closes chains that crashed engines left open, and
// moves old entries to archives as the settings say. It touches only chains that no other process writes.
func (p *parts) retains() {
	const first, again = time.Minute, time.Hour
	s := p.config.Settings.Audit
	policy := audit.RetentionPolicy{Dir: p.DataDir().AuditArchives(), Keep: s.Keep, Size: s.Size, Archives: s.Archives}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.left(ctx, func(*audit.Log) {})
		for pause := first; ; pause = again {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			p.retain(ctx, p.audit, policy)
			p.left(ctx, func(log *audit.Log) { p.retain(ctx, log, policy) })
		}
	}()
	p.onClose(func() error { stop(); <-done; return nil })
}

func (p *parts) retain(ctx context.Context, log *audit.Log, policy audit.RetentionPolicy) {
	if _, err := log.ApplyRetention(ctx, policy); err != nil && ctx.Err() == nil {
		p.log.Warn("old entries of the audit log could not be moved to archives", "error", err)
	}
}

// left opens the chains that other engines left open, one after the other, and calls do for each. Opening a chain
// records the end of its unfinished executions. All chains stay open until the last one is done, so that none is
// opened twice.
func (p *parts) left(ctx context.Context, do func(*audit.Log)) {
	const most = 64
	var held []func() error
	defer func() {
		for _, give := range held {
			_ = give()
		}
	}()
	for range most {
		log, _, err := p.openAudit(ctx, p.recordOptions(), true, func(close func() error) { held = append(held, close) })
		if errors.Is(err, audit.ErrCut) {
			continue // it stays as it is
		}
		if err != nil {
			return
		}
		held = append(held, log.CloseQuietly)
		do(log)
	}
}

// others opens the files of a data directory's audit log for reading, including that of this engine. For a database
// it returns nil, because a database holds all chains.
func (p *parts) others(ctx context.Context) (all []audit.LogStore) {
	files, err := sqlstore.ListFiles(p.DataDir().Audit())
	if err != nil || p.config.Settings.Audit.Store != "" {
		return nil // a database has them all
	}
	for _, file := range files {
		if s, err := sqlstore.OpenFile(ctx, file, sqlstore.Options{ReadOnly: true}); err == nil {
			all = append(all, s)
		}
	}
	return all
}
