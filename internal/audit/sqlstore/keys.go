package sqlstore

import (
	"context"
	"strings"

	"retort/internal/audit"
)

// maxIDsPerStatement sets how many ids one statement takes.
const maxIDsPerStatement = 500

// eachPart calls f for each part of ids with a list of placeholders and their values.
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

func (s *store) Keys(ctx context.Context, ids []string) (map[string]audit.Key, error) {
	all := map[string]audit.Key{}
	err := eachPart(ids, func(list string, args []any) error { return s.keys(ctx, all, list, args) })
	return all, s.failed("store.keys", err)
}

func (s *store) keys(ctx context.Context, into map[string]audit.Key, list string, args []any) error {
	rows, err := s.db.QueryContext(ctx, s.bound("SELECT id, session, principal, wrapped FROM keys WHERE live = 1 AND id IN "+list), args...)
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
		k := audit.Key{ID: string(f.id), Wrapped: f.wrapped}
		if k.Session, err = s.named(ctx, f.session); err != nil {
			return err
		}
		if k.Principal, err = s.named(ctx, f.principal); err != nil {
			return err
		}
		into[k.ID] = k
	}
	return nil
}

func (s *store) KeysOf(ctx context.Context, principal, session string) ([]string, error) {
	var ids []int64
	for _, name := range []string{principal, session} {
		id, ok, err := s.find(ctx, s.db, name)
		if err != nil || !ok {
			return nil, s.failed("store.keys", err)
		}
		ids = append(ids, id)
	}
	all, err := list[[]byte](ctx, s.db, s.bound("SELECT id FROM keys WHERE live = 1 AND principal = ? AND session = ? ORDER BY n"), ids[0], ids[1])
	var names []string
	for _, id := range all {
		names = append(names, string(id))
	}
	return names, s.failed("store.keys", err)
}

// Forget implements audit.Store. After an error it can be called again with the same ids.
func (s *store) Forget(ctx context.Context, ids []string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reads && s.forgets {
		return s.forgetReadOnly(ctx, ids)
	}
	if err := s.ensureWriter(ctx); err != nil {
		return 0, s.failed("store.forget", err)
	}
	n, err := s.forget(ctx, s.w, ids)
	if err = s.checkWrite(err); err != nil {
		s.dropWriter()
	}
	return n, s.failed("store.forget", err)
}

// forgetReadOnly deletes keys while another process writes entries.
func (s *store) forgetReadOnly(ctx context.Context, ids []string) (int, error) {
	c, err := s.db.Conn(ctx)
	if err != nil {
		return 0, s.failed("store.forget", err)
	}
	defer c.Close()
	n, err := s.forget(ctx, c, ids)
	return n, s.failed("store.forget", err)
}

// maxRowsPerDelete sets how many rows one transaction deletes; writers wait for it.
const maxRowsPerDelete = 2000

func (s *store) Drop(ctx context.Context, chain string, upTo int64) error {
	id, ok := chainOf(chain)
	if !ok {
		return nil
	}
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if more, err = s.drop(ctx, id, upTo); err != nil {
			return s.failed("store.drop", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ensureWriter(ctx); err != nil {
		return s.failed("store.drop", err)
	}
	return s.failed("store.drop", s.dropped(ctx, s.w))
}

// drop deletes some rows; more reports whether there are more to delete.
func (s *store) drop(ctx context.Context, chain, upTo int64) (more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ensureWriter(ctx); err != nil {
		return false, err
	}
	var base, seq int64
	if err := s.w.QueryRowContext(ctx, s.bound("SELECT base, seq FROM chains WHERE name = ?"), chain).Scan(&base, &seq); err != nil {
		return false, err
	}
	upTo = min(upTo, seq)
	to := min(base+maxRowsPerDelete, upTo)
	if to <= base {
		return false, nil
	}
	err = s.transact(context.WithoutCancel(ctx), s.w, []change{
		{"DELETE FROM entries WHERE chain = ? AND seq <= ?", []any{chain, to}, nil},
		{"UPDATE chains SET base = ? WHERE name = ? AND base < ?", []any{to, chain, to}, nil},
	})
	if err = s.checkWrite(err); err != nil {
		s.dropWriter()
	}
	return to < upTo, err
}
