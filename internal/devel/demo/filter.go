package demo

import (
	"fmt"
	"slices"
	"strings"
)

// filterCondition represents one filter of a search. It compares the value of a field with a given one or, for "in",
// with several.
type filterCondition struct {
	Field string `json:"field"`
	Op    string `json:"op"`
	Value any    `json:"value"`
}

type sortOrder struct {
	Field     string `json:"field"`
	Direction string `json:"direction"`
}

// filterRows returns the rows that meet every condition, in the requested order. The caller may change the slice but
// not the rows, which belong to the table.
func (t *dataTable) filterRows(conditions []filterCondition, by sortOrder) ([][]any, error) {
	var tests []func(row []any) bool
	for _, c := range conditions {
		test, err := t.compileCondition(c)
		if err != nil {
			return nil, err
		}
		tests = append(tests, test)
	}
	found := [][]any{}
	for _, row := range t.rows {
		if !slices.ContainsFunc(tests, func(test func([]any) bool) bool { return !test(row) }) {
			found = append(found, row)
		}
	}
	if by.Field == "" {
		return found, nil
	}
	i, err := t.fieldIndex(by.Field)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(found, func(a, b []any) int {
		n, _ := orderValues(a[i], b[i])
		if by.Direction == "desc" {
			return -n
		}
		return n
	})
	return found, nil
}

// fieldIndex returns the index of a column. The error lists the existing columns.
func (t *dataTable) fieldIndex(name string) (int, error) {
	if i := t.columnIndex(name); i >= 0 {
		return i, nil
	}
	return -1, fmt.Errorf("INVALID_FIELD: %s has no field '%s'; it has %s", t.name, name, strings.Join(t.colNames(), ", "))
}

func (t *dataTable) compileCondition(c filterCondition) (func(row []any) bool, error) {
	i, err := t.fieldIndex(c.Field)
	if err != nil {
		return nil, err
	}
	list, isList := c.Value.([]any)
	if isList != (c.Op == "in") {
		return nil, fmt.Errorf("INVALID_FILTER: %s: the operator in, and no other, needs a list of values", c.Field)
	}
	if c.Op == "contains" {
		part, ok := c.Value.(string)
		if !ok {
			return nil, fmt.Errorf("INVALID_FILTER: %s: contains needs a text", c.Field)
		}
		return func(row []any) bool { return containsFold(fmt.Sprint(row[i]), part) }, nil
	}
	is := func(v, want any) bool { n, ok := orderValues(v, want); return ok && n == 0 }
	if isList {
		return func(row []any) bool {
			return slices.ContainsFunc(list, func(want any) bool { return is(row[i], want) })
		}, nil
	}
	return func(row []any) bool {
		n, ok := orderValues(row[i], c.Value)
		switch c.Op {
		case "eq":
			return ok && n == 0
		case "ne":
			return !ok || n != 0
		case "lt":
			return ok && n < 0
		case "lte":
			return ok && n <= 0
		case "gt":
			return ok && n > 0
		}
		return ok && n >= 0
	}, nil
}
