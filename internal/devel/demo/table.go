package demo

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// columnType names a type of values in a column.
type columnType string

const (
	textKind     columnType = "text"
	integerKind  columnType = "integer"
	decimalKind  columnType = "decimal"
	booleanKind  columnType = "boolean"
	dateKind     columnType = "date"
	datetimeKind columnType = "datetime"
)

type tableColumn struct {
	name    string
	kind    columnType
	options []string // allowed values; empty: any
	fixed   bool     // only the server sets the value
}

// maxDecimal bounds the decimal numbers in tables, so that no sum of them overflows.
const maxDecimal = 1e15

// dataTable holds rows of values. A value is a string, an int64, a float64, a bool or nil. Dates are strings that sort
// by time.
type dataTable struct {
	name string
	cols []tableColumn
	rows [][]any
}

// columnIndex returns the index of a column, ignoring the case of its name, or -1.
func (t *dataTable) columnIndex(name string) int {
	return slices.IndexFunc(t.cols, func(c tableColumn) bool { return strings.EqualFold(c.name, name) })
}

func (t *dataTable) colNames() []string {
	names := make([]string, len(t.cols))
	for i, c := range t.cols {
		names[i] = c.name
	}
	return names
}

// rowIndex returns the index of the row whose first column is key, or -1.
func (t *dataTable) rowIndex(key any) int {
	return slices.IndexFunc(t.rows, func(r []any) bool { return r[0] == key })
}

// convertValue converts a decoded JSON value to one that the column can store.
func (c tableColumn) convertValue(v any) (any, error) {
	if v == nil {
		return nil, nil
	}
	switch x := v.(type) {
	case string:
		return c.fitText(x)
	case float64:
		if c.kind == decimalKind && math.Abs(x) <= maxDecimal {
			return x, nil
		}
		if c.kind == integerKind && x == float64(int64(x)) {
			return int64(x), nil
		}
	case int64:
		if c.kind == integerKind {
			return x, nil
		}
		if c.kind == decimalKind {
			return float64(x), nil
		}
	case bool:
		if c.kind == booleanKind {
			return x, nil
		}
	}
	return nil, fmt.Errorf("%s must be of type %s, not %s", c.name, c.kind, encodeJSON(v))
}

func (c tableColumn) fitText(s string) (any, error) {
	switch c.kind {
	case textKind:
		if len(c.options) > 0 && !slices.Contains(c.options, s) {
			return nil, fmt.Errorf("%s must be one of %s, not '%s'", c.name, strings.Join(c.options, ", "), s)
		}
		return s, nil
	case dateKind:
		if _, err := time.Parse(time.DateOnly, s); err == nil {
			return s, nil
		}
	case datetimeKind:
		if t, err := time.Parse(time.RFC3339, s); err == nil {
			return t.UTC().Format(time.RFC3339), nil
		}
	}
	return nil, fmt.Errorf("%s must be of type %s, not '%s'", c.name, c.kind, s)
}

// encodeRows encodes rows as a JSON array of objects with the columns in order. If only names columns, the objects
// have just these and the first column.
func (t *dataTable) encodeRows(rows [][]any, only ...string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	keys := t.encodedKeys(only)
	b.WriteByte('[')
	for _, row := range rows {
		b.WriteByte('{')
		for i, key := range keys {
			if key != nil {
				b.Write(key)
				_ = e.Encode(row[i]) // strings, numbers and booleans can be encoded
				b.Bytes()[b.Len()-1] = ','
			}
		}
		b.Bytes()[b.Len()-1] = '}'
		b.WriteByte(',')
	}
	return append(bytes.TrimSuffix(b.Bytes(), []byte(",")), ']')
}

// encodedKeys returns the column names as JSON, each followed by a colon. It has nil in place of columns that are
// left out.
func (t *dataTable) encodedKeys(only []string) [][]byte {
	keys := make([][]byte, len(t.cols))
	for i, c := range t.cols {
		if i == 0 || len(only) == 0 || slices.Contains(only, c.name) {
			keys[i] = append(encodeJSON(c.name), ':')
		}
	}
	return keys
}

// orderValues compares two values for sorting: nil comes first, numbers are compared by value, everything else as
// text. ok is false for values of different types.
func orderValues(a, b any) (int, bool) {
	if a == nil || b == nil {
		return typeRank(a) - typeRank(b), a == nil && b == nil
	}
	if x, ok := a.(int64); ok {
		if y, ok := b.(int64); ok { // exact beyond 2^53
			return cmp.Compare(x, y), true
		}
	}
	if x, ok := numberValue(a); ok {
		if y, ok := numberValue(b); ok {
			return cmp.Compare(x, y), true
		}
		return -1, false
	}
	if x, ok := a.(bool); ok {
		if y, ok := b.(bool); ok {
			return boolRank(x) - boolRank(y), true
		}
		return -1, false
	}
	x, isText := a.(string)
	y, ok := b.(string)
	return strings.Compare(x, y), isText && ok
}

func typeRank(v any) int { return boolRank(v != nil) }

func boolRank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// numberValue converts a number of a table, which is an int64 or a float64, to a float64. It returns false for other
// types.
func numberValue(v any) (float64, bool) {
	switch x := v.(type) {
	case int64:
		return float64(x), true
	case float64:
		return x, true
	}
	return 0, false
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
