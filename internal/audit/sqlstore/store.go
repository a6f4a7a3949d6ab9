// Package sqlstore stores the entries of the audit log in SQLite or PostgreSQL. It is the only package that contains
// SQL. Strings are stored as bytes, so that both databases return them unchanged, including zero bytes and invalid
// UTF-8.
package sqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"retort/internal/audit"
	"retort/internal/core"
	"retort/internal/home"
)

// Options configures how Open opens a store.
type Options struct {
	// ReadOnly opens an existing store without claiming a chain, even while another process writes to it. Head and
	// all writing methods return an error.
	ReadOnly bool
	// Owner is the ID of the audit log's owner. A chain of another owner is not continued.
	Owner string
	// Left makes Open continue a chain that already exists and to which no process is writing, for example after a
	// crash. If there is no such chain, the error wraps ErrNone.
	Left bool
	// Fresh opens a new file with an empty chain. If the file exists, the error wraps ErrTaken.
	Fresh bool
	// Forgets lets a ReadOnly store delete keys.
	Forgets bool
}

// ErrTaken means that another process or user has the file in use, or that the file exists although Options.Fresh is
// set.
var ErrTaken = errors.New("another process is writing to it")

// ErrNone means that Options.Left is set and the store has no chain that can be continued.
var ErrNone = errors.New("there is no chain left open there")

// maxFiles bounds the number of files in one folder. Each engine writes to a file of its own, so it also bounds the
// number of engines that run at the same time.
const maxFiles = 64

// Open opens a store. The address is "postgres://...", "postgresql://...", "sqlite:PATH" or a path. If the path ends
// in a slash or is a folder, Open calls OpenFolder. Errors are of type *core.Error.
func Open(ctx context.Context, url string, o Options) (audit.LogStore, error) {
	if strings.HasPrefix(url, "postgres://") || strings.HasPrefix(url, "postgresql://") {
		return openPostgres(ctx, url, o)
	}
	path := strings.TrimPrefix(url, "sqlite:")
	if path == "" {
		return nil, core.Errorf(core.KindInvalidArguments, "store.open", "the store has no address").
			WithHint("give the path of a file, or postgres://user@host/database")
	}
	info, err := os.Stat(path)
	if os.IsPathSeparator(path[len(path)-1]) || err == nil && info.IsDir() {
		return OpenFolder(ctx, path, o)
	}
	return openSQLite(ctx, path, o, lockTimeout)
}

// OpenFile opens one of the files whose paths ListFiles returns.
func OpenFile(ctx context.Context, path string, o Options) (audit.LogStore, error) {
	return openSQLite(ctx, path, o, lockTimeout)
}

// OpenFolder opens the first file in a folder that no other process is writing to. If all files are in use, it creates
// a new file. Engines that share a folder therefore each write to their own file.
func OpenFolder(ctx context.Context, dir string, o Options) (audit.LogStore, error) {
	if o.ReadOnly {
		return nil, core.Errorf(core.KindInvalidArguments, "store.open", "%s is a folder; its files are read one by one", dir)
	}
	if o.Left {
		return openLeft(ctx, dir, o)
	}
	for n := range maxFiles {
		if _, err := os.Lstat(filepath.Join(dir, home.AuditFileName(n+1))); o.Fresh && err == nil {
			continue
		}
		s, err := openSQLite(ctx, filepath.Join(dir, home.AuditFileName(n+1)), o, 0)
		if !errors.Is(err, ErrTaken) {
			return s, err
		}
	}
	return nil, core.Errorf(core.KindLimit, "store.open", "%d processes are already writing audit logs in %s: %w", maxFiles, dir, ErrTaken).
		WithHint("stop some of them, or give each user a separate data directory with --home")
}

// openLeft opens the first file in a folder that contains a chain and to which no process writes.
func openLeft(ctx context.Context, dir string, o Options) (audit.LogStore, error) {
	files, err := ListFiles(dir)
	if err != nil {
		return nil, core.Errorf(core.KindInternal, "store.open", "%w", err)
	}
	var broken error
	for _, path := range files {
		s, err := openSQLite(ctx, path, o, 0)
		if err == nil {
			return s, nil
		}
		if !errors.Is(err, ErrTaken) && !errors.Is(err, ErrNone) {
			broken = err // a file that is damaged keeps nobody from the others
		}
	}
	if broken != nil {
		return nil, broken
	}
	return nil, core.Errorf(core.KindInvalidArguments, "store.open", "the audit log %s: %w", dir, ErrNone)
}

// ListFiles returns the paths of the files that OpenFolder has created in a folder, ordered by number. If the folder
// does not exist, it returns none.
func ListFiles(dir string) ([]string, error) {
	all, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	there := map[string]bool{}
	for _, e := range all {
		there[e.Name()] = true
	}
	var files []string
	for n := range maxFiles {
		if name := home.AuditFileName(n + 1); there[name] {
			files = append(files, filepath.Join(dir, name))
		}
	}
	return files, nil
}

// databaseEngine contains the operations that differ between SQLite and PostgreSQL.
type databaseEngine interface {
	// bindParameters converts a statement, in which parameters are written as ?, to the syntax of the database.
	bindParameters(statement string) string
	// selectStatement returns SQL that selects the newest entries that meet conditions, newest first. It uses the
	// index for the column lead, whose value is a parameter. The last parameter is the maximum number of entries.
	selectStatement(columns, lead, conditions string) string
	// countColumn returns SQL that counts the entries with a given value in a column, up to a maximum. The value and
	// the maximum are the parameters of the statement.
	countColumn(column string) string
	// countTable returns the table or index from which usage is added up.
	countTable() string
	// unindexedColumn returns an SQL expression for a column in a condition that must not use the column's index,
	// because the statement uses the index of another condition.
	unindexedColumn(column string) string
	// sampleTable returns a table expression for a random sample of entries.
	sampleTable(ctx context.Context, db *sql.DB) (table string, args []any, err error)
	// beforeCondition returns the SQL condition that an entry is older than p.
	beforeCondition(p audit.RowPosition) (condition string, args []any)
	// chainCondition restricts a query to one chain. maybe is false if the store cannot contain the chain. If the
	// store may contain other chains, too, condition is an SQL condition that selects the chain.
	chainCondition(chain int64) (condition string, args []any, maybe bool)
	// claimChain returns a connection for writing a chain, and the number of that chain. If no chain can be
	// continued, it creates one. The error may wrap ErrTaken or ErrNone.
	claimChain(ctx context.Context, db *sql.DB) (*sql.Conn, int64, error)
	// isAlive reports whether the connection for writing is still open. It must find out before a statement is sent,
	// because a statement sent over a broken connection might be executed or not.
	isAlive(c *sql.Conn) bool
	// releaseConnection releases what claimChain has acquired, before the connection is closed. If failed is set, it
	// must not use the connection.
	releaseConnection(c *sql.Conn, failed bool)
	// isReusable reports whether the connection can still be used after an error of runTransaction.
	isReusable(c *sql.Conn, err error) bool
	// lostFileError returns the reason why the store's file has become unreliable, or nil if it has not. err is the
	// error of a write and may be nil. The returned error wraps audit.ErrUnsynced or audit.ErrGone.
	lostFileError(err error) error
	// runTransaction executes all statements durably, or none of them.
	runTransaction(ctx context.Context, c *sql.Conn, all []statementChange) error
	// onWritten is called after each batch that was written. The caller holds the lock for writing.
	onWritten(ctx context.Context, rows int)
	// forgetKeys deletes keys so that they cannot be recovered from the store's files. It returns their number.
	forgetKeys(ctx context.Context, c *sql.Conn, ids []string) (int, error)
	// reclaimSpace returns the space of deleted rows to the file system.
	reclaimSpace(ctx context.Context, c *sql.Conn) error
	// checkIndexes returns one sentence for each fault that it finds in the indexes or in the file.
	checkIndexes(ctx context.Context, c *sql.Conn) ([]string, error)
	// compareIndexes returns an error if it finds that the indexes do not match the entries. For large files it
	// makes only a partial check.
	compareIndexes(ctx context.Context, c *sql.Conn) error
	// snapshotBegin returns the SQL that begins a transaction with an unchanging view of the database.
	snapshotBegin() string
	storedBytes(ctx context.Context, db *sql.DB) (int64, error)
	// explainError wraps an error of the database in a *core.Error with a hint.
	explainError(op string, err error) error
	closeEngine()
}

// sqlStore implements audit.LogStore with SQLite or PostgreSQL.
type sqlStore struct {
	databaseEngine
	db    *sql.DB
	names nameCache

	readOnly  bool // read-only
	mayForget bool // read-only, except that keys may be deleted

	mu    sync.Mutex // is held while writing
	w     *sql.Conn  // connection for writing; nil before the first write and after an error
	chain int64
	gone  error // why nothing can be written any more
}

var _ audit.LogStore = (*sqlStore)(nil)

func (s *sqlStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.w != nil {
		s.releaseConnection(s.w, false)
		_ = s.w.Close()
		s.w = nil
	}
	err := s.db.Close()
	s.databaseEngine.closeEngine()
	return err
}

func (s *sqlStore) Size(ctx context.Context) (int64, error) {
	n, err := s.storedBytes(ctx, s.db)
	return n, s.wrapError("store.size", err)
}

// wrapError converts err to a *core.Error. It returns nil for nil.
func (s *sqlStore) wrapError(op string, err error) error {
	var known *core.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return s.explainError(op, err)
}

// newChain returns a random chain number of 63 bits, because databases store signed integers.
func newChain() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return int64(binary.BigEndian.Uint64(b[:]) >> 1)
}

// chainName returns the name of a chain: its number as 16 hexadecimal digits.
func chainName(chain int64) string { return fmt.Sprintf("%016x", uint64(chain)) }

// chainOf parses the name of a chain. ok is false if no chain can have this name.
func chainOf(name string) (chain int64, ok bool) {
	n, err := strconv.ParseInt(name, 16, 64)
	return n, err == nil && n >= 0 && chainName(n) == name
}
