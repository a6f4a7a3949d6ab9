package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"retort/internal/audit"
)

// list reads a column.
func list[T any](ctx context.Context, q interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}, statement string, args ...any) (all []T, err error) {
	rows, err := q.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var one T
		if err := rows.Scan(&one); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// raw represents a row with the numbers of its names.
type raw struct {
	audit.Row
	chain                                          int64
	kind, session, principal, server, tool, status int64
}

// newer orders rows newest first.
func newer(a, b raw) int {
	return cmp.Or(cmp.Compare(b.At, a.At), cmp.Compare(b.chain, a.chain), cmp.Compare(b.Seq, a.Seq))
}

func selected(bare bool) string {
	if bare {
		return columns
	}
	return columns + ", facts, body"
}

// read adds the rows of an answer to all.
func read(rows *sql.Rows, all []raw, bare bool) ([]raw, error) {
	defer rows.Close()
	var execution sql.RawBytes
	var r raw
	into := []any{
		&r.chain, &r.Seq, &r.At, &r.kind, &execution, &r.session, &r.principal, &r.server, &r.tool, &r.status,
		&r.Risk, &r.Micros, &r.Bytes, &r.Returned, &r.Avoided, &r.Hash, &r.Code, &r.Facts, &r.Body,
	}
	if bare {
		into = into[:len(into)-2]
	}
	for rows.Next() {
		r = raw{}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		r.Execution = string(execution)
		all = append(all, r)
	}
	return all, rows.Err()
}

// complete gives a row its names.
func (s *store) complete(ctx context.Context, r *raw) (err error) {
	r.Chain = chainName(r.chain)
	for _, n := range []struct {
		id   int64
		name *string
	}{{r.kind, &r.Kind}, {r.session, &r.Session}, {r.principal, &r.Principal}, {r.server, &r.Server}, {r.tool, &r.Tool}, {r.status, &r.Status}} {
		if *n.name, err = s.named(ctx, n.id); err != nil {
			return err
		}
	}
	return nil
}

func (s *store) Walk(ctx context.Context, chain string, from int64) iter.Seq2[audit.Row, error] {
	return func(yield func(audit.Row, error) bool) {
		id, ok := chainOf(chain)
		if !ok {
			return
		}
		statement := s.bound("SELECT " + selected(false) + " FROM entries WHERE chain = ? AND seq >= ? ORDER BY seq LIMIT ?")
		var all []raw
		for more := true; more; {
			rows, err := s.db.QueryContext(ctx, statement, id, from, rowsPerRead)
			if err == nil {
				all, err = read(rows, all[:0], false)
			}
			if err != nil {
				yield(audit.Row{}, s.failed("store.walk", err))
				return
			}
			if more = len(all) == rowsPerRead; more {
				from = all[len(all)-1].Seq + 1
			}
			if !s.give(ctx, all, yield) {
				return
			}
		}
	}
}

// give completes rows and yields them; it returns false if no more are wanted.
func (s *store) give(ctx context.Context, all []raw, yield func(audit.Row, error) bool) bool {
	for i := range all {
		if err := s.complete(ctx, &all[i]); err != nil {
			yield(audit.Row{}, s.failed("store.read", err))
			return false
		}
		if !yield(all[i].Row, nil) {
			return false
		}
	}
	return true
}

func (s *store) Find(ctx context.Context, f audit.Filter) iter.Seq2[audit.Row, error] {
	return func(yield func(audit.Row, error) bool) {
		q, err := s.query(ctx, f)
		lead := -1
		if err == nil && !q.none {
			lead, err = s.lead(ctx, &q)
		}
		left := f.Limit
		if left <= 0 {
			left = math.MaxInt
		}
		for before := f.Before; left > 0 && !q.none; {
			n := min(left, rowsPerRead)
			var all []raw
			if err == nil {
				all, err = s.page(ctx, &q, lead, before, n, f.Bare)
			}
			if err != nil {
				yield(audit.Row{}, s.failed("store.find", err))
				return
			}
			if !s.give(ctx, all, yield) || len(all) < n {
				return
			}
			last := all[n-1]
			before = &audit.Place{At: last.At, Chain: last.Chain, Seq: last.Seq}
			left -= n
		}
	}
}

// page reads the n newest rows that fit and are older than before.
func (s *store) page(ctx context.Context, q *query, lead int, before *audit.Place, n int, bare bool) (all []raw, err error) {
	where, args := q.without(lead, s.unled)
	if before != nil {
		older, place := s.before(*before)
		where, args = where+" AND "+older, append(args, place...)
	}
	c := condition{values: []any{nil}}
	if lead >= 0 {
		c = q.conditions[lead]
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	p, err := conn.PrepareContext(ctx, s.bound(s.selection(selected(bare), c.column, where)))
	if err != nil {
		return nil, err
	}
	defer p.Close()
	for _, v := range c.values {
		given := slices.Concat([]any{v}, args, []any{n})
		if lead < 0 {
			given = given[1:]
		}
		rows, err := p.QueryContext(ctx, given...)
		if err == nil {
			all, err = read(rows, all, bare)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(c.values) > 1 {
		slices.SortFunc(all, newer)
		all = all[:min(n, len(all))]
	}
	return all, nil
}

// few is the number of rows up to which conditions are counted, to find the one with the fewest.
const few = 4096

// lead returns the condition that the fewest rows match, as far as that can be found quickly, or -1. Its index is
// read, and the other conditions are checked on the rows.
func (s *store) lead(ctx context.Context, q *query) (lead int, err error) {
	able := q.indexed()
	if able < 2 {
		return able - 1, nil
	}
	least := int64(few)
	for i, c := range q.conditions[:able] {
		n, err := s.count(ctx, c, least)
		if err != nil {
			return 0, err
		}
		if n < least {
			least, lead = n, i
		}
	}
	if least < few {
		return lead, nil
	}
	return s.rarest(ctx, q.conditions[:able])
}

// rarest returns the condition that the fewest of some rows fit, which chance picks.
func (s *store) rarest(ctx context.Context, of []condition) (lead int, err error) {
	fits := make([]string, len(of))
	var args []any
	for i, c := range of {
		where, given := c.where(c.column)
		fits[i], args = "count(*) FILTER (WHERE "+where+")", append(args, given...)
	}
	counts := make([]int64, len(fits))
	into := make([]any, len(fits))
	for i := range counts {
		into[i] = &counts[i]
	}
	sample, given, err := s.sample(ctx, s.db)
	if err == nil {
		err = s.db.QueryRowContext(ctx, s.bound("SELECT "+strings.Join(fits, ", ")+" FROM "+sample), append(args, given...)...).Scan(into...)
	}
	for i, n := range counts {
		if n < counts[lead] {
			lead = i
		}
	}
	return lead, err
}

// count returns how many rows fit a condition, but no more than limit.
func (s *store) count(ctx context.Context, c condition, limit int64) (n int64, err error) {
	statement := s.bound(s.counting(c.column))
	for _, v := range c.values {
		var some int64
		if err := s.db.QueryRowContext(ctx, statement, v, limit-n).Scan(&some); err != nil {
			return 0, err
		}
		if n += some; n >= limit {
			break
		}
	}
	return n, nil
}

func (s *store) Groups(ctx context.Context, f audit.Filter) ([]audit.Group, error) {
	groups, err := s.groups(ctx, f)
	return groups, s.failed("store.groups", err)
}

func (s *store) groups(ctx context.Context, f audit.Filter) ([]audit.Group, error) {
	q, err := s.query(ctx, f)
	if err != nil || q.none {
		return nil, err
	}
	where, args := q.without(-1, s.unled)
	if f.Before != nil {
		older, place := s.before(*f.Before)
		where, args = where+" AND "+older, append(args, place...)
	}
	rows, err := s.db.QueryContext(ctx, s.bound(fmt.Sprintf(`SELECT at / %d, kind, server, tool, status, count(*), CAST(sum(micros) AS BIGINT),
		CAST(sum(bytes) AS BIGINT), CAST(sum(returned) AS BIGINT), CAST(sum(avoided) AS BIGINT), max(risk)
		FROM %s WHERE 1 = 1%s GROUP BY 1, 2, 3, 4, 5`, 24*time.Hour, s.table(&q), where)), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []audit.Group
	var names [][4]int64
	for rows.Next() {
		var g audit.Group
		var day int64
		var n [4]int64
		if err := rows.Scan(&day, &n[0], &n[1], &n[2], &n[3], &g.Count, &g.Micros, &g.Bytes, &g.Returned, &g.Avoided, &g.MaxRisk); err != nil {
			return nil, err
		}
		g.Day = time.Unix(day*86400, 0).UTC().Format(time.DateOnly)
		all, names = append(all, g), append(names, n)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for i := range all {
		for j, into := range []*string{&all[i].Kind, &all[i].Server, &all[i].Tool, &all[i].Status} {
			if *into, err = s.named(ctx, names[i][j]); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(all, func(a, b audit.Group) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Server, b.Server), cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Status, b.Status))
	})
	return all, nil
}

func (s *store) Chains(ctx context.Context) ([]audit.Head, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT name, seq, hash, base, owner FROM chains ORDER BY name")
	if err != nil {
		return nil, s.failed("store.chains", err)
	}
	defer rows.Close()
	var all []audit.Head
	for rows.Next() {
		var h audit.Head
		var chain int64
		if err := rows.Scan(&chain, &h.Seq, &h.Hash, &h.Base, &h.Owner); err != nil {
			return nil, s.failed("store.chains", err)
		}
		h.Chain = chainName(chain)
		all = append(all, h)
	}
	return all, s.failed("store.chains", rows.Err())
}
