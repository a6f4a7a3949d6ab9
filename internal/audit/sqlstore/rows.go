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

// queryList returns the values of a query that selects only one column.
func queryList[T any](ctx context.Context, q interface {
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

// rawRow holds a row as the database stores it. Instead of names, such as that of a tool, it contains the numbers by
// which the database refers to them.
type rawRow struct {
	audit.LogRow
	chain                                          int64
	kind, session, principal, server, tool, status int64
}

// compareNewest orders rows newest first.
func compareNewest(a, b rawRow) int {
	return cmp.Or(cmp.Compare(b.At, a.At), cmp.Compare(b.chain, a.chain), cmp.Compare(b.Seq, a.Seq))
}

func selectedColumns(bare bool) string {
	if bare {
		return entryColumns
	}
	return entryColumns + ", facts, body"
}

// readRawRows reads all rows of a query result and appends them to the given list.
func readRawRows(rows *sql.Rows, all []rawRow, bare bool) ([]rawRow, error) {
	defer rows.Close()
	var execution sql.RawBytes
	var r rawRow
	into := []any{
		&r.chain, &r.Seq, &r.At, &r.kind, &execution, &r.session, &r.principal, &r.server, &r.tool, &r.status,
		&r.Risk, &r.Micros, &r.Bytes, &r.Returned, &r.Avoided, &r.Hash, &r.Code, &r.Facts, &r.Body,
	}
	if bare {
		into = into[:len(into)-2]
	}
	for rows.Next() {
		r = rawRow{}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		r.Execution = string(execution)
		all = append(all, r)
	}
	return all, rows.Err()
}

// resolveNames fills in the names for the numbers in a row.
func (s *sqlStore) resolveNames(ctx context.Context, r *rawRow) (err error) {
	r.Chain = chainName(r.chain)
	for _, n := range []struct {
		id   int64
		name *string
	}{
		{r.kind, &r.Kind}, {r.session, &r.Session}, {r.principal, &r.Principal}, {r.server, &r.Server},
		{r.tool, &r.Tool}, {r.status, &r.Status},
	} {
		if *n.name, err = s.nameOf(ctx, n.id); err != nil {
			return err
		}
	}
	return nil
}

func (s *sqlStore) Walk(ctx context.Context, chain string, from int64) iter.Seq2[audit.LogRow, error] {
	return func(yield func(audit.LogRow, error) bool) {
		id, ok := chainOf(chain)
		if !ok {
			return
		}
		statement := s.bindParameters("SELECT " + selectedColumns(false) + " FROM entries WHERE chain = ? AND seq >= ? ORDER BY seq LIMIT ?")
		var all []rawRow
		for more := true; more; {
			rows, err := s.db.QueryContext(ctx, statement, id, from, rowsPerRead)
			if err == nil {
				all, err = readRawRows(rows, all[:0], false)
			}
			if err != nil {
				yield(audit.LogRow{}, s.wrapError("store.walk", err))
				return
			}
			if more = len(all) == rowsPerRead; more {
				from = all[len(all)-1].Seq + 1
			}
			if !s.yieldRows(ctx, all, yield) {
				return
			}
		}
	}
}

// yieldRows fills in the names in rows and yields them. It returns false after an error or if the consumer has
// stopped.
func (s *sqlStore) yieldRows(ctx context.Context, all []rawRow, yield func(audit.LogRow, error) bool) bool {
	for i := range all {
		if err := s.resolveNames(ctx, &all[i]); err != nil {
			yield(audit.LogRow{}, s.wrapError("store.read", err))
			return false
		}
		if !yield(all[i].LogRow, nil) {
			return false
		}
	}
	return true
}

func (s *sqlStore) Find(ctx context.Context, f audit.Filter) iter.Seq2[audit.LogRow, error] {
	return func(yield func(audit.LogRow, error) bool) {
		q, err := s.translateFilter(ctx, f)
		lead := -1
		if err == nil && !q.matchesNothing {
			lead, err = s.leadCondition(ctx, &q)
		}
		left := f.Limit
		if left <= 0 {
			left = math.MaxInt
		}
		for before := f.Before; left > 0 && !q.matchesNothing; {
			n := min(left, rowsPerRead)
			var all []rawRow
			if err == nil {
				all, err = s.readPage(ctx, &q, lead, before, n, f.Bare)
			}
			if err != nil {
				yield(audit.LogRow{}, s.wrapError("store.find", err))
				return
			}
			if !s.yieldRows(ctx, all, yield) || len(all) < n {
				return
			}
			last := all[n-1]
			before = &audit.RowPosition{At: last.At, Chain: last.Chain, Seq: last.Seq}
			left -= n
		}
	}
}

// readPage reads the n newest rows that match the filter and are older than the position before. The argument lead
// is the index in q.conditions of the condition for which the database uses an index.
func (s *sqlStore) readPage(
	ctx context.Context, q *filterQuery, lead int, before *audit.RowPosition, n int, bare bool,
) (all []rawRow, err error) {
	where, args := q.whereExcept(lead, s.unindexedColumn)
	if before != nil {
		older, place := s.beforeCondition(*before)
		where, args = where+" AND "+older, append(args, place...)
	}
	c := columnCondition{values: []any{nil}}
	if lead >= 0 {
		c = q.conditions[lead]
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	p, err := conn.PrepareContext(ctx, s.bindParameters(s.selectStatement(selectedColumns(bare), c.column, where)))
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
			all, err = readRawRows(rows, all, bare)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(c.values) > 1 {
		slices.SortFunc(all, compareNewest)
		all = all[:min(n, len(all))]
	}
	return all, nil
}

// maxCountedMatches bounds how many matching rows are counted to find the condition with the fewest matches.
const maxCountedMatches = 4096

// leadCondition returns the index of the condition that matches the fewest rows, as far as that can be determined
// quickly, or -1. The database then uses the index for that column, and checks the other conditions on the rows
// that it finds.
func (s *sqlStore) leadCondition(ctx context.Context, q *filterQuery) (lead int, err error) {
	able := q.moveIndexedFirst()
	if able < 2 {
		return able - 1, nil
	}
	least := int64(maxCountedMatches)
	for i, c := range q.conditions[:able] {
		n, err := s.countUpTo(ctx, c, least)
		if err != nil {
			return 0, err
		}
		if n < least {
			least, lead = n, i
		}
	}
	if least < maxCountedMatches {
		return lead, nil
	}
	return s.rarestCondition(ctx, q.conditions[:able])
}

// rarestCondition returns the index of the condition that matches the fewest rows of a random sample.
func (s *sqlStore) rarestCondition(ctx context.Context, of []columnCondition) (lead int, err error) {
	fits := make([]string, len(of))
	var args []any
	for i, c := range of {
		where, given := c.whereClause(c.column)
		fits[i], args = "count(*) FILTER (WHERE "+where+")", append(args, given...)
	}
	counts := make([]int64, len(fits))
	into := make([]any, len(fits))
	for i := range counts {
		into[i] = &counts[i]
	}
	sample, given, err := s.sampleTable(ctx, s.db)
	if err == nil {
		err = s.db.QueryRowContext(ctx, s.bindParameters(
			"SELECT "+strings.Join(fits, ", ")+" FROM "+sample,
		), append(args, given...)...).Scan(into...)
	}
	for i, n := range counts {
		if n < counts[lead] {
			lead = i
		}
	}
	return lead, err
}

// countUpTo counts the rows that match a condition, but stops at limit.
func (s *sqlStore) countUpTo(ctx context.Context, c columnCondition, limit int64) (n int64, err error) {
	statement := s.bindParameters(s.countColumn(c.column))
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

func (s *sqlStore) Groups(ctx context.Context, f audit.Filter) ([]audit.UsageGroup, error) {
	groups, err := s.readGroups(ctx, f)
	return groups, s.wrapError("store.groups", err)
}

func (s *sqlStore) readGroups(ctx context.Context, f audit.Filter) ([]audit.UsageGroup, error) {
	q, err := s.translateFilter(ctx, f)
	if err != nil || q.matchesNothing {
		return nil, err
	}
	where, args := q.whereExcept(-1, s.unindexedColumn)
	if f.Before != nil {
		older, place := s.beforeCondition(*f.Before)
		where, args = where+" AND "+older, append(args, place...)
	}
	rows, err := s.db.QueryContext(ctx, s.bindParameters(fmt.Sprintf(`SELECT at / %d, kind, server, tool, status, count(*), CAST(sum(micros) AS BIGINT),
		CAST(sum(bytes) AS BIGINT), CAST(sum(returned) AS BIGINT), CAST(sum(avoided) AS BIGINT), max(risk)
		FROM %s WHERE 1 = 1%s GROUP BY 1, 2, 3, 4, 5`, 24*time.Hour, s.groupTable(&q), where)), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []audit.UsageGroup
	var names [][4]int64
	for rows.Next() {
		var g audit.UsageGroup
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
			if *into, err = s.nameOf(ctx, names[i][j]); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(all, func(a, b audit.UsageGroup) int {
		return cmp.Or(
			cmp.Compare(a.Day, b.Day), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Server, b.Server),
			cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Status, b.Status),
		)
	})
	return all, nil
}

func (s *sqlStore) Chains(ctx context.Context) ([]audit.ChainHead, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT name, seq, hash, base, owner FROM chains ORDER BY name")
	if err != nil {
		return nil, s.wrapError("store.chains", err)
	}
	defer rows.Close()
	var all []audit.ChainHead
	for rows.Next() {
		var h audit.ChainHead
		var chain int64
		if err := rows.Scan(&chain, &h.Seq, &h.Hash, &h.Base, &h.Owner); err != nil {
			return nil, s.wrapError("store.chains", err)
		}
		h.Chain = chainName(chain)
		all = append(all, h)
	}
	return all, s.wrapError("store.chains", rows.Err())
}
