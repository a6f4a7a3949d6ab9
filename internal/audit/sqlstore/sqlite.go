package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	sqlite3 "modernc.org/sqlite"

	"retort/internal/audit"
	"retort/internal/base/seal"
	"retort/internal/core"
)

const (
	// lockTimeout limits the wait for the lock of another process that is about to end.
	lockTimeout = 300 * time.Millisecond
	// applicationID is the SQLite application id that marks a file as an audit log of Retort ("Rtrt").
	applicationID = 0x52747274
	maxReadConns  = 4
	notDatabase   = 26 // result code SQLITE_NOTADB
)

// sqliteEngine implements databaseEngine with one SQLite file. Committed entries are in the file or in its
// write-ahead log PATH-wal, from which SQLite moves them into the file from time to time.
type sqliteEngine struct {
	path  string
	owner string
	left  bool
	fresh bool
	file  fs.FileInfo // identity of the file when it was opened for writing
	// sidecars has the identities of the write-ahead log and of its index when the connection for writing was
	// opened.
	sidecars    [2]fs.FileInfo
	chain       int64 // 0: not read yet
	unlock      func()
	prepared    map[string]*sql.Stmt // prepared statements of the connection for writing
	preparedFor *sql.Conn
}

func openSQLite(ctx context.Context, path string, o Options, lockTimeout time.Duration) (_ audit.LogStore, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, core.Errorf(core.KindInvalidArguments, "store.open", "%w", err)
	}
	e := &sqliteEngine{path: path, owner: o.Owner, left: o.Left, fresh: o.Fresh, unlock: func() {}}
	s := &sqlStore{databaseEngine: e, readOnly: o.ReadOnly, mayForget: o.Forgets}
	defer func() {
		if err != nil {
			err = s.wrapError("store.open", err)
			_ = s.Close()
		}
	}()
	address := e.fileURI("mode", "ro")
	if o.ReadOnly && o.Forgets {
		address = e.fileURI("mode", "rw", "_pragma", "synchronous(FULL)", "_pragma", "secure_delete(ON)", "_pragma", "trusted_schema(OFF)")
	}
	if s.db, err = sql.Open("sqlite", address); err != nil {
		return nil, err
	}
	if o.ReadOnly {
		return s, e.openForReading(ctx, s)
	}
	return s, e.openForWriting(ctx, s, lockTimeout)
}

// fileURI returns the file's URI with parameters, which are given as pairs of names and values.
func (e *sqliteEngine) fileURI(parameters ...string) string {
	q := url.Values{"_busy_timeout": {"10000"}}
	for i := 0; i < len(parameters); i += 2 {
		q.Add(parameters[i], parameters[i+1])
	}
	path := filepath.ToSlash(e.path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/...
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String()
}

func (e *sqliteEngine) openForWriting(ctx context.Context, s *sqlStore, lockTimeout time.Duration) (err error) {
	if err := e.checkRegular(); err != nil {
		return err
	}
	if err := e.lockFile(lockTimeout); err != nil {
		return err
	}
	if err := e.createFile(ctx); err != nil {
		return err
	}
	_ = s.db.Close()
	s.db, err = sql.Open("sqlite", e.fileURI("mode", "rw", "_pragma", "journal_mode(WAL)", "_pragma", "synchronous(FULL)", "_pragma", "secure_delete(ON)",
		"_pragma", "journal_size_limit(33554432)", "_pragma", "wal_autocheckpoint(2000)", "_pragma", "cache_size(-16384)", "_pragma", "trusted_schema(OFF)"))
	if err != nil {
		return err
	}
	s.db.SetMaxOpenConns(1 + maxReadConns)
	s.db.SetMaxIdleConns(1 + maxReadConns)
	if e.file, err = os.Lstat(e.path); err != nil {
		return err
	}
	if err := e.migrateSchema(ctx, s.db); err != nil {
		return err
	}
	if err := e.checkSchema(ctx, s.db); err != nil {
		return err
	}
	if err := e.moveLog(ctx, s.db); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ensureWriter(ctx)
}

// lockFile locks the file, so that no other process writes to it. If another process holds the lock, the error names
// it.
func (e *sqliteEngine) lockFile(lockTimeout time.Duration) error {
	name := e.path + ".lock"
	unlock, err := seal.Lock(name, lockTimeout)
	switch {
	case err == nil:
		e.unlock = unlock
		return writeLockHolder(name)
	case errors.Is(err, fs.ErrPermission) || isReadOnly(err):
		return core.Errorf(core.KindInvalidArguments, "store.open", "the audit log %s cannot be written: %w", e.path, err).
			WithHint("choose a data directory that this user can write to, with --home")
	}
	if !wouldBlock(err) {
		return err
	}
	pid, _ := seal.ReadFile(name, 32)
	return core.Errorf(
		core.KindInvalidArguments, "store.open", "another Retort (process %s) is writing to the audit log %s: %w",
		strings.TrimSpace(string(pid)), e.path, ErrTaken,
	).
		WithHint("stop that process, or give each its own file; reading, as retort audit does, works at any time")
}

// writeLockHolder writes this process's ID into a lock file, so that errors of other processes can name it.
func writeLockHolder(name string) error {
	f, err := seal.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(f, os.Getpid()) // the disk may be full
	return f.Close()
}

// checkRegular returns an error unless all files that SQLite opens are regular files. Opening a named pipe, for
// example, would block.
func (e *sqliteEngine) checkRegular() error {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal", ".lock"} {
		if err := seal.CheckRegular(e.path + suffix); err != nil {
			return core.Errorf(core.KindInvalidArguments, "store.open", "the audit log %s: %w", e.path, err).WithHint("move it away")
		}
	}
	return nil
}

func (e *sqliteEngine) migrateSchema(ctx context.Context, db *sql.DB) error {
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	all := migrationSteps("sqlite")
	return inTransaction(ctx, c, "BEGIN IMMEDIATE", func() error { return runMigrations(ctx, c, e.path, all) })
}

func (e *sqliteEngine) claimChain(ctx context.Context, db *sql.DB) (_ *sql.Conn, chain int64, err error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer func() {
		if err != nil {
			_ = c.Close()
		}
	}()
	owner := ""
	err = c.QueryRowContext(ctx, "SELECT name, owner FROM chains").Scan(&chain, &owner)
	switch {
	case err == nil && owner != e.owner:
		err = core.Errorf(
			core.KindInvalidArguments, "store.open", "the audit log %s was written with another user's key: %w",
			e.path, ErrTaken,
		)
	case errors.Is(err, sql.ErrNoRows) && e.left:
		err = core.Errorf(core.KindInvalidArguments, "store.open", "the audit log %s: %w", e.path, ErrNone)
	case errors.Is(err, sql.ErrNoRows):
		chain = newChain()
		_, err = c.ExecContext(ctx, "INSERT INTO chains (name, seq, base, owner) VALUES (?, 0, 0, ?)", chain, []byte(e.owner))
	}
	e.chain = chain
	if err == nil {
		err = e.noteFiles()
	}
	return c, chain, err
}

func (e *sqliteEngine) isAlive(*sql.Conn) bool { return true }

// releaseConnection closes the prepared statements, because the connection cannot be closed while they are open.
func (e *sqliteEngine) releaseConnection(*sql.Conn, bool) {
	for _, p := range e.prepared {
		_ = p.Close()
	}
	e.preparedFor, e.prepared = nil, nil
}

// isReusable reports whether the connection can still be used after the error err. That is so only if err comes from
// Retort's own checks. After any other error, such as that of a disk, the connection's view of the file is
// unreliable.
func (e *sqliteEngine) isReusable(_ *sql.Conn, err error) bool {
	var ours *core.Error
	return errors.As(err, &ours)
}

func (e *sqliteEngine) runTransaction(ctx context.Context, c *sql.Conn, all []statementChange) error {
	if e.preparedFor != c {
		e.preparedFor, e.prepared = c, map[string]*sql.Stmt{}
	}
	err := e.applyChange(ctx, c, statementChange{statement: "BEGIN IMMEDIATE"})
	if err != nil {
		return err
	}
	for _, ch := range append(all, statementChange{statement: "COMMIT"}) {
		if err = e.applyChange(ctx, c, ch); err != nil {
			_, _ = c.ExecContext(ctx, "ROLLBACK")
			return err
		}
	}
	return nil
}

func (e *sqliteEngine) applyChange(ctx context.Context, c *sql.Conn, ch statementChange) (err error) {
	p := e.prepared[ch.statement]
	if p == nil {
		if p, err = c.PrepareContext(ctx, ch.statement); err != nil {
			return err
		}
		e.prepared[ch.statement] = p
	}
	r, err := p.ExecContext(ctx, ch.args...)
	if err != nil || ch.missed == nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n != 1 {
		return ch.missed
	}
	return nil
}

func (e *sqliteEngine) onWritten(context.Context, int) {}

func (e *sqliteEngine) bindParameters(statement string) string { return statement }

func (e *sqliteEngine) selectStatement(columns, lead, conditions string) string {
	index, equal := "by_at", "1 = 1"
	if lead != "" {
		index, equal = "by_"+lead, indexCondition(lead, "x''")
	}
	return "SELECT " + columns + " FROM entries WHERE seq IN (SELECT seq FROM entries INDEXED BY " + index + " WHERE " + equal + conditions +
		" ORDER BY at DESC, seq DESC LIMIT ?) ORDER BY at DESC, seq DESC"
}

func (e *sqliteEngine) countColumn(column string) string {
	return "SELECT count(*) FROM (SELECT 1 FROM entries INDEXED BY by_" + column + " WHERE " + indexCondition(column, "x''") + " LIMIT ?)"
}

// countTable returns the index by_kind, because it contains all columns that are needed to add up usage.
func (e *sqliteEngine) countTable() string { return "entries INDEXED BY by_kind" }

func (e *sqliteEngine) unindexedColumn(column string) string { return column }

func (e *sqliteEngine) sampleTable(ctx context.Context, db *sql.DB) (table string, args []any, err error) {
	var base, seq int64
	if err := db.QueryRowContext(ctx, "SELECT base, seq FROM chains").Scan(&base, &seq); err != nil {
		return "", nil, err
	}
	const some = 500
	for range some {
		args = append(args, base+1+rand.Int64N(max(1, seq-base)))
	}
	return "entries WHERE seq IN (?" + strings.Repeat(", ?", some-1) + ")", args, nil
}

func (e *sqliteEngine) beforeCondition(p audit.RowPosition) (condition string, args []any) {
	own := chainName(e.chain)
	switch {
	case own < p.Chain:
		return "at <= ?", []any{p.At}
	case own > p.Chain:
		return "at < ?", []any{p.At}
	}
	return "(at, seq) < (?, ?)", []any{p.At, p.Seq}
}

func (e *sqliteEngine) chainCondition(chain int64) (condition string, args []any, maybe bool) {
	return "", nil, chain == e.chain
}

// forgetKeys overwrites keys with zeros. Then it moves the write-ahead log, which contains copies of them, into the
// file and empties the log.
func (e *sqliteEngine) forgetKeys(ctx context.Context, c *sql.Conn, ids []string) (n int, err error) {
	err = inTransaction(ctx, c, "BEGIN IMMEDIATE", func() error {
		return eachPart(ids, func(list string, args []any) error {
			r, err := c.ExecContext(ctx, "UPDATE keys SET live = 0, wrapped = zeroblob(length(wrapped)) WHERE live = 1 AND id IN "+list, args...)
			if err != nil {
				return err
			}
			some, err := r.RowsAffected()
			n += int(some)
			return err
		})
	})
	if err != nil {
		return 0, err
	}
	var busy, log, moved int
	if err = c.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &moved); err == nil && busy != 0 {
		err = core.Errorf(
			core.KindInternal, "store.forget",
			"the keys are deleted, but another process reads %s, so its write-ahead log still contains them", e.path,
		).
			WithHint("stop the process that reads the audit log and erase again")
	}
	return n, err
}

func (e *sqliteEngine) reclaimSpace(ctx context.Context, c *sql.Conn) error {
	rows, err := c.QueryContext(ctx, "PRAGMA incremental_vacuum")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() { // each step gives back a page
	}
	return rows.Err()
}

func (e *sqliteEngine) storedBytes(context.Context, *sql.DB) (n int64, err error) {
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(e.path + suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		n += info.Size()
	}
	return n, nil
}

// openForReading opens an existing file for reading. It also works in a folder in which this process may not write.
func (e *sqliteEngine) openForReading(ctx context.Context, s *sqlStore) error {
	info, err := os.Lstat(e.path)
	if errors.Is(err, fs.ErrNotExist) {
		return core.Errorf(core.KindInvalidArguments, "store.open", "there is no audit log at %s", e.path).
			WithHint("it is created when retort first runs with audit logging; --home sets the directory")
	}
	if err != nil {
		return err
	}
	if err := e.checkRegular(); err != nil {
		return err
	}
	if info.Size() == 0 {
		return core.Errorf(core.KindInvalidArguments, "store.open", "the audit log %s is empty: %w", e.path, audit.ErrEmpty).
			WithHint("a full disk may have left it empty; remove it, or start an engine, which reuses it")
	}
	if err = e.checkAndOpen(ctx, s.db); err == nil {
		return nil
	}
	// Beside a file SQLite needs one for what readers and a writer tell each other, and here it
	// cannot make one: then nobody can write either, and if nothing is left in a log, the
	// file itself is all.
	if info, none := os.Stat(e.path + "-wal"); none == nil && info.Size() > 0 || !cannotOpen(err) && !noIndex(err) {
		return err
	}
	_ = s.db.Close()
	if s.db, err = sql.Open("sqlite", e.fileURI("mode", "ro", "immutable", "1")); err != nil {
		return err
	}
	return e.checkAndOpen(ctx, s.db)
}

// checkAndOpen checks that the file is an audit log with the current schema, and reads the name of its chain.
func (e *sqliteEngine) checkAndOpen(ctx context.Context, db *sql.DB) error {
	db.SetMaxOpenConns(maxReadConns)
	db.SetMaxIdleConns(maxReadConns)
	var mark int
	if err := db.QueryRowContext(
		ctx, "PRAGMA application_id",
	).Scan(&mark); sqliteCode(err) == notDatabase || err == nil && mark != applicationID {
		return e.foreignFileError()
	}
	if err := checkSchema(ctx, db, e.path, "sqlite"); err != nil {
		return err
	}
	if err := e.checkSchema(ctx, db); err != nil {
		return err
	}
	err := db.QueryRowContext(ctx, "SELECT name FROM chains").Scan(&e.chain)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil // nobody has written yet
	}
	return err
}

// sqliteCode returns the primary SQLite result code of an error, or 0 if the error is not from SQLite.
func sqliteCode(err error) int {
	var known *sqlite3.Error
	if !errors.As(err, &known) {
		return 0
	}
	return known.Code() & 0xff
}

// cannotOpen reports whether SQLite was not permitted to open or write the file: SQLITE_PERM, SQLITE_READONLY or
// SQLITE_CANTOPEN.
func cannotOpen(err error) bool { return slices.Contains([]int{3, 8, 14}, sqliteCode(err)) }

// noIndex reports whether SQLite failed to create the index of the write-ahead log: SQLITE_IOERR_SHMOPEN, SHMSIZE,
// SHMLOCK or SHMMAP.
func noIndex(err error) bool {
	var known *sqlite3.Error
	return errors.As(err, &known) && sqliteCode(err) == 10 && slices.Contains([]int{18, 19, 20, 21}, known.Code()>>8)
}

func (e *sqliteEngine) closeEngine() { e.unlock() }

func (e *sqliteEngine) explainError(op string, err error) error {
	said := core.Errorf(core.KindInternal, op, "the audit log %s: %w", e.path, err)
	if cannotOpen(err) {
		return said.WithHint(
			"it cannot be written: check the permissions of the file and its folder, and whether the disk was mounted read-only",
		)
	}
	switch sqliteCode(err) {
	case 13: // SQLITE_FULL
		return said.WithHint("its disk is full: make room; nothing runs that cannot be recorded")
	case 10: // SQLITE_IOERR
		return said.WithHint("its disk has errors or is full; nothing runs that cannot be recorded")
	case 11, notDatabase: // SQLITE_CORRUPT
		return said.WithHint(
			"it is damaged: move it away together with its -wal file, to keep it for retort audit verify; Retort then creates a new one",
		)
	case 5, 6: // SQLITE_BUSY, SQLITE_LOCKED
		return said.WithHint("another program has locked it: stop that program")
	}
	return said
}
