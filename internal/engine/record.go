package engine

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"os"
	"slices"
	"time"

	"retort/internal/audit"
	"retort/internal/audit/sqlstore"
	"retort/internal/base/seal"
	"retort/internal/core"
	"retort/internal/privacy/redact"
)

// The nouns of the record.
type (
	// Types for reading the audit log.
	RecordEntry   = audit.Entry        // of the record
	RecordFilter  = audit.Filter       // which entries
	RecordQuery   = audit.Query        // asks for a page
	RecordPage    = audit.Page         // of entries
	RecordVerdict = audit.VerifyResult // what became of proving it
)

// Proof names the external evidence to verify the audit log against.
type Proof struct {
	Checkpoints []string            // files with checkpoints that were kept elsewhere
	Key         ed25519.PublicKey   // that they are signed with, for who has not the person's key
	Progress    func(entries int64) // may be nil
}

// QueryRecord returns a page of the audit log. Engines may write to the log at the same time.
func QueryRecord(ctx context.Context, c Config, q RecordQuery) (RecordPage, error) {
	r, err := c.record(ctx, sqlstore.Options{ReadOnly: true})
	if err != nil {
		return RecordPage{}, err
	}
	defer r.close()
	page, err := r.Find(ctx, q)
	if len(r.Stores) == 0 && len(r.Unread()) == 0 && err == nil {
		page.Warnings = append(page.Warnings, "there is no record yet")
	}
	return page, known(err)
}

// RecordedExecution returns all entries about an execution, in chronological order.
func RecordedExecution(ctx context.Context, c Config, id string) (RecordPage, error) {
	const most = 100_000
	page, err := QueryRecord(ctx, c, RecordQuery{Filter: RecordFilter{Executions: []string{id}}, Limit: most})
	slices.Reverse(page.Entries)
	if err == nil && len(page.Entries) == 0 {
		err = core.Errorf(
			core.KindInvalidArguments, "retort.record", "nothing is recorded of the execution %q", id,
		).WithHint("retort audit query lists all recorded executions")
	}
	return page, err
}

// VerifyRecord verifies the audit log as far as that is possible. Faults of the log are in the verdict. The error
// means that the log could not be read.
func VerifyRecord(ctx context.Context, c Config, p Proof) (RecordVerdict, error) {
	r, err := c.record(ctx, sqlstore.Options{ReadOnly: true})
	if err != nil {
		return RecordVerdict{}, err
	}
	defer r.close()
	v, err := r.Verify(ctx, audit.VerifyOptions{Checkpoints: p.Checkpoints, Key: p.Key, Progress: p.Progress})
	return v, known(err)
}

// AcceptClock confirms that the system clock is right although the audit log has later entries.
func AcceptClock(c Config) error {
	p, err := c.parts()
	if err != nil {
		return err
	}
	return known(audit.AcceptClock(p.checkpoints(), time.Now()))
}

// known returns err as a *core.Error; a nil err stays nil.
func known(err error) error {
	if err == nil {
		return nil
	}
	return core.AsError(err)
}

// keptRecord is the opened audit log of a configuration.
type keptRecord struct {
	audit.Record
}

func (k *keptRecord) close() {
	for _, s := range k.Stores {
		_ = s.Close()
	}
}

// parts returns the parts of an engine that are needed to read stored data, without starting one.
func (c Config) parts() (*parts, error) {
	loaded, err := c.load()
	if err != nil {
		return nil, err
	}
	return &parts{keys: c.Keys, config: loaded, current: newReplaceable(loaded)}, nil
}

func (c Config) record(ctx context.Context, o sqlstore.Options) (*keptRecord, error) {
	p, err := c.parts()
	if err != nil {
		return nil, err
	}
	return p.recorded(ctx, o)
}

// recorded opens all audit stores of a data directory. Without any store the log is empty. Files that cannot be
// opened are left out, and all readers report them.
func (p *parts) recorded(ctx context.Context, o sqlstore.Options) (*keptRecord, error) {
	k := &keptRecord{Record: audit.Record{
		Archives: p.dataDir().AuditArchives(), Checkpoints: p.checkpoints(), Home: p.config.Home,
		Keys: audit.Keys{Bodies: p.masterKeys().Read, Codes: p.readCodes},
	}}
	where, open := []string{p.config.Settings.Audit.Store}, sqlstore.Open
	if where[0] == "" {
		var err error
		open = sqlstore.OpenFile
		if where, err = sqlstore.ListFiles(p.dataDir().Audit()); err != nil {
			return nil, core.Errorf(core.KindInternal, "retort.record", "%w", err)
		}
	}
	for _, url := range where {
		s, err := open(ctx, url, o)
		if err != nil && p.config.Settings.Audit.Store == "" && ctx.Err() == nil {
			k.LeaveOut(err)
			continue
		}
		if err != nil {
			k.close()
			return nil, err
		}
		k.Stores = append(k.Stores, s)
	}
	return k, nil
}

// readCodes reads the MAC key without creating one: commands that only read must not.
func (p *parts) readCodes() ([]byte, error) {
	file := p.userDir().AuditKey()
	if file == "" {
		return nil, errors.New("this user has no home directory")
	}
	return seal.ReadKey(file)
}

// checkpoints returns the folder of checkpoints.
func (p *parts) checkpoints() string {
	return cmp.Or(p.userDir().Checkpoints(), p.dataDir().AuditCheckpoints())
}

// retains starts the background maintenance of the audit log. It closes chains that crashed engines left open, and
// moves old entries to archives as the settings say. It touches only chains that no other process writes.
func (p *parts) retains() {
	const first, again = time.Minute, time.Hour
	s := p.config.Settings.Audit
	policy := audit.Policy{Dir: p.dataDir().AuditArchives(), Keep: s.Keep, Size: s.Size, Archives: s.Archives}
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

func (p *parts) retain(ctx context.Context, log *audit.Log, policy audit.Policy) {
	if _, err := log.Retain(ctx, policy); err != nil && ctx.Err() == nil {
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
		log, err := p.open(ctx, p.recordOptions(), true, func(close func() error) { held = append(held, close) })
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
func (p *parts) others(ctx context.Context) (all []audit.Store) {
	files, err := sqlstore.ListFiles(p.dataDir().Audit())
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

// eraseRecord destroys the keys of all bodies in the audit log about a person or a session. It returns how many
// executions and sessions became unreadable.
func (p *parts) eraseRecord(what Erasure) (int, error) {
	if p.config.Home == "" {
		return 0, nil
	}
	if _, err := os.Stat(p.dataDir().Audit()); err != nil && p.config.Settings.Audit.Store == "" {
		return 0, nil
	}
	ctx := context.Background()
	r, err := p.recorded(ctx, sqlstore.Options{ReadOnly: true, Forgets: true})
	if err != nil || len(r.Stores) == 0 && len(r.Unread()) == 0 {
		return 0, err
	}
	defer r.close()
	r.Erasing = p.recordNow
	var out audit.EraseResult
	if len(what.Subjects) > 0 {
		out, err = p.eraseMentions(ctx, r, what.Subjects)
	} else {
		out, err = r.EraseSession(ctx, what.Principal, sessionOf(what.Session))
	}
	return out.Keys, err
}

// eraseMentions erases the bodies that mention one of the subjects, in plain text or as a token.
func (p *parts) eraseMentions(ctx context.Context, r *keptRecord, subjects []string) (audit.EraseResult, error) {
	vault := p.vault()
	defer vault.Close()
	token, failed := vault.TokensOf(redact.SubjectMatcher(subjects...))
	plain := redact.MentionMatcher(subjects...)
	out, err := r.EraseMentions(ctx, func(principal, session, text string) bool {
		return plain(text) || token(redact.SessionName(principal, session), text)
	}, nil)
	return out, cmp.Or(err, failed)
}

// recordErasure records an erasure and its result in the audit log.
func (p *parts) recordErasure(what Erasure, erased Erased, failed error) error {
	e := core.AuditEvent{
		Kind: core.EventErasure, Status: "ok",
		Facts: map[string]any{"values": erased.Values, "sessions": erased.Sessions, "files": erased.Files, "recorded": erased.Recorded},
	}
	if failed != nil {
		e.Status = "incomplete"
	}
	if len(what.Subjects) > 0 {
		e.Facts["subjects"] = len(what.Subjects)
	} else {
		e.Session, e.Principal = sessionOf(what.Session), what.Principal
	}
	return p.recordAlone(e)
}

// recordAlone records what a command does without an engine, if the settings enable the audit log. The entry goes to
// a chain that no other process writes, and is on disk when recordAlone returns.
func (p *parts) recordAlone(e core.AuditEvent) error {
	if !p.config.Settings.AuditLogging.Bool() || p.config.Home == "" {
		return nil
	}
	return p.recordNow(e)
}

// recordNow is like recordAlone, but records even if the settings disable the audit log. It is used for operations on
// an existing log.
func (p *parts) recordNow(e core.AuditEvent) error {
	log, err := p.open(context.Background(), p.recordOptions(), false, p.onClose)
	if err != nil {
		return err
	}
	if refused := log.Record(e, true); refused != nil {
		_ = log.Close()
		return refused
	}
	return log.Close()
}
