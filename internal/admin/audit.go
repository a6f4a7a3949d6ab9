package admin

import (
	"context"
	"crypto/ed25519"
	"slices"
	"time"

	"retort/internal/audit"
	"retort/internal/core"
	"retort/internal/engine"
)

// Types for reading the audit log.
type (
	// AuditEntry holds one entry of the audit log.
	AuditEntry   = audit.Entry
	AuditFilter  = audit.Filter // selects entries
	AuditQuery   = audit.Query  // selects a page of entries
	AuditPage    = audit.Page
	AuditVerdict = audit.VerifyResult
)

// VerifyOptions holds evidence from outside the audit log, such as saved checkpoints, with which VerifyAudit
// compares the log.
type VerifyOptions struct {
	Checkpoints []string            // paths of files with saved checkpoints
	Key         ed25519.PublicKey   // verifies the signatures of checkpoints; nil: use this user's key
	Progress    func(entries int64) // is called with the number of verified entries; may be nil
}

// QueryAudit returns a page of the audit log. Engines may write to the log at the same time.
func QueryAudit(ctx context.Context, c engine.Config, q AuditQuery) (AuditPage, error) {
	r, err := openAudit(ctx, c)
	if err != nil {
		return AuditPage{}, err
	}
	defer r.Close()
	page, err := r.Find(ctx, q)
	if len(r.Stores) == 0 && len(r.UnreadErrors()) == 0 && err == nil {
		page.Warnings = append(page.Warnings, "there is no audit log yet")
	}
	return page, asError(err)
}

// QueryExecution returns all entries about an execution, in chronological order.
func QueryExecution(ctx context.Context, c engine.Config, id string) (AuditPage, error) {
	const most = 100_000
	page, err := QueryAudit(ctx, c, AuditQuery{Filter: AuditFilter{Executions: []string{id}}, Limit: most})
	slices.Reverse(page.Entries)
	if err == nil && len(page.Entries) == 0 {
		err = core.Errorf(
			core.KindInvalidArguments, "retort.record", "the audit log has no entries for the execution %q", id,
		).WithHint("run retort audit query to see all recorded executions")
	}
	return page, err
}

// VerifyAudit verifies the audit log. The verdict lists the faults that were found. An error means that the log could
// not be read.
func VerifyAudit(ctx context.Context, c engine.Config, p VerifyOptions) (AuditVerdict, error) {
	r, err := openAudit(ctx, c)
	if err != nil {
		return AuditVerdict{}, err
	}
	defer r.Close()
	v, err := r.Verify(ctx, audit.VerifyOptions{Checkpoints: p.Checkpoints, Key: p.Key, Progress: p.Progress})
	return v, asError(err)
}

// AcceptClock confirms that the system clock is right although the audit log has entries with later times. For an
// hour, engines then accept a clock that is behind the newest entry.
func AcceptClock(c engine.Config) error {
	s, err := openStores(c)
	if err != nil {
		return err
	}
	return asError(audit.AcceptClock(s.Checkpoints(), time.Now()))
}
