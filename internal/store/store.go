// Package store keeps the rows of the record in SQLite or PostgreSQL. It is the only
// package with SQL. Strings are kept as bytes, so both give back whatever they were given,
// zero bytes and broken UTF-8 too.
package store

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
	"retort/internal/run"
)

// Options says how a store is opened.
type Options struct {
	// ReadOnly opens what is there, also while another process writes it, and without a
	// chain: Head and what writes give an error.
	ReadOnly bool
	// Owner is whose chain is written: nobody goes on with the chain of somebody else.
	Owner string
	// Left opens a chain that is there already, and nobody writes; ErrNone if there is none.
	Left bool
	// Fresh opens a new file with an empty chain; an error wraps ErrTaken if the file is there already.
	Fresh bool
	// Forgets lets a store that is ReadOnly forget keys nevertheless.
	Forgets bool
}

// ErrTaken is the cause of the error if another process writes the same file.
var ErrTaken = errors.New("another process writes it")

// ErrNone is the cause of the error if there is no chain that was left.
var ErrNone = errors.New("no chain was left there")

// maxFiles is how many engines can share a folder.
const maxFiles = 64

// Open opens a store: "postgres://..." (or "postgresql://"), "sqlite:PATH" or a path. A path
// that ends in a slash, or is a folder, is OpenFolder. Errors are *run.Error.
func Open(ctx context.Context, url string, o Options) (audit.Store, error) {
	if strings.HasPrefix(url, "postgres://") || strings.HasPrefix(url, "postgresql://") {
		return openPostgres(ctx, url, o)
	}
	path := strings.TrimPrefix(url, "sqlite:")
	if path == "" {
		return nil, run.Errorf(run.KindInvalidArguments, "store.open", "the store has no address").
			WithHint("give the path of a file, or postgres://user@host/database")
	}
	info, err := os.Stat(path)
	if os.IsPathSeparator(path[len(path)-1]) || err == nil && info.IsDir() {
		return OpenFolder(ctx, path, o)
	}
	return openSQLite(ctx, path, o, patience)
}

// OpenFile opens a file that Files has listed, whatever it is.
func OpenFile(ctx context.Context, path string, o Options) (audit.Store, error) {
	return openSQLite(ctx, path, o, patience)
}

// OpenFolder opens the first file of a folder that no other process writes, or a new one:
// each engine of several that share a folder writes a file of its own.
func OpenFolder(ctx context.Context, dir string, o Options) (audit.Store, error) {
	if o.ReadOnly {
		return nil, run.Errorf(run.KindInvalidArguments, "store.open", "%s is a folder; its files are read one by one", dir)
	}
	if o.Left {
		return openLeft(ctx, dir, o)
	}
	for n := range maxFiles {
		if _, err := os.Lstat(filepath.Join(dir, nameOf(n+1))); o.Fresh && err == nil {
			continue
		}
		s, err := openSQLite(ctx, filepath.Join(dir, nameOf(n+1)), o, 0)
		if !errors.Is(err, ErrTaken) {
			return s, err
		}
	}
	return nil, run.Errorf(run.KindLimit, "store.open", "%d processes write records in %s: %w", maxFiles, dir, ErrTaken).
		WithHint("end some of them, or give each user a home of their own with --home")
}

// nameOf is the name of a file in a folder, from 1 on.
func nameOf(n int) string { return fmt.Sprintf("record-%d.db", n) }

// openLeft opens the first file of a folder that has a chain and that nobody writes.
func openLeft(ctx context.Context, dir string, o Options) (audit.Store, error) {
	files, err := Files(dir)
	if err != nil {
		return nil, run.Errorf(run.KindInternal, "store.open", "%w", err)
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
	return nil, run.Errorf(run.KindInvalidArguments, "store.open", "the record %s: %w", dir, ErrNone)
}

// Files lists the files of a folder that OpenFolder has made, the first one first. There is
// none if there is no folder.
func Files(dir string) ([]string, error) {
	all, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	there := map[int]bool{}
	for _, e := range all {
		n, _ := strings.CutPrefix(e.Name(), "record-")
		if n, err := strconv.Atoi(strings.TrimSuffix(n, ".db")); err == nil && e.Name() == nameOf(n) {
			there[n] = true
		}
	}
	var files []string
	for n := range maxFiles {
		if there[n+1] {
			files = append(files, filepath.Join(dir, nameOf(n+1)))
		}
	}
	return files, nil
}

// engine is what SQLite and PostgreSQL have each their own way of.
type engine interface {
	// bound is a statement with its parameters, written as ?, as the engine wants them.
	bound(statement string) string
	// page selects up to ? entries that fit conditions, newest first. The index of lead is
	// the one to use.
	selection(columns, lead, conditions string) string
	// counting counts up to ? entries with a column that is ?.
	counting(column string) string
	// counted is the table in which entries are added up.
	counted() string
	// unled is a column in a condition whose index is not to be used.
	unled(column string) string
	// sample is a table of some entries that chance picks.
	sample(ctx context.Context, db *sql.DB) (table string, args []any, err error)
	// before is the condition that an entry is older than a place.
	before(p audit.Place) (condition string, args []any)
	// holds reports whether a chain can be in the store; if it is one that only the
	// engine can tell of, condition says so in SQL.
	holds(chain int64) (condition string, args []any, maybe bool)
	// claim gives a connection that may write the chain; nil if there is none yet.
	claim(ctx context.Context, db *sql.DB) (*sql.Conn, int64, error)
	// alive reports whether the connection that writes is still there, as far as can be told without sending
	// anything. What is sent over one that is not might be written or not.
	alive(c *sql.Conn) bool
	// free gives up what claim has taken, before the connection is closed; after an error
	// the connection is not to be used for it.
	free(c *sql.Conn, failed bool)
	// sound reports whether the connection can go on after an error of transact.
	sound(c *sql.Conn, err error) bool
	// lost returns why nothing in the store's file can be relied on any more, given the error of a write,
	// which may be nil. The cause is audit.ErrUnsynced or audit.ErrGone. It returns nil otherwise.
	lost(err error) error
	// transact makes changes, all or none, durably.
	transact(ctx context.Context, c *sql.Conn, all []change) error
	// wrote is told after each batch, with the lock of writing held.
	wrote(ctx context.Context, rows int)
	// forget deletes keys for good.
	forget(ctx context.Context, c *sql.Conn, ids []string) (int, error)
	// dropped gives back the space of deleted rows.
	dropped(ctx context.Context, c *sql.Conn) error
	// check returns in words what is wrong with what is kept beside the entries of chains.
	check(ctx context.Context, c *sql.Conn) ([]string, error)
	// indexes returns an error if the indexes are known not to be those of the entries.
	indexes(ctx context.Context, c *sql.Conn) error
	// snapshot begins a transaction that sees the database as it is at one moment.
	snapshot() string
	size(ctx context.Context, db *sql.DB) (int64, error)
	// explain makes an error of the engine one with words and a hint.
	explain(op string, err error) error
	close()
}

// store is audit.Store over either engine.
type store struct {
	engine
	db    *sql.DB
	names names

	reads   bool // only
	forgets bool // nevertheless

	mu    sync.Mutex // for writing
	w     *sql.Conn  // nil after an error: the next to write claims again
	chain int64
	gone  error // why nothing is written any more
}

var _ audit.Store = (*store)(nil)

func (s *store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.w != nil {
		s.free(s.w, false)
		_ = s.w.Close()
		s.w = nil
	}
	err := s.db.Close()
	s.engine.close()
	return err
}

func (s *store) Size(ctx context.Context) (int64, error) {
	n, err := s.size(ctx, s.db)
	return n, s.failed("store.size", err)
}

// failed is nil for nil.
func (s *store) failed(op string, err error) error {
	var known *run.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return s.explain(op, err)
}

// newChain is a number of 63 bits, so that it has a sign in no database.
func newChain() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return int64(binary.BigEndian.Uint64(b[:]) >> 1)
}

// chainName is the 16 digits of a chain.
func chainName(chain int64) string { return fmt.Sprintf("%016x", uint64(chain)) }

// chainOf is the chain of 16 digits; ok is false if no store can have one of this name.
func chainOf(name string) (chain int64, ok bool) {
	n, err := strconv.ParseInt(name, 16, 64)
	return n, err == nil && n >= 0 && chainName(n) == name
}
