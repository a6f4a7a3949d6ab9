package engine

import (
	"context"
	"errors"
	"time"

	"retort/internal/audit"
	"retort/internal/audit/sqlstore"
)

// startAuditMaintenance starts the background maintenance of the audit log. It completes the chains of entries
// that crashed engines left open, and moves old entries to archives according to the settings. It only works on
// chains to which no other process writes.
func startAuditMaintenance(st *Stores, log *audit.Log) (stop func() error) {
	const first, again = time.Minute, time.Hour
	s := st.config.Settings.Audit
	policy := audit.RetentionPolicy{Dir: st.DataDir().AuditArchives(), Keep: s.Keep, Size: s.Size, Archives: s.Archives}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		st.recoverChains(ctx, func(*audit.Log) {})
		for pause := first; ; pause = again {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			applyRetention(ctx, st, log, policy)
			st.recoverChains(ctx, func(log *audit.Log) { applyRetention(ctx, st, log, policy) })
		}
	}()
	return func() error { cancel(); <-done; return nil }
}

func applyRetention(ctx context.Context, st *Stores, log *audit.Log, policy audit.RetentionPolicy) {
	if _, err := log.ApplyRetention(ctx, policy); err != nil && ctx.Err() == nil {
		st.log.Warn("old entries of the audit log could not be moved to archives", "error", err)
	}
}

// recoverChains opens the chains of log entries that other engines left open, one after the other, and calls the
// function do for each. Opening a chain records the end of its unfinished executions. All chains stay open until the
// last one is done, so that none is opened twice.
func (st *Stores) recoverChains(ctx context.Context, do func(*audit.Log)) {
	const most = 64
	var opened []func() error
	defer func() {
		for _, closeChain := range opened {
			_ = closeChain()
		}
	}()
	for range most {
		log, _, err := st.openAudit(ctx, st.auditOptions(), true, func(closeStore func() error) { opened = append(opened, closeStore) })
		if errors.Is(err, audit.ErrCut) {
			continue // it stays as evidence
		}
		if err != nil {
			return
		}
		opened = append(opened, log.CloseQuietly)
		do(log)
	}
}

// openAuditFiles opens the files of the audit log for reading, including that of this engine. If the settings store
// the log in a database, it returns nil, because the database holds the entries of all engines.
func (st *Stores) openAuditFiles(ctx context.Context) (all []audit.LogStore) {
	files, err := sqlstore.ListFiles(st.DataDir().Audit())
	if err != nil || st.config.Settings.Audit.Store != "" {
		return nil
	}
	for _, file := range files {
		if s, err := sqlstore.OpenFile(ctx, file, sqlstore.Options{ReadOnly: true}); err == nil {
			all = append(all, s)
		}
	}
	return all
}
