// Package infer learns the structure of JSON documents: types and names of fields, never values. Joining the shapes
// of several documents gives the same shape in any order, even if a document is seen more than once. The package does
// no I/O.
package infer

import (
	"cmp"
	"slices"
)

// Bounds on one inferred type.
const (
	MaxDepth = 12  // nested values
	MaxNodes = 400 // types in one shape
)

// kindSet represents a set of JSON types.
type kindSet uint8

const (
	null kindSet = 1 << iota
	boolean
	integer // number without fraction and exponent
	number  // number with fraction or exponent
	text
	array
	object
)

// formatSet represents a set of text formats, such as date.
type formatSet uint8

const (
	dateTime formatSet = 1 << iota
	date
	allFormats = dateTime | date
)

// AnswerShape is a type inferred from JSON documents. It describes the values that were seen at one place in
// documents, such as those of one field. It is immutable.
type AnswerShape struct {
	kinds   kindSet
	formats formatSet    // formats that all non-empty texts had; all formats if every text was empty
	fields  []shapeField // fields of objects, sorted by name
	others  *AnswerShape // values of objects under keys that are not names; nil: there were none
	plain   bool         // some keys of others look like names
	items   *AnswerShape // items of arrays; nil: all arrays were empty
	cut     bool         // something below was not examined or not stored
}

// shapeField holds the name and inferred type of one member of an object.
type shapeField struct {
	name   string
	always bool // every object had the field
	of     *AnswerShape
}

// JoinShapes returns the shape that covers all values of a and b. It is commutative, associative and idempotent. A
// nil AnswerShape covers nothing.
func JoinShapes(a, b *AnswerShape) *AnswerShape { return boundNodes(joinShapes(a, b)) }

func joinShapes(a, b *AnswerShape) *AnswerShape {
	switch {
	case a == nil || a == b:
		return b
	case b == nil:
		return a
	}
	return &AnswerShape{
		kinds: a.kinds | b.kinds, formats: a.formats & b.formats, plain: a.plain || b.plain, cut: a.cut || b.cut,
		fields: joinFields(a, b), others: joinShapes(a.others, b.others), items: joinShapes(a.items, b.items),
	}
}

func joinFields(a, b *AnswerShape) []shapeField {
	out := make([]shapeField, 0, max(len(a.fields), len(b.fields)))
	i, j := 0, 0
	for i < len(a.fields) || j < len(b.fields) {
		switch order := compareFirst(a.fields[i:], b.fields[j:]); {
		case order < 0:
			out = append(out, a.fields[i].joinAbsent(b))
			i++
		case order > 0:
			out = append(out, b.fields[j].joinAbsent(a))
			j++
		default:
			f, g := a.fields[i], b.fields[j]
			out = append(out, shapeField{f.name, f.always && g.always, joinShapes(f.of, g.of)})
			i, j = i+1, j+1
		}
	}
	return out
}

// compareFirst compares the names of the first fields of two lists, which are both sorted by name. It returns -1
// if the first name of a comes first or b is empty, 1 if that of b comes first or a is empty, and 0 if both names
// are equal.
func compareFirst(a, b []shapeField) int {
	switch {
	case len(b) == 0:
		return -1
	case len(a) == 0:
		return 1
	}
	return cmp.Compare(a[0].name, b[0].name)
}

// joinAbsent returns the field as it is after joining with the type other, which does not have this field. If
// other includes objects, the field becomes optional.
func (f shapeField) joinAbsent(other *AnswerShape) shapeField {
	f.always = f.always && other.kinds&object == 0
	return f
}

// EqualShapes reports whether two shapes are equal.
func EqualShapes(a, b *AnswerShape) bool {
	if a == b || a == nil || b == nil {
		return a == b
	}
	return a.kinds == b.kinds && a.formats == b.formats && a.plain == b.plain && a.cut == b.cut && EqualShapes(a.others, b.others) &&
		EqualShapes(a.items, b.items) &&
		slices.EqualFunc(
			a.fields, b.fields,
			func(f, g shapeField) bool { return f.name == g.name && f.always == g.always && EqualShapes(f.of, g.of) },
		)
}

// boundNodes reduces a shape to its first MaxNodes nodes, ordered by depth and then by name. The result does not
// depend on the order in which shapes were joined and reduced.
func boundNodes(s *AnswerShape) *AnswerShape {
	if s == nil || s.countTypes(MaxNodes) <= MaxNodes {
		return s
	}
	left := MaxNodes - 1
	out := *s
	for level := []*AnswerShape{&out}; len(level) > 0; {
		var next []*AnswerShape
		for _, parent := range level {
			next = append(next, parent.keepChildren(&left)...)
		}
		level = next
	}
	return &out
}

// keepChildren replaces the types of the fields and items of s by copies, and returns the copies. left is the
// number of types that may still be kept: keepChildren subtracts one for each copy, and drops the remaining fields
// and items when left is 0.
func (s *AnswerShape) keepChildren(left *int) (kept []*AnswerShape) {
	own := func(child *AnswerShape) *AnswerShape {
		switch {
		case child == nil:
			return nil
		case *left <= 0:
			s.cut = true
			return nil
		}
		*left--
		c := *child
		kept = append(kept, &c)
		return &c
	}
	var fields []shapeField
	for _, f := range s.fields {
		if f.of = own(f.of); f.of != nil {
			fields = append(fields, f)
		}
	}
	s.fields, s.others, s.items = fields, own(s.others), own(s.items)
	return kept
}

// countTypes returns the number of types in a shape. It stops counting when the number exceeds the argument most.
func (s *AnswerShape) countTypes(most int) int {
	if s == nil || most < 0 {
		return 0
	}
	n := 1
	for _, f := range s.fields {
		n += f.of.countTypes(most - n)
	}
	n += s.others.countTypes(most - n)
	return n + s.items.countTypes(most-n)
}
