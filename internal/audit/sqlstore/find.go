package sqlstore

import (
	"context"

	"slices"
	"strings"

	"retort/internal/audit"
)

// rowsPerRead is the number of rows that are read at once. Between two reads no transaction is open, so that a slow
// reader does not make the write-ahead log grow.
const rowsPerRead = 1000

// columnCondition demands that a column has one of several values.
type columnCondition struct {
	column string
	values []any
	empty  bool // whether values contains the empty name, which some indexes omit
}

// filterQuery holds a filter translated to SQL: conditions on columns, in which names are replaced by their numbers.
type filterQuery struct {
	conditions     []columnCondition
	where          string // SQL of all further conditions
	args           []any
	matchesNothing bool // no row can match
}

func (q *filterQuery) addCondition(where string, args ...any) {
	q.where += " AND " + where
	q.args = append(q.args, args...)
}

// whereClause returns the condition as SQL with its arguments. column is the SQL expression for the column.
func (c columnCondition) whereClause(column string) (string, []any) {
	if c.column == "risk" {
		return column + " >= ?", c.values[:1]
	}
	return column + " IN (?" + strings.Repeat(", ?", len(c.values)-1) + ")", c.values
}

// whereExcept returns the SQL of all conditions except the one with index lead, together with their arguments. The
// function written returns the SQL expression for a column.
func (q *filterQuery) whereExcept(lead int, written func(column string) string) (where string, args []any) {
	where, args = q.where, slices.Clone(q.args)
	for i, c := range q.conditions {
		if i != lead {
			more, given := c.whereClause(written(c.column))
			where, args = where+" AND "+more, append(args, given...)
		}
	}
	return where, args
}

// moveIndexedFirst moves the conditions for which an index can be used to the front, and returns their number.
func (q *filterQuery) moveIndexedFirst() (n int) {
	for i, c := range q.conditions {
		if !c.empty {
			q.conditions[i], q.conditions[n] = q.conditions[n], c
			n++
		}
	}
	return n
}

// translateFilter translates a filter to SQL conditions. It omits the field Before.
func (s *sqlStore) translateFilter(ctx context.Context, f audit.Filter) (q filterQuery, err error) {
	if f.Chain != "" {
		chain, ok := chainOf(f.Chain)
		where, args, maybe := s.chainCondition(chain)
		if q.matchesNothing = !ok || !maybe; q.matchesNothing {
			return q, nil
		}
		if where != "" {
			q.addCondition(where, args...)
		}
	}
	if !f.From.IsZero() {
		q.addCondition("at >= ?", f.From.UnixNano())
	}
	if !f.To.IsZero() {
		q.addCondition("at < ?", f.To.UnixNano())
	}
	if len(f.Executions) > 0 {
		c := columnCondition{column: "execution"}
		for _, e := range slices.Compact(slices.Sorted(slices.Values(f.Executions))) {
			c.values, c.empty = append(c.values, []byte(e)), c.empty || e == ""
		}
		q.conditions = append(q.conditions, c)
	}
	if f.MinRisk > 0 {
		c := columnCondition{column: "risk"}
		for risk := f.MinRisk; risk <= maxRisk; risk++ {
			c.values = append(c.values, risk)
		}
		q.conditions, q.matchesNothing = append(q.conditions, c), len(c.values) == 0
	}
	one := func(name string) []string {
		if name == "" {
			return nil
		}
		return []string{name}
	}
	for _, c := range []struct {
		column string
		names  []string
	}{
		{"session", one(f.Session)}, {"tool", one(f.Tool)}, {"status", f.AllStatuses()}, {"server", one(f.Server)},
		{"kind", f.Kinds}, {"principal", one(f.Principal)},
	} {
		if err := s.addNameCondition(ctx, &q, c.column, c.names); err != nil {
			return q, err
		}
	}
	return q, nil
}

// maxRisk is the highest risk score of an entry.
const maxRisk = 100

// addNameCondition adds the condition that a column has one of the given names. It adds nothing if no names are
// given.
func (s *sqlStore) addNameCondition(ctx context.Context, q *filterQuery, column string, all []string) error {
	if len(all) == 0 {
		return nil
	}
	c := columnCondition{column: column}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(all))) {
		id, ok, err := s.findName(ctx, s.db, name)
		if err != nil {
			return err
		}
		if ok {
			c.values, c.empty = append(c.values, id), c.empty || id == 0
		}
	}
	q.matchesNothing = q.matchesNothing || len(c.values) == 0
	q.conditions = append(q.conditions, c)
	return nil
}

// indexCondition returns the SQL condition that a column equals a parameter. It is written so that the database can
// use the column's index, which may omit empty values.
func indexCondition(column, empty string) string {
	switch column {
	case "execution":
		return "execution = ? AND execution <> " + empty
	case "risk":
		return "risk = ? AND risk >= 0"
	case "session", "principal", "kind":
		return column + " = ?"
	}
	return column + " = ? AND " + column + " <> 0"
}
