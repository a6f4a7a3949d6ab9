package sqlstore

import (
	"context"
	"slices"

	"retort/internal/audit"
)

// groupTable returns the table or index whose rows are added up for usage. A filter by execution needs the whole
// table, because the index lacks the column for executions.
func (s *sqlStore) groupTable(q *filterQuery) string {
	if slices.ContainsFunc(q.conditions, func(c columnCondition) bool { return c.column == "execution" }) {
		return "entries"
	}
	return s.countTable()
}

var _ audit.BriefFinder = (*sqlStore)(nil)

// Brief implements audit.BriefFinder.
func (s *sqlStore) Brief(ctx context.Context, f audit.Filter) ([]audit.LogRow, error) {
	rows, err := s.briefRows(ctx, f)
	return rows, s.wrapError("store.brief", err)
}

func (s *sqlStore) briefRows(ctx context.Context, f audit.Filter) ([]audit.LogRow, error) {
	q, err := s.translateFilter(ctx, f)
	if err != nil || q.matchesNothing {
		return nil, err
	}
	where, args := q.whereExcept(-1, func(column string) string { return column })
	limit := int64(f.Limit)
	if limit == 0 {
		limit = 1 << 62
	}
	rows, err := s.db.QueryContext(ctx, s.bindParameters(
		"SELECT at, seq, principal, status, micros, returned, avoided FROM "+s.groupTable(&q)+" WHERE 1 = 1"+where+
			" ORDER BY at DESC, seq DESC LIMIT ?",
	), append(args, limit)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []audit.LogRow
	var names [][2]int64
	for rows.Next() {
		var r audit.LogRow
		var n [2]int64
		if err := rows.Scan(&r.At, &r.Seq, &n[0], &n[1], &r.Micros, &r.Returned, &r.Avoided); err != nil {
			return nil, err
		}
		all, names = append(all, r), append(names, n)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Principal, err = s.nameOf(ctx, names[i][0]); err == nil {
			all[i].Status, err = s.nameOf(ctx, names[i][1])
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
