// Package infer learns the structure of JSON documents: types and names of fields, never values. Shapes of several
// documents join to the same shape in any order, however often one of them is seen. It is pure.
package infer

import (
	"cmp"
	"slices"
)

// Bounds on one shape.
const (
	MaxDepth = 12  // of values in each other
	MaxNodes = 400 // of types in one shape
)

// kind is a set of JSON types.
type kind uint8

const (
	null kind = 1 << iota
	boolean
	integer // a number without fraction and exponent
	number  // one with
	text
	array
	object
)

// format is a set of text formats.
type format uint8

const (
	dateTime format = 1 << iota
	date
	formats = dateTime | date
)

// Shape describes the known values at one place of documents. It is immutable.
type Shape struct {
	kinds   kind
	formats format  // those that all texts had, but for empty ones; all, if there was none
	fields  []field // of objects, sorted by name
	others  *Shape  // what objects have under keys that are no names; nil: they have none
	plain   bool    // some of these keys are spelled like names
	items   *Shape  // of arrays; nil: they were empty
	cut     bool    // something below was not examined, or is not stored
}

// field describes a member of objects.
type field struct {
	name   string
	always bool // every object had it
	of     *Shape
}

// Join returns the shape that covers all values of a and b. It is commutative, associative and idempotent. A nil
// Shape covers nothing.
func Join(a, b *Shape) *Shape { return bounded(join(a, b)) }

func join(a, b *Shape) *Shape {
	switch {
	case a == nil || a == b:
		return b
	case b == nil:
		return a
	}
	return &Shape{
		kinds: a.kinds | b.kinds, formats: a.formats & b.formats, plain: a.plain || b.plain, cut: a.cut || b.cut,
		fields: joinFields(a, b), others: join(a.others, b.others), items: join(a.items, b.items),
	}
}

func joinFields(a, b *Shape) []field {
	out := make([]field, 0, max(len(a.fields), len(b.fields)))
	i, j := 0, 0
	for i < len(a.fields) || j < len(b.fields) {
		switch order := nextOf(a.fields[i:], b.fields[j:]); {
		case order < 0:
			out = append(out, a.fields[i].beside(b))
			i++
		case order > 0:
			out = append(out, b.fields[j].beside(a))
			j++
		default:
			f, g := a.fields[i], b.fields[j]
			out = append(out, field{f.name, f.always && g.always, join(f.of, g.of)})
			i, j = i+1, j+1
		}
	}
	return out
}

// nextOf reports which of two sorted lists has the smaller next name: the first (-1), the second (1) or both (0).
func nextOf(a, b []field) int {
	switch {
	case len(b) == 0:
		return -1
	case len(a) == 0:
		return 1
	}
	return cmp.Compare(a[0].name, b[0].name)
}

// beside returns the field joined with objects that do not have it.
func (f field) beside(other *Shape) field {
	f.always = f.always && other.kinds&object == 0
	return f
}

// Equal reports whether two shapes are equal.
func Equal(a, b *Shape) bool {
	if a == b || a == nil || b == nil {
		return a == b
	}
	return a.kinds == b.kinds && a.formats == b.formats && a.plain == b.plain && a.cut == b.cut && Equal(a.others, b.others) && Equal(a.items, b.items) &&
		slices.EqualFunc(a.fields, b.fields, func(f, g field) bool { return f.name == g.name && f.always == g.always && Equal(f.of, g.of) })
}

// bounded keeps the first MaxNodes nodes of a shape, by depth and then by name. The result is the same in whatever
// order shapes were joined and cut.
func bounded(s *Shape) *Shape {
	if s == nil || s.size(MaxNodes) <= MaxNodes {
		return s
	}
	left := MaxNodes - 1
	out := *s
	for level := []*Shape{&out}; len(level) > 0; {
		var next []*Shape
		for _, parent := range level {
			next = append(next, parent.keep(&left)...)
		}
		level = next
	}
	return &out
}

// keep adds children to s as long as there is room, and drops the others.
func (s *Shape) keep(left *int) (kept []*Shape) {
	own := func(child *Shape) *Shape {
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
	var fields []field
	for _, f := range s.fields {
		if f.of = own(f.of); f.of != nil {
			fields = append(fields, f)
		}
	}
	s.fields, s.others, s.items = fields, own(s.others), own(s.items)
	return kept
}

// size counts the types in a shape and stops when there are more than most.
func (s *Shape) size(most int) int {
	if s == nil || most < 0 {
		return 0
	}
	n := 1
	for _, f := range s.fields {
		n += f.of.size(most - n)
	}
	n += s.others.size(most - n)
	return n + s.items.size(most-n)
}
