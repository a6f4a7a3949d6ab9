package demo

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// matchingRows returns the rows of t for which where is true.
func (t *dataTable) matchingRows(where sqlCondition) ([][]any, error) {
	if where == nil {
		return slices.Clone(t.rows), nil
	}
	test, err := where(t)
	if err != nil {
		return nil, err
	}
	rows := [][]any{}
	for _, row := range t.rows {
		if test(row) == true {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// resultRow is one row of a result. Unless it stands for several rows, it refers to its source row.
type resultRow struct {
	values []any
	from   []any
}

// runSelect returns the result of a query as a new table.
func (s *selectStmt) runSelect(t *dataTable) (*dataTable, error) {
	rows, err := t.matchingRows(s.where)
	if err != nil {
		return nil, err
	}
	items := s.items
	if len(items) == 0 {
		for _, c := range t.cols {
			items = append(items, selectItem{column: c.name})
		}
	}
	out, err := resultTable(t, items)
	if err != nil {
		return nil, err
	}
	answers, err := s.makeResults(t, items, rows)
	if err != nil {
		return nil, err
	}
	if s.distinct {
		answers = uniqueResults(answers)
	}
	if err := s.sortResults(t, items, answers); err != nil {
		return nil, err
	}
	limit := s.limit
	if limit < 0 {
		limit = len(answers)
	}
	for _, a := range pageByOffset(answers, s.offset, limit) {
		out.rows = append(out.rows, a.values)
	}
	return out, nil
}

// resultTable returns a table with the columns of a result. Their names must differ.
func resultTable(t *dataTable, items []selectItem) (*dataTable, error) {
	out := &dataTable{name: t.name}
	for _, item := range items {
		name := orDefault(item.alias, item.columnName())
		if i := t.columnIndex(item.column); item.aggregate == "" && item.alias == "" && i >= 0 {
			name = t.cols[i].name
		}
		if slices.Contains(out.colNames(), name) {
			return nil, fmt.Errorf("the result has two columns %q; name one with AS", name)
		}
		out.cols = append(out.cols, tableColumn{name: name})
	}
	return out, nil
}

func (s *selectStmt) makeResults(t *dataTable, items []selectItem, rows [][]any) ([]resultRow, error) {
	columns := make([]int, len(items))
	grouped := len(s.group) > 0
	for i, item := range items {
		grouped = grouped || item.aggregate != ""
		if item.column == "" {
			continue
		}
		var err error
		if columns[i], err = t.sqlColumn(item.column); err != nil {
			return nil, err
		}
	}
	if grouped {
		return s.groupResults(t, items, columns, rows)
	}
	answers := make([]resultRow, len(rows))
	for i, row := range rows {
		values := make([]any, len(columns))
		for j, c := range columns {
			values[j] = row[c]
		}
		answers[i] = resultRow{values, row}
	}
	return answers, nil
}

// groupResults returns one answer for each group of rows, in the order in which the groups first appear. Without GROUP BY,
// all rows form one group.
func (s *selectStmt) groupResults(t *dataTable, items []selectItem, columns []int, rows [][]any) ([]resultRow, error) {
	var keys []int
	for _, name := range s.group {
		i, err := t.sqlColumn(name)
		if err != nil {
			return nil, err
		}
		keys = append(keys, i)
	}
	for i, item := range items {
		if item.aggregate == "" && !slices.Contains(keys, columns[i]) {
			return nil, fmt.Errorf("column %q must appear in GROUP BY or in an aggregate", item.column)
		}
	}
	var answers []resultRow
	for _, group := range splitGroups(rows, keys) {
		values := make([]any, len(items))
		for i, item := range items {
			v, err := item.itemValue(group, columns[i])
			if err != nil {
				return nil, err
			}
			values[i] = v
		}
		answers = append(answers, resultRow{values: values})
	}
	return answers, nil
}

// splitGroups groups the rows that have equal values in the columns keys.
func splitGroups(rows [][]any, keys []int) [][][]any {
	if len(keys) == 0 {
		return [][][]any{rows}
	}
	var groups [][][]any
	index := map[string]int{}
	for _, row := range rows {
		key := make([]any, len(keys))
		for i, k := range keys {
			key[i] = row[k]
		}
		name := string(encodeJSON(key))
		i, seen := index[name]
		if !seen {
			i = len(groups)
			index[name] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], row)
	}
	return groups
}

// itemValue returns the item's value for a group of rows. A plain column has the same value in all of them.
func (i selectItem) itemValue(group [][]any, column int) (any, error) {
	if i.aggregate == "" {
		return group[0][column], nil
	}
	if i.column == "" {
		return int64(len(group)), nil
	}
	var values []any
	seen := map[any]bool{}
	for _, row := range group {
		v := row[column]
		if v == nil || i.distinct && seen[v] {
			continue
		}
		seen[v] = i.distinct
		values = append(values, v)
	}
	return aggregateValues(i, values)
}

func aggregateValues(item selectItem, values []any) (any, error) {
	if item.aggregate == "COUNT" {
		return int64(len(values)), nil
	}
	if len(values) == 0 {
		return nil, nil
	}
	byValue := func(a, b any) int { n, _ := orderValues(a, b); return n }
	switch item.aggregate {
	case "MIN":
		return slices.MinFunc(values, byValue), nil
	case "MAX":
		return slices.MaxFunc(values, byValue), nil
	}
	return sumValues(item, values)
}

// sumValues computes SUM or AVG. Decimals are rounded to four digits.
func sumValues(item selectItem, values []any) (any, error) {
	total, whole := 0.0, true
	var exact int64
	for _, v := range values {
		x, ok := numberValue(v)
		if !ok {
			return nil, fmt.Errorf("function %s(text) does not exist: %q has no numbers", strings.ToLower(item.aggregate), item.column)
		}
		n, isWhole := v.(int64)
		total, exact, whole = total+x, exact+n, whole && isWhole
	}
	if math.Abs(total) >= math.MaxInt64 {
		return nil, fmt.Errorf("%s is out of range", item.columnName())
	}
	switch {
	case item.aggregate == "AVG":
		return math.Round(total/float64(len(values))*1e4) / 1e4, nil
	case whole:
		return exact, nil
	}
	return math.Round(total*1e4) / 1e4, nil
}

func uniqueResults(answers []resultRow) []resultRow {
	seen := map[string]bool{}
	return slices.DeleteFunc(answers, func(a resultRow) bool {
		key := string(encodeJSON(a.values))
		again := seen[key]
		seen[key] = true
		return again
	})
}

// sortResults orders the answers by the columns of the result or, where an answer is
// one row, by any column of the table.
func (s *selectStmt) sortResults(t *dataTable, items []selectItem, answers []resultRow) error {
	var keys []func(resultRow) any
	for _, k := range s.order {
		key, err := s.sortKey(t, items, k)
		if err != nil {
			return err
		}
		keys = append(keys, key)
	}
	slices.SortStableFunc(answers, func(a, b resultRow) int {
		for i, key := range keys {
			n, _ := orderValues(key(a), key(b))
			if s.order[i].descending {
				n = -n
			}
			if n != 0 {
				return n
			}
		}
		return 0
	})
	return nil
}

func (s *selectStmt) sortKey(t *dataTable, items []selectItem, k orderKey) (func(resultRow) any, error) {
	at := slices.IndexFunc(items, func(i selectItem) bool {
		return strings.EqualFold(i.alias, k.item.columnName()) || strings.EqualFold(i.columnName(), k.item.columnName())
	})
	if k.ordinal > 0 {
		at = k.ordinal - 1
	}
	if at >= len(items) {
		return nil, fmt.Errorf("ORDER BY position %d is not in the select list", k.ordinal)
	}
	if at >= 0 {
		return func(a resultRow) any { return a.values[at] }, nil
	}
	oneRow := len(s.group) == 0 && !slices.ContainsFunc(items, func(i selectItem) bool { return i.aggregate != "" })
	if k.item.aggregate != "" || !oneRow || s.distinct {
		return nil, fmt.Errorf("ORDER BY %s must appear in the select list", k.item.columnName())
	}
	c, err := t.sqlColumn(k.item.column)
	return func(a resultRow) any { return a.from[c] }, err
}
