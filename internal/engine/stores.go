package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"

	"retort/internal/audit"
	"retort/internal/audit/sqlstore"
	"retort/internal/auth"
	"retort/internal/base/seal"
	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/home"
	"retort/internal/jobs"
	"retort/internal/mcp/client/oauth"
	"retort/internal/privacy/secrets"
	"retort/internal/privacy/vault"
)

// Stores gives access to the stores of a configuration: the audit log, tokens, personal values, workspaces and the job
// queue. An engine uses it, and so do commands that need no engine.
type Stores struct {
	log     *slog.Logger
	secrets *secrets.Masker
	source  Config            // configuration as passed to OpenStores
	config  *config.Config    // configuration as read when the stores were opened
	logins  *oauth.LoginStore // nil if this user has no home directory
}

// OpenStores reads a configuration and returns its Stores, which open their files only when they are used. OpenStores
// itself opens and creates no file of the data directory.
func OpenStores(c Config) (*Stores, error) {
	loaded, err := c.loadConfig()
	if err != nil {
		return nil, err
	}
	return newStores(c, loaded), nil
}

func newStores(c Config, loaded *config.Config) *Stores {
	m := &secrets.Masker{}
	var logins *oauth.LoginStore
	if dir := home.UserDir(c.Keys).Logins(); dir != "" {
		logins = oauth.Open(dir, sync.OnceValues(registerKey(m, "vault.key", masterKeys(c, loaded).Read)))
	}
	return &Stores{log: newMaskedLogger(c.Log, m), secrets: m, source: c, config: loaded, logins: logins}
}

// LoadedConfig returns the configuration that OpenStores has read.
func (st *Stores) LoadedConfig() *config.Config { return st.config }

// MaskText returns a text without the secrets of the configuration.
func (st *Stores) MaskText(text string) string { return st.secrets.MaskString(text) }

// RegisterSecrets registers the secrets of the settings with the masker.
func (st *Stores) RegisterSecrets() { st.registerSettings(st.config.Settings) }

// UserDir returns the directory of the user's keys, or "" if it is not known.
func (st *Stores) UserDir() home.User { return home.UserDir(st.source.Keys) }

// DataDir returns the configured data directory, or "" if no directory is configured.
func (st *Stores) DataDir() home.Dir { return home.Dir(st.config.Home) }

// MasterKeys returns the places where the user's master key can be stored. The master key encrypts the keys of
// personal values and of bodies in the audit log.
func (st *Stores) MasterKeys() vault.KeySource { return masterKeys(st.source, st.config) }

func masterKeys(c Config, loaded *config.Config) vault.KeySource {
	k := loaded.Settings.PII.Key
	return vault.KeySource{Variable: k.Variable, Age: k.Age, Identity: k.Identity, File: home.UserDir(c.Keys).VaultKey()}
}

func (st *Stores) auditKeys() audit.LogKeys {
	return audit.LogKeys{
		Bodies: sync.OnceValues(registerKey(st.secrets, "vault.key", st.MasterKeys().Read)),
		Codes: sync.OnceValues(registerKey(st.secrets, "audit.key", func() ([]byte, error) {
			file := st.UserDir().AuditKey()
			if file == "" {
				return nil, core.Errorf(
					core.KindInternal, "retort.audit", "the audit log has no key: this user has no home directory",
				).WithHint("set HOME, or auditLogging: false in retort.yaml")
			}
			return seal.LoadOrCreateKey(file)
		})),
	}
}

func (st *Stores) auditOptions() audit.Options {
	return audit.Options{
		Keys: st.auditKeys(), User: systemUserName(), Checkpoints: st.Checkpoints(), Home: st.config.Home,
		All: st.config.Settings.Audit.Required == config.AuditAll, Log: st.log,
	}
}

// openAudit opens an audit store to which no other engine writes, and the log that continues its chain of entries.
// If left is true, it opens only a store that another engine left open when it died. before is the start record of
// the engine that wrote to the store last, or nil. If the chain was truncated since its last checkpoint, openAudit
// returns an error and passes the store's Close to hold. Until that Close is called, no other engine can write to
// the store.
func (st *Stores) openAudit(ctx context.Context, o audit.Options, left bool, hold func(close func() error)) (log *audit.Log, before *startRecord, err error) {
	where := st.config.Settings.Audit.Store
	if where == "" {
		where = st.DataDir().Audit() + string(filepath.Separator)
	}
	owner, err := o.Keys.OwnerID()
	if err != nil {
		return nil, nil, err
	}
	o.Renew = func(ctx context.Context) (audit.LogStore, error) {
		return sqlstore.Open(ctx, where, sqlstore.Options{Owner: owner, Fresh: true})
	}
	rows, err := sqlstore.Open(ctx, where, sqlstore.Options{Owner: owner, Left: left})
	if err != nil {
		return nil, nil, err
	}
	if !left {
		before = readLastStart(ctx, rows)
	}
	log, err = audit.Open(ctx, rows, o)
	if errors.Is(err, audit.ErrCut) {
		hold(rows.Close)
		return nil, before, err
	}
	if err != nil {
		return nil, before, errors.Join(err, rows.Close())
	}
	return log, before, nil
}

// AuditReader is the opened audit log of a configuration.
type AuditReader struct {
	audit.LogReader
}

// Close closes all stores.
func (k *AuditReader) Close() {
	for _, s := range k.Stores {
		_ = s.Close()
	}
}

// ReadAudit opens all audit stores of the configuration for reading. If no store exists, the log is empty. Files that
// cannot be opened are left out, and every result read from the log names them.
func (st *Stores) ReadAudit(ctx context.Context, o sqlstore.Options) (*AuditReader, error) {
	k := &AuditReader{LogReader: audit.LogReader{
		Archives: st.DataDir().AuditArchives(), Checkpoints: st.Checkpoints(), Home: st.config.Home,
		Keys: audit.LogKeys{Bodies: st.MasterKeys().Read, Codes: st.readCodes},
	}}
	where, open := []string{st.config.Settings.Audit.Store}, sqlstore.Open
	if where[0] == "" {
		var err error
		open = sqlstore.OpenFile
		if where, err = sqlstore.ListFiles(st.DataDir().Audit()); err != nil {
			return nil, core.Errorf(core.KindInternal, "retort.record", "%w", err)
		}
	}
	for _, url := range where {
		s, err := open(ctx, url, o)
		if err != nil && st.config.Settings.Audit.Store == "" && ctx.Err() == nil {
			k.LeaveOut(err)
			continue
		}
		if err != nil {
			k.Close()
			return nil, err
		}
		k.Stores = append(k.Stores, s)
	}
	return k, nil
}

// readCodes reads the key that authenticates audit log entries. It does not create a missing key, because commands
// that only read must not write files.
func (st *Stores) readCodes() ([]byte, error) {
	file := st.UserDir().AuditKey()
	if file == "" {
		return nil, errors.New("this user has no home directory")
	}
	return seal.ReadKey(file)
}

// Checkpoints returns the folder of the audit log's checkpoints.
func (st *Stores) Checkpoints() string {
	return cmp.Or(st.UserDir().Checkpoints(), st.DataDir().AuditCheckpoints())
}

// RecordEvent records what a command does without an engine, if the settings enable the audit log. The entry goes to
// a chain that no other process writes, and is on disk when RecordEvent returns.
func (st *Stores) RecordEvent(e core.AuditEvent) error {
	if !st.config.Settings.AuditLogging.IsOn() || st.config.Home == "" {
		return nil
	}
	return st.RecordAlways(e)
}

// RecordAlways is like RecordEvent, but records even if the settings disable the audit log. It is used for operations
// on an existing log.
func (st *Stores) RecordAlways(e core.AuditEvent) error {
	var held []func() error
	defer func() {
		for _, release := range held {
			_ = release()
		}
	}()
	log, _, err := st.openAudit(context.Background(), st.auditOptions(), false, func(release func() error) { held = append(held, release) })
	if err != nil {
		return err
	}
	if refused := log.Record(e, true); refused != nil {
		_ = log.Close()
		return refused
	}
	return log.Close()
}

// OpenVault opens the store of personal values in the data directory. Without a data directory the store is in memory.
func (st *Stores) OpenVault() *vault.TokenVault {
	s, dir := st.config.Settings.PII, ""
	if st.config.Home != "" {
		dir = st.DataDir().Vault()
	}
	return vault.Open(dir, registerKey(st.secrets, "vault.key", st.MasterKeys().Read), s.Expiry)
}

// OpenTokens returns the store of access tokens. It fails if this user has no home directory or there is no data
// directory.
func (st *Stores) OpenTokens() (*auth.TokenStore, error) {
	key := st.UserDir().ApprovalsKey()
	if key == "" || st.config.Home == "" {
		return nil, core.Errorf(
			core.KindInvalidArguments, "retort.token",
			"tokens cannot be stored: this user has no home directory, or there is no data directory",
		).WithHint("set HOME, or choose a data directory with --home")
	}
	dir, err := st.DataDir().Abs()
	if err != nil {
		return nil, core.Errorf(core.KindInternal, "retort.token", "%w", err)
	}
	return auth.OpenBook(dir.AccessTokens(), key), nil
}

// registerKey wraps the function read, which returns a key. The wrapped function also registers the key as a secret,
// so that no log shows it.
func registerKey(m *secrets.Masker, name string, read func() ([]byte, error)) func() ([]byte, error) {
	return func() ([]byte, error) {
		key, err := read()
		if err == nil {
			m.Add(secrets.NamedSecret{Label: "retort " + name, Value: string(key)})
		}
		return key, err
	}
}

// OpenQueue opens the job queue of a data directory. Without a configured data directory, the queue lasts only as long
// as the engine.
func (st *Stores) OpenQueue(data home.Dir, record func(core.AuditEvent, bool) *core.Error, lost func(core.JobState) core.Outcome) (*jobs.Queue, error) {
	s := st.config.Settings
	o := jobs.Options{
		Dir: data.Queue(), Key: st.MasterKeys().Read, Slots: s.MaxTasks, Waiting: s.Tasks.Waiting, Keep: s.Tasks.Keep,
		Record: record, Lost: lost, Log: st.log,
	}
	if st.config.Home == "" { // it goes with the engine
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails
		o.Key = func() ([]byte, error) { return key, nil }
		return jobs.Open(o)
	}
	data, err := data.Abs()
	if err != nil {
		return nil, core.Errorf(core.KindInternal, "retort.tasks", "%w", err)
	}
	o.Marks = st.UserDir().JobMarks(data)
	return jobs.Open(o)
}

// asError returns err as a *core.Error, or nil if err is nil.
func asError(err error) error {
	if err == nil {
		return nil
	}
	return core.AsError(err)
}
