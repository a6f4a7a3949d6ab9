package sqlstore

import (
	"context"
	"strings"

	"retort/internal/audit"
)

// maxIDsPerStatement bounds the number of key IDs in one SQL statement.
const maxIDsPerStatement = 500

// eachPart splits ids into parts of at most maxIDsPerStatement. It calls f for each part with a list of SQL
// placeholders and their values.
func eachPart(ids []string, f func(list string, args []any) error) error {
	for len(ids) > 0 {
		n := min(len(ids), maxIDsPerStatement)
		args := make([]any, n)
		for i, id := range ids[:n] {
			args[i] = []byte(id)
		}
		if err := f("(?"+strings.Repeat(", ?", n-1)+")", args); err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}

func (s *sqlStore) Keys(ctx context.Context, ids []string) (map[string]audit.BodyKey, error) {
	all := map[string]audit.BodyKey{}
	err := eachPart(ids, func(list string, args []any) error { return s.readKeys(ctx, all, list, args) })
	return all, s.wrapError("store.keys", err)
}

func (s *sqlStore) readKeys(ctx context.Context, into map[string]audit.BodyKey, list string, args []any) error {
	rows, err := s.db.QueryContext(ctx, s.bindParameters(
		"SELECT id, session, principal, wrapped FROM keys WHERE live = 1 AND id IN "+list,
	), args...)
	if err != nil {
		return err
	}
	type found struct {
		id, wrapped        []byte
		session, principal int64
	}
	var all []found
	defer rows.Close()
	for rows.Next() {
		var f found
		if err := rows.Scan(&f.id, &f.session, &f.principal, &f.wrapped); err != nil {
			return err
		}
		all = append(all, f)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, f := range all {
		k := audit.BodyKey{ID: string(f.id), Wrapped: f.wrapped}
		if k.Session, err = s.nameOf(ctx, f.session); err != nil {
			return err
		}
		if k.Principal, err = s.nameOf(ctx, f.principal); err != nil {
			return err
		}
		into[k.ID] = k
	}
	return nil
}

func (s *sqlStore) KeysOf(ctx context.Context, principal, session string) ([]string, error) {
	var ids []int64
	for _, name := range []string{principal, session} {
		id, ok, err := s.findName(ctx, s.db, name)
		if err != nil || !ok {
			return nil, s.wrapError("store.keys", err)
		}
		ids = append(ids, id)
	}
	all, err := queryList[[]byte](
		ctx, s.db, s.bindParameters("SELECT id FROM keys WHERE live = 1 AND principal = ? AND session = ? ORDER BY n"),
		ids[0], ids[1],
	)
	var names []string
	for _, id := range all {
		names = append(names, string(id))
	}
	return names, s.wrapError("store.keys", err)
}

// Forget implements audit.LogStore. After an error it can be called again with the same IDs.
func (s *sqlStore) Forget(ctx context.Context, ids []string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readOnly && s.mayForget {
		return s.forgetReadOnly(ctx, ids)
	}
	if err := s.ensureWriter(ctx); err != nil {
		return 0, s.wrapError("store.forget", err)
	}
	n, err := s.forgetKeys(ctx, s.w, ids)
	if err = s.checkWrite(err); err != nil {
		s.dropWriter()
	}
	return n, s.wrapError("store.forget", err)
}

// forgetReadOnly deletes keys from a store that was opened for reading, while another process may write entries.
func (s *sqlStore) forgetReadOnly(ctx context.Context, ids []string) (int, error) {
	c, err := s.db.Conn(ctx)
	if err != nil {
		return 0, s.wrapError("store.forget", err)
	}
	defer c.Close()
	n, err := s.forgetKeys(ctx, c, ids)
	return n, s.wrapError("store.forget", err)
}

// maxRowsPerDelete bounds the number of rows that one transaction deletes, because writers must wait for it.
const maxRowsPerDelete = 2000

func (s *sqlStore) Drop(ctx context.Context, chain string, upTo int64) error {
	id, ok := chainOf(chain)
	if !ok {
		return nil
	}
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if more, err = s.dropRows(ctx, id, upTo); err != nil {
			return s.wrapError("store.drop", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ensureWriter(ctx); err != nil {
		return s.wrapError("store.drop", err)
	}
	return s.wrapError("store.drop", s.reclaimSpace(ctx, s.w))
}

// dropRows deletes the oldest rows of a chain, at most maxRowsPerDelete of them. The argument upTo is the sequence
// number of the last row to delete. more reports whether further rows up to this one remain.
func (s *sqlStore) dropRows(ctx context.Context, chain, upTo int64) (more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ensureWriter(ctx); err != nil {
		return false, err
	}
	var base, seq int64
	if err := s.w.QueryRowContext(ctx, s.bindParameters("SELECT base, seq FROM chains WHERE name = ?"), chain).Scan(&base, &seq); err != nil {
		return false, err
	}
	upTo = min(upTo, seq)
	to := min(base+maxRowsPerDelete, upTo)
	if to <= base {
		return false, nil
	}
	err = s.runTransaction(context.WithoutCancel(ctx), s.w, []statementChange{
		{"DELETE FROM entries WHERE chain = ? AND seq <= ?", []any{chain, to}, nil},
		{"UPDATE chains SET base = ? WHERE name = ? AND base < ?", []any{to, chain, to}, nil},
	})
	if err = s.checkWrite(err); err != nil {
		s.dropWriter()
	}
	return to < upTo, err
}
