package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	"retort/internal/audit"
	"retort/internal/core"
)

var (
	_ audit.StoreChecker = (*sqlStore)(nil)
	_ audit.IndexChecker = (*sqlStore)(nil)
)

// inSnapshot runs f in a transaction that does not see concurrent changes.
func (s *sqlStore) inSnapshot(ctx context.Context, f func(c *sql.Conn) error) error {
	c, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return inTransaction(ctx, c, s.snapshotBegin(), func() error { return f(c) })
}

// Check implements audit.StoreChecker.
func (s *sqlStore) Check(ctx context.Context) (says []string, err error) {
	err = s.inSnapshot(ctx, func(c *sql.Conn) error {
		if says, err = s.checkIndexes(ctx, c); err != nil {
			return err
		}
		more, err := s.checkChains(ctx, c)
		says = append(says, more...)
		return err
	})
	return says, s.wrapError("store.check", err)
}

// checkChains returns one sentence for each chain whose row in the table of chains contradicts the entries.
func (s *sqlStore) checkChains(ctx context.Context, c *sql.Conn) (says []string, err error) {
	names, err := queryList[int64](ctx, c, "SELECT name FROM chains ORDER BY name")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := s.checkChain(ctx, c, name)
		if err != nil {
			return nil, err
		}
		if text != "" {
			says = append(says, fmt.Sprintf("the table of chains was edited: chain %s: %s", chainName(name), text))
		}
	}
	return says, nil
}

func (s *sqlStore) checkChain(ctx context.Context, c *sql.Conn, name int64) (says string, err error) {
	var seq, base int64
	var hash, last []byte
	var from, to sql.NullInt64
	if err := c.QueryRowContext(
		ctx, s.bindParameters("SELECT seq, hash, base FROM chains WHERE name = ?"), name,
	).Scan(&seq, &hash, &base); err != nil {
		return "", err
	}
	if err := c.QueryRowContext(
		ctx, s.bindParameters("SELECT min(seq), max(seq) FROM entries WHERE chain = ?"), name,
	).Scan(&from, &to); err != nil {
		return "", err
	}
	if !from.Valid {
		if seq != base {
			return fmt.Sprintf("its head lists the entries %d to %d, but it has no entries", base+1, seq), nil
		}
		return "", nil
	}
	if from.Int64 != base+1 || to.Int64 != seq {
		return fmt.Sprintf("its head lists the entries %d to %d, but the entries %d to %d exist", base+1, seq, from.Int64, to.Int64), nil
	}
	err = c.QueryRowContext(ctx, s.bindParameters("SELECT hash FROM entries WHERE chain = ? AND seq = ?"), name, seq).Scan(&last)
	if err == nil && !bytes.Equal(hash, last) {
		says = fmt.Sprintf("the hash in its head differs from that of the last entry, %d", seq)
	}
	return says, err
}

// Standing implements audit.StoreChecker.
func (s *sqlStore) Standing(ctx context.Context, chain string) (h audit.ChainHead, open []string, err error) {
	name, ok := chainOf(chain)
	if !ok {
		return h, nil, core.Errorf(core.KindInternal, "store.check", "there is no chain %q", chain)
	}
	err = s.inSnapshot(ctx, func(c *sql.Conn) error {
		h.Chain = chain
		if err := c.QueryRowContext(
			ctx, s.bindParameters("SELECT seq, hash, base, owner FROM chains WHERE name = ?"), name,
		).Scan(&h.Seq, &h.Hash, &h.Base, &h.Owner); err != nil {
			return err
		}
		all, err := queryList[[]byte](ctx, c, s.bindParameters("SELECT execution FROM opened WHERE chain = ?"), name)
		for _, e := range all {
			open = append(open, string(e))
		}
		return err
	})
	return h, open, s.wrapError("store.check", err)
}

// Indexes implements audit.IndexChecker.
func (s *sqlStore) Indexes(ctx context.Context) error {
	return s.wrapError("store.check", s.inSnapshot(ctx, func(c *sql.Conn) error { return s.compareIndexes(ctx, c) }))
}

func (e *sqliteEngine) snapshotBegin() string { return "BEGIN" }

// checkIndexes makes SQLite compare each index with its table. It also reports a file with more than one chain,
// because an engine writes only one chain to a file.
func (e *sqliteEngine) checkIndexes(ctx context.Context, c *sql.Conn) (says []string, err error) {
	const most = 20
	found, err := queryList[string](ctx, c, fmt.Sprintf("PRAGMA integrity_check(%d)", most))
	if err != nil {
		return nil, err
	}
	if slices.Equal(found, []string{"ok"}) {
		found = nil
	}
	for _, text := range found {
		says = append(says, fmt.Sprintf("the audit log %s is damaged, or its indexes were changed: %s", e.path, text))
	}
	var chains int
	if err := c.QueryRowContext(ctx, "SELECT count(*) FROM chains").Scan(&chains); err != nil {
		return nil, err
	}
	if chains > 1 {
		says = append(says, fmt.Sprintf("the audit log %s has %d chains, but an engine creates only one", e.path, chains))
	}
	return says, nil
}

// maxComparedSize is the size, in bytes, up to which all indexes of a file are compared with its entries before use.
// At this size the comparison takes some tenths of a second. In larger files the entries of each index are only
// counted.
const maxComparedSize = 16 << 20

func (e *sqliteEngine) compareIndexes(ctx context.Context, c *sql.Conn) error {
	info, err := os.Lstat(e.path)
	if err != nil {
		return err
	}
	if info.Size() > maxComparedSize {
		return e.checkCounts(ctx, c)
	}
	found, err := queryList[string](ctx, c, "PRAGMA integrity_check(1)")
	if err == nil && !slices.Equal(found, []string{"ok"}) {
		err = e.indexError(found[0])
	}
	return err
}

// checkCounts returns an error unless each index has as many entries as the chain.
func (e *sqliteEngine) checkCounts(ctx context.Context, c *sql.Conn) error {
	var seq, base int64
	if err := c.QueryRowContext(ctx, "SELECT seq, base FROM chains").Scan(&seq, &base); err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	}
	for _, index := range []string{"by_at", "by_kind", "by_session", "by_principal"} {
		var n int64
		if err := c.QueryRowContext(ctx, "SELECT count(*) FROM entries INDEXED BY "+index).Scan(&n); err != nil {
			return err
		}
		if n != seq-base {
			return e.indexError(fmt.Sprintf("%s lists %d of %d entries", index, n, seq-base))
		}
	}
	return nil
}

func (e *sqliteEngine) indexError(what string) error {
	return core.Errorf(
		core.KindInternal, "store.check", "the indexes of %s are damaged or were changed (%s), so they are not used",
		e.path, what,
	).
		WithHint("run retort audit verify for details")
}

// newFileSchema returns the schema of a new database: for each object, by type and name, the SQL statement that
// creates it.
var newFileSchema = sync.OnceValues(func() (map[string]string, error) {
	ctx := context.Background()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection has a database of its own
	if err := (&sqliteEngine{path: "memory"}).migrateSchema(ctx, db); err != nil {
		return nil, err
	}
	return schemaOf(ctx, db)
})

func schemaOf(ctx context.Context, db *sql.DB) (map[string]string, error) {
	rows, err := db.QueryContext(ctx, "SELECT type, name, coalesce(sql, '') FROM sqlite_schema")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string]string{}
	for rows.Next() {
		var kind, name, text string
		if err := rows.Scan(&kind, &name, &text); err != nil {
			return nil, err
		}
		all[kind+" "+name] = text
	}
	return all, rows.Err()
}

// checkSchema returns an error if the database lacks tables or indexes, or has any that Retort did not create,
// including views and triggers. A foreign trigger could change entries as they are written, and a foreign index could
// hide them as they are read.
func (e *sqliteEngine) checkSchema(ctx context.Context, db *sql.DB) error {
	made, err := newFileSchema()
	if err != nil {
		return err
	}
	found, err := schemaOf(ctx, db)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if text, ok := made[name]; !ok || text != found[name] {
			return e.alteredError(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(made)) {
		if _, ok := found[name]; !ok {
			return e.alteredError(name)
		}
	}
	return nil
}

func (e *sqliteEngine) alteredError(name string) error {
	return core.Errorf(
		core.KindInternal, "store.open",
		"the audit log %s was changed by a program other than Retort: its %.80s differs from what Retort created", e.path, name,
	).
		WithHint("Retort neither reads nor writes it; move it away to keep it as evidence")
}
