package retort

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
	RecordEntry   = audit.Entry        // of the record
	RecordFilter  = audit.Filter       // which entries
	RecordQuery   = audit.Query        // asks for a page
	RecordPage    = audit.Page         // of entries
	RecordVerdict = audit.VerifyResult // what became of proving it
)

// Proof says against what the record is held besides itself.
type Proof struct {
	Checkpoints []string            // files with checkpoints that were kept elsewhere
	Key         ed25519.PublicKey   // that they are signed with, for who has not the person's key
	Progress    func(entries int64) // may be nil
}

// QueryRecord gives a page of the record. Engines may write it meanwhile.
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

// RecordedExecution is everything that is recorded of an execution, in the order of time.
func RecordedExecution(ctx context.Context, c Config, id string) (RecordPage, error) {
	const most = 100_000
	page, err := QueryRecord(ctx, c, RecordQuery{Filter: RecordFilter{Executions: []string{id}}, Limit: most})
	slices.Reverse(page.Entries)
	if err == nil && len(page.Entries) == 0 {
		err = core.Errorf(
			core.KindInvalidArguments, "retort.record", "nothing is recorded of the execution %q", id,
		).WithHint("retort audit query lists what is")
	}
	return page, err
}

// VerifyRecord proves the record, as far as that is possible. The error says that it could
// not be read; what is wrong with it is in the verdict.
func VerifyRecord(ctx context.Context, c Config, p Proof) (RecordVerdict, error) {
	r, err := c.record(ctx, sqlstore.Options{ReadOnly: true})
	if err != nil {
		return RecordVerdict{}, err
	}
	defer r.close()
	v, err := r.Verify(ctx, audit.VerifyOptions{Checkpoints: p.Checkpoints, Key: p.Key, Progress: p.Progress})
	return v, known(err)
}

// AcceptClock says that the clock is right, though it is behind the record.
func AcceptClock(c Config) error {
	p, err := c.parts()
	if err != nil {
		return err
	}
	return known(audit.AcceptClock(p.checkpoints(), time.Now()))
}

// known is an error as people see it.
func known(err error) error {
	if err == nil {
		return nil
	}
	return core.AsError(err)
}

// keptRecord is the record of a configuration, opened.
type keptRecord struct {
	audit.Record
}

func (k *keptRecord) close() {
	for _, s := range k.Stores {
		_ = s.Close()
	}
}

// parts are as much of an engine as is needed to look at what is kept.
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

// recorded opens all that is recorded in a home. What has no store yet is an empty record. Of several files, those
// that cannot be opened are left out, which everything that reads says.
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

// readCodes is the key of codes, if there is one: who only looks makes none.
func (p *parts) readCodes() ([]byte, error) {
	file := p.userDir().AuditKey()
	if file == "" {
		return nil, errors.New("this user has no home directory")
	}
	return seal.ReadKey(file)
}

// checkpoints is the folder of checkpoints.
func (p *parts) checkpoints() string {
	return cmp.Or(p.userDir().Checkpoints(), p.dataDir().AuditCheckpoints())
}

// retains closes what engines that have died left open, and moves old entries away, as the
// settings say: of all chains that nobody else writes. It does so in the background.
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
		p.log.Warn("old entries of the record could not be moved to archives", "error", err)
	}
}

// left opens the chains that other engines have left, one after the other. To open one is to
// close the executions in it. None is given back before all were open.
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

// others are the files of a home's record, for reading; that of this engine is among them.
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

// eraseRecord destroys the keys of what is recorded of a person, or of a session, and
// returns how many executions and sessions cannot be read any more.
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

// eraseMentions erases the bodies that mention one of the subjects, by itself or by its token.
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

// recordErasure notes that something was erased.
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

// recordAlone records what a command does without an engine, in a chain that nobody else
// writes, if the settings want a record. The entry is durable.
func (p *parts) recordAlone(e core.AuditEvent) error {
	if !p.config.Settings.AuditLogging.Bool() || p.config.Home == "" {
		return nil
	}
	return p.recordNow(e)
}

// recordNow is recordAlone whether or not the settings want a record: of what is done to an audit log that is there.
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
