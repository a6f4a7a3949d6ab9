package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"slices"

	"retort/internal/audit"
	"retort/internal/core"
)

const (
	entryColumns = "chain, seq, at, kind, execution, session, principal, server, tool, status, risk, micros, bytes, returned, avoided, hash, code"
	insertRow    = "INSERT INTO entries (" + entryColumns + ", facts, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
	insertKey    = "INSERT INTO keys (live, id, session, principal, wrapped) VALUES (1, ?, ?, ?, ?)"
	moveHead     = "UPDATE chains SET seq = ?, hash = ? WHERE name = ? AND seq = ?"
	openOne      = "INSERT INTO opened (chain, execution) VALUES (?, ?) ON CONFLICT DO NOTHING"
	closeOne     = "DELETE FROM opened WHERE chain = ? AND execution = ?"
)

// statementChange holds one SQL statement of a transaction with its arguments.
type statementChange struct {
	statement string
	args      []any
	missed    error // error of the transaction if the statement changes no row; nil: that is no error
}

// ensureWriter opens the connection for writing and claims a chain, unless such a connection is already open. The
// caller must hold s.mu.
func (s *sqlStore) ensureWriter(ctx context.Context) error {
	if s.readOnly {
		return core.Errorf(core.KindInternal, "store.write", "the audit log was opened for reading")
	}
	if s.gone != nil {
		return s.gone
	}
	if s.w != nil && s.isAlive(s.w) {
		return nil
	}
	s.dropWriter()
	w, chain, err := s.claimChain(ctx, s.db)
	if err == nil {
		s.w, s.chain = w, chain
	}
	return s.checkWrite(err)
}

// checkWrite returns the error to report for a write whose result is err. Normally that is err itself. If the
// write has made the file unreliable, checkWrite closes the connection and returns the reason, and every later
// write fails with the same reason. The caller must hold s.mu.
func (s *sqlStore) checkWrite(err error) error {
	if lost := s.lostFileError(err); lost != nil {
		s.gone = lost
		s.dropWriter()
		return lost
	}
	return err
}

// dropWriter closes the connection for writing, because the state of a connection is unknown after an error. The
// caller must hold s.mu.
func (s *sqlStore) dropWriter() {
	if s.w != nil {
		s.releaseConnection(s.w, true)
		discardConnection(s.w)
	}
	s.w = nil
}

// discardConnection closes a connection instead of returning it to the pool.
func discardConnection(c *sql.Conn) {
	_ = c.Raw(func(any) error { return driver.ErrBadConn })
	_ = c.Close()
}

func (s *sqlStore) Head(ctx context.Context) (audit.ChainHead, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ensureWriter(ctx); err != nil {
		return audit.ChainHead{}, s.wrapError("store.head", err)
	}
	h := audit.ChainHead{Chain: chainName(s.chain)}
	err := s.w.QueryRowContext(
		ctx, s.bindParameters("SELECT seq, hash, base, owner FROM chains WHERE name = ?"), s.chain,
	).Scan(&h.Seq, &h.Hash, &h.Base, &h.Owner)
	if err != nil {
		s.dropWriter()
	}
	return h, s.wrapError("store.head", err)
}

// Append implements audit.LogStore. Once it has begun to write, it ignores the end of ctx.
func (s *sqlStore) Append(ctx context.Context, b audit.WriteBatch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx = context.WithoutCancel(ctx)
	if err := s.ensureWriter(ctx); err != nil {
		return s.wrapError("store.append", err)
	}
	if err := s.checkSequence(b.Rows); err != nil {
		return err
	}
	if err := s.checkWrite(s.appendBatch(ctx, b)); err != nil {
		if s.gone != nil {
			return s.gone
		}
		if !s.isReusable(s.w, err) {
			s.dropWriter()
		}
		return s.wrapError("store.append", err)
	}
	s.onWritten(ctx, len(b.Rows))
	return nil
}

// checkSequence returns an error unless the rows belong to this store's chain and have consecutive numbers.
func (s *sqlStore) checkSequence(rows []audit.LogRow) error {
	for i, r := range rows {
		if r.Chain != chainName(s.chain) || r.Seq != rows[0].Seq+int64(i) || r.Seq < 1 || len(r.Hash) == 0 {
			return core.Errorf(
				core.KindInternal, "store.append", "entry %d of chain %q is not the next one of %s", r.Seq, r.Chain,
				chainName(s.chain),
			)
		}
		if r.Risk < -1 || r.Risk > maxRisk {
			return core.Errorf(core.KindInternal, "store.append", "entry %d has the risk %d", r.Seq, r.Risk)
		}
	}
	return nil
}

// appendBatch writes the rows and keys of a batch in one transaction.
func (s *sqlStore) appendBatch(ctx context.Context, b audit.WriteBatch) error {
	ids, err := s.internAll(ctx, b)
	if err != nil {
		return err
	}
	var all []statementChange
	if n := len(b.Rows); n > 0 {
		last := b.Rows[n-1]
		all = append(all, statementChange{moveHead, []any{
			last.Seq, last.Hash, s.chain, b.Rows[0].Seq - 1,
		}, core.Errorf(core.KindInternal, "store.append",
			"entry %d of chain %s does not follow its head", b.Rows[0].Seq, last.Chain)})
	}
	for i := range b.Rows {
		all = append(all, statementChange{insertRow, insertArguments(&b.Rows[i], s.chain, ids), nil})
	}
	for _, k := range b.Keys {
		all = append(all, statementChange{insertKey, []any{[]byte(k.ID), ids[k.Session], ids[k.Principal], neverNil(k.Wrapped)}, nil})
	}
	for _, e := range b.Opened {
		all = append(all, statementChange{openOne, []any{s.chain, []byte(e)}, nil})
	}
	for _, e := range b.Closed {
		all = append(all, statementChange{closeOne, []any{s.chain, []byte(e)}, nil})
	}
	return s.runTransaction(ctx, s.w, all)
}

// internAll returns the numbers that the database stores in place of the names in a batch. It adds new names to
// the table of names.
func (s *sqlStore) internAll(ctx context.Context, b audit.WriteBatch) (ids map[string]int64, err error) {
	ids = map[string]int64{}
	need := func(all ...string) {
		for _, name := range all {
			if _, ok := ids[name]; !ok && err == nil {
				ids[name], err = s.internName(ctx, s.w, name)
			}
		}
	}
	for _, r := range b.Rows {
		need(r.Kind, r.Session, r.Principal, r.Server, r.Tool, r.Status)
	}
	for _, k := range b.Keys {
		need(k.Session, k.Principal)
	}
	return ids, err
}

// insertArguments returns the arguments of the statement insertRow for one row.
func insertArguments(r *audit.LogRow, chain int64, ids map[string]int64) []any {
	return []any{
		chain, r.Seq, r.At, ids[r.Kind], []byte(r.Execution), ids[r.Session], ids[r.Principal], ids[r.Server], ids[r.Tool], ids[r.Status],
		r.Risk, r.Micros, r.Bytes, r.Returned, r.Avoided, r.Hash, nilIfEmpty(r.Code), nilIfEmpty(r.Facts), nilIfEmpty(r.Body),
	}
}

// nilIfEmpty returns nil for an empty slice, so that both databases store NULL and return the same value.
func nilIfEmpty(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}

// neverNil returns a copy of b that is never nil, for a column that must not be NULL.
func neverNil(b []byte) []byte { return append([]byte{}, b...) }

func (s *sqlStore) Open(ctx context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ensureWriter(ctx); err != nil {
		return nil, s.wrapError("store.open_executions", err)
	}
	all, err := queryList[[]byte](ctx, s.w, s.bindParameters("SELECT execution FROM opened WHERE chain = ?"), s.chain)
	var open []string
	for _, e := range all {
		open = append(open, string(e))
	}
	slices.Sort(open)
	return open, s.wrapError("store.open_executions", err)
}
