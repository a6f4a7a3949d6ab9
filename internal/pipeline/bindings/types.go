package bindings

import "slices"

// shape selects the sort of type a node stands for.
type shape uint8

const (
	shapeAny shape = iota
	shapeNever
	shapeNull
	shapeBoolean
	shapeNumber
	shapeInteger
	shapeString
	shapeLiteral // literal
	shapeArray   // of items[0]
	shapeTuple   // items, of which the first least are required, then any number of rest
	shapeObject  // fields, and others of type index
	shapeUnion   // of items
	shapeBoth    // intersection of items
	shapeRef     // to a named type
)

// node represents a type independently of the language it is printed in.
type node struct {
	shape   shape
	literal *value
	items   []*node
	least   int
	rest    *node // nil: nothing follows
	fields  []field
	index   *node // nil: no other properties
	to      *named
	doc     doc
	note    string // what the type does not say, or why it says less than the schema
	sealed  string // of a string: the type of personal data that it is a token of
}

// field describes a property of an object type.
type field struct {
	name     string
	required bool
	node     *node
}

// named holds a type with its own name, because it is recursive or used repeatedly.
type named struct {
	name string
	node *node
}

// doc holds the documentation of a type.
type doc struct {
	text string   // as received
	tags []string // "@default 30": one line each, plain
}

func (d doc) empty() bool { return d.text == "" && len(d.tags) == 0 }

// tool holds a tool's types.
type tool struct {
	prefix string // of all its type names
	input  *named
	output *named // nil if nothing is known of the output
	names  []*named

	learned string // from what output was; "" if the tool declares it
}

var (
	anyNode  = &node{shape: shapeAny}
	nullNode = &node{shape: shapeNull}
)

func (n *node) isAny() bool { return n.shape == shapeAny }

// isScalar reports whether n is a plain type without parts.
func (n *node) isScalar() bool { return n.shape >= shapeNull && n.shape <= shapeString }

// same reports whether two simple types are equal. It returns false for other types.
func same(a, b *node) bool {
	switch {
	case a == b:
		return true
	case a.shape == shapeLiteral && b.shape == shapeLiteral:
		return a.literal.kind == b.literal.kind && a.literal.raw == b.literal.raw
	case a.shape == shapeRef && b.shape == shapeRef:
		return a.to == b.to
	}
	number := func(n *node) bool { return n.shape == shapeNumber || n.shape == shapeInteger }
	return a.isScalar() && a.shape == b.shape || number(a) && number(b)
}

// within reports whether every value of a is one of b. It returns false in doubt.
func within(a, b *node) bool {
	if same(a, b) {
		return true
	}
	if a.shape != shapeLiteral {
		return false
	}
	switch b.shape {
	case shapeString:
		return a.literal.is(jsonString)
	case shapeNumber, shapeInteger:
		return a.literal.is(jsonNumber)
	case shapeBoolean:
		return a.literal.is(jsonBool)
	}
	return false
}

// union returns the type whose values are those of any of items.
func union(items ...*node) *node {
	var kept []*node
	seen := map[any]bool{}
	items = flatten(items, shapeUnion)
	if slices.ContainsFunc(items, func(n *node) bool { return n.shape == shapeNumber }) {
		seen[shapeInteger] = true
	}
	for _, n := range items {
		if n.isAny() {
			return &node{shape: shapeAny, note: n.note}
		}
		if n.shape == shapeNever || n.repeats(seen) {
			continue
		}
		kept = append(kept, n)
	}
	switch len(kept) {
	case 0:
		return &node{shape: shapeNever}
	case 1:
		return kept[0]
	}
	return &node{shape: shapeUnion, items: kept}
}

type literalKey struct {
	kind jsonKind
	raw  string
}

// repeats reports whether n is in seen, and adds it.
func (n *node) repeats(seen map[any]bool) bool {
	var key any
	switch {
	case n.shape == shapeLiteral:
		key = literalKey{n.literal.kind, n.literal.raw}
	case n.shape == shapeRef:
		key = n.to
	case n.isScalar():
		key = n.shape
	default:
		return false
	}
	repeated := seen[key]
	seen[key] = true
	return repeated
}

// both returns the type whose values belong to all items.
func both(items ...*node) *node {
	var kept []*node
	note := ""
	for _, n := range flatten(items, shapeBoth) {
		switch {
		case n.isAny():
			note = join(note, n.note)
		case n.shape == shapeNever:
			return n
		default:
			kept = narrow(kept, n)
		}
	}
	switch len(kept) {
	case 0:
		return anyNode.noted(note)
	case 1:
		return kept[0].noted(note)
	}
	return &node{shape: shapeBoth, items: kept, note: note}
}

// noted returns n with an additional note.
func (n *node) noted(note string) *node {
	if note == "" {
		return n
	}
	c := *n
	c.note = join(n.note, note)
	return &c
}

// narrow adds n to the parts of an intersection and removes parts that another one states more precisely: string &
// ("a" | "b") becomes "a" | "b".
func narrow(kept []*node, n *node) []*node {
	for i, k := range kept {
		if covers(k, n) {
			kept[i] = n
			return kept
		}
		if covers(n, k) {
			return kept
		}
	}
	return append(kept, n)
}

// covers reports whether wide contains all of narrow. It returns false in doubt.
func covers(wide, narrow *node) bool {
	if wide.free() && narrow.objects() {
		return true
	}
	const compared = 10_000
	if len(wide.items)*len(narrow.items) > compared {
		return false
	}
	for _, n := range members(narrow) {
		in := false
		for _, w := range members(wide) {
			in = in || within(n, w)
		}
		if !in {
			return false
		}
	}
	return true
}

// free reports whether n is any object at all.
func (n *node) free() bool {
	return n.shape == shapeObject && len(n.fields) == 0 && n.index != nil && n.index.isAny()
}

// objects reports whether every value of n is an object. It returns false in doubt.
func (n *node) objects() bool {
	switch n.shape {
	case shapeObject:
		return true
	case shapeUnion:
		for _, i := range n.items {
			if !i.objects() {
				return false
			}
		}
		return true
	case shapeBoth:
		for _, i := range n.items {
			if i.objects() {
				return true
			}
		}
	}
	return false
}

func members(n *node) []*node {
	if n.shape == shapeUnion {
		return n.items
	}
	return []*node{n}
}

// flatten replaces unions within a union by their members, and likewise for intersections. Documented ones stay.
func flatten(items []*node, s shape) []*node {
	var out []*node
	for _, n := range items {
		if n.shape == s && n.doc.empty() && n.note == "" {
			out = append(out, n.items...)
		} else {
			out = append(out, n)
		}
	}
	return out
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
