package infer

import "slices"

// Minimum sizes for recognising a table, which is an object whose keys are values, such as IDs. An object is taken
// for a table if one of its keys does not look like a field name, or if its values have similar types. A table is
// stored without its keys.
const (
	fewRows   = 2  // rows that have exactly the same fields
	someRows  = 4  // rows that share most of their fields
	manyCells = 12 // plain values of one type
)

// foldTables returns the inferred type s with the keys of its tables removed.
func foldTables(s *AnswerShape) *AnswerShape {
	f := tableFolder{left: mostFolded}
	return f.foldShape(s)
}

// mostFolded bounds how many types are examined to find tables (objects whose keys are values). The bound is needed
// because tables within tables are examined repeatedly.
const mostFolded = 100_000

type tableFolder struct{ left int }

func (w *tableFolder) foldShape(s *AnswerShape) *AnswerShape {
	if s == nil {
		return nil
	}
	if w.left--; w.left < 0 {
		return &AnswerShape{kinds: s.kinds, formats: s.formats, cut: true}
	}
	out := *s
	out.others, out.items, out.fields = w.foldShape(s.others), w.foldShape(s.items), nil
	for _, f := range s.fields {
		f.of = w.foldShape(f.of)
		out.fields = append(out.fields, f)
	}
	if whole := isTable(out.fields); whole || out.others != nil {
		w.moveKeys(&out, whole)
	}
	return &out
}

// moveKeys converts the inferred type s of an object to the type of a table, an object whose keys are values such as
// ids. It removes the fields of s and joins their types into one type for all rows of the table. If all is false, it
// leaves the fields that occurred in every document. Then it converts the tables within the rows.
func (w *tableFolder) moveKeys(s *AnswerShape, all bool) {
	var kept []shapeField
	for _, f := range s.fields {
		if f.always && !all {
			kept = append(kept, f)
		} else {
			s.others, s.plain = joinShapes(s.others, f.of), true
		}
	}
	if len(kept) < len(s.fields) {
		s.others = w.foldShape(s.others)
	}
	s.fields = kept
}

// isTable reports whether an object is probably a table, although its keys look like names of fields. It is one if
// its values, the rows of the table, have similar types, or if it has many plain values of the same type.
func isTable(fields []shapeField) bool {
	if len(fields) < fewRows {
		return false
	}
	row := rowType(fields[0].of)
	if row == nil {
		return areCells(fields)
	}
	shared, all := fieldNames(row), fieldNames(row)
	for _, f := range fields[1:] {
		next := rowType(f.of)
		if next == nil {
			return false
		}
		has := fieldNames(next)
		shared = slices.DeleteFunc(shared, func(n string) bool { return !slices.Contains(has, n) })
		for _, n := range has {
			if !slices.Contains(all, n) {
				all = append(all, n)
			}
		}
		if len(fields) < someRows && len(shared) < len(all) || 2*len(shared) <= len(all) {
			return false // nor will others make it one
		}
	}
	return len(fields) > fewRows || len(shared) > 1
}

// rowType returns the inferred type of a table's rows, given the type s of one value in the table. If the value is
// an object, the object is a row. If it is a list of objects, these are rows. Otherwise rowType returns nil.
func rowType(s *AnswerShape) *AnswerShape {
	for s != nil && s.kinds&^null == array {
		s = s.items
	}
	if s == nil || s.kinds&^null != object || len(s.fields) == 0 {
		return nil
	}
	return s
}

func fieldNames(s *AnswerShape) []string {
	out := make([]string, len(s.fields))
	for i, f := range s.fields {
		out[i] = f.name
	}
	return out
}

func areCells(fields []shapeField) bool {
	if len(fields) < manyCells {
		return false
	}
	return !slices.ContainsFunc(fields, func(f shapeField) bool {
		return f.always || f.of.kinds&(object|array) != 0 || f.of.kinds&^null != fields[0].of.kinds&^null
	})
}
