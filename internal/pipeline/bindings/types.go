package bindings

import "slices"

// typeShape is the kind of a type: string, object, union, ….
type typeShape uint8

const (
	shapeAny typeShape = iota
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

// typeNode describes a type independently of the language in which it is printed.
type typeNode struct {
	shape   typeShape
	literal *jsonValue
	items   []*typeNode
	least   int
	rest    *typeNode // nil: nothing follows
	fields  []objectField
	index   *typeNode // nil: no other properties
	to      *namedType
	doc     typeDoc
	note    string // what the type does not say, or why it says less than the schema
	sealed  string // of a string: the type of personal data that it is a token of
}

// objectField describes a property of an object type.
type objectField struct {
	name     string
	required bool
	node     *typeNode
}

// namedType holds a type with its own name, because it is recursive or used repeatedly.
type namedType struct {
	name string
	node *typeNode
}

// typeDoc holds the text and the tags that document a type.
type typeDoc struct {
	text string   // as received
	tags []string // "@default 30": one line each, plain
}

func (d typeDoc) isEmpty() bool { return d.text == "" && len(d.tags) == 0 }

// toolTypes holds the types of a tool's input and output, and the named types that they refer to.
type toolTypes struct {
	prefix string // of all its type names
	input  *namedType
	output *namedType // nil if nothing is known of the output
	names  []*namedType

	learned string // from what output was; "" if the tool declares it
}

var (
	anyNode  = &typeNode{shape: shapeAny}
	nullNode = &typeNode{shape: shapeNull}
)

func (n *typeNode) isAny() bool { return n.shape == shapeAny }

// isScalar reports whether n is a plain type without parts.
func (n *typeNode) isScalar() bool { return n.shape >= shapeNull && n.shape <= shapeString }

// sameType reports whether two simple types are equal. It returns false for other types.
func sameType(a, b *typeNode) bool {
	switch {
	case a == b:
		return true
	case a.shape == shapeLiteral && b.shape == shapeLiteral:
		return a.literal.kind == b.literal.kind && a.literal.raw == b.literal.raw
	case a.shape == shapeRef && b.shape == shapeRef:
		return a.to == b.to
	}
	number := func(n *typeNode) bool { return n.shape == shapeNumber || n.shape == shapeInteger }
	return a.isScalar() && a.shape == b.shape || number(a) && number(b)
}

// isWithin reports whether every value of type a is also a value of type b. It returns false if that is unclear.
func isWithin(a, b *typeNode) bool {
	if sameType(a, b) {
		return true
	}
	if a.shape != shapeLiteral {
		return false
	}
	switch b.shape {
	case shapeString:
		return a.literal.hasKind(jsonString)
	case shapeNumber, shapeInteger:
		return a.literal.hasKind(jsonNumber)
	case shapeBoolean:
		return a.literal.hasKind(jsonBool)
	}
	return false
}

// unionOf returns the union of types.
func unionOf(items ...*typeNode) *typeNode {
	var kept []*typeNode
	seen := map[any]bool{}
	items = flattenNested(items, shapeUnion)
	if slices.ContainsFunc(items, func(n *typeNode) bool { return n.shape == shapeNumber }) {
		seen[shapeInteger] = true
	}
	for _, n := range items {
		if n.isAny() {
			return &typeNode{shape: shapeAny, note: n.note}
		}
		if n.shape == shapeNever || n.wasSeen(seen) {
			continue
		}
		kept = append(kept, n)
	}
	switch len(kept) {
	case 0:
		return &typeNode{shape: shapeNever}
	case 1:
		return kept[0]
	}
	return &typeNode{shape: shapeUnion, items: kept}
}

type literalKey struct {
	kind jsonKind
	raw  string
}

// wasSeen reports whether seen already contains n, and otherwise adds n. It works only for literals, references and
// simple types, and always returns false for other types.
func (n *typeNode) wasSeen(seen map[any]bool) bool {
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

// intersectionOf returns the intersection of types.
func intersectionOf(items ...*typeNode) *typeNode {
	var kept []*typeNode
	note := ""
	for _, n := range flattenNested(items, shapeBoth) {
		switch {
		case n.isAny():
			note = joinNotes(note, n.note)
		case n.shape == shapeNever:
			return n
		default:
			kept = narrowParts(kept, n)
		}
	}
	switch len(kept) {
	case 0:
		return anyNode.withNote(note)
	case 1:
		return kept[0].withNote(note)
	}
	return &typeNode{shape: shapeBoth, items: kept, note: note}
}

// withNote returns a copy of the type n with one more note, such as a keyword that the type cannot express.
func (n *typeNode) withNote(note string) *typeNode {
	if note == "" {
		return n
	}
	c := *n
	c.note = joinNotes(n.note, note)
	return &c
}

// narrowParts adds the type n to the parts of an intersection, unless a part already implies n. If n implies a part,
// n replaces that part: string & ("a" | "b") becomes "a" | "b".
func narrowParts(kept []*typeNode, n *typeNode) []*typeNode {
	for i, k := range kept {
		if coversType(k, n) {
			kept[i] = n
			return kept
		}
		if coversType(n, k) {
			return kept
		}
	}
	return append(kept, n)
}

// coversType reports whether the type wide contains all values of narrow. It returns false if that is unclear.
func coversType(wide, narrow *typeNode) bool {
	if wide.isAnyObject() && narrow.isAlwaysObject() {
		return true
	}
	const compared = 10_000
	if len(wide.items)*len(narrow.items) > compared {
		return false
	}
	for _, n := range typeMembers(narrow) {
		in := false
		for _, w := range typeMembers(wide) {
			in = in || isWithin(n, w)
		}
		if !in {
			return false
		}
	}
	return true
}

// isAnyObject reports whether n is the type of all objects.
func (n *typeNode) isAnyObject() bool {
	return n.shape == shapeObject && len(n.fields) == 0 && n.index != nil && n.index.isAny()
}

// isAlwaysObject reports whether every value of n is an object. It returns false if that is unclear.
func (n *typeNode) isAlwaysObject() bool {
	switch n.shape {
	case shapeObject:
		return true
	case shapeUnion:
		for _, i := range n.items {
			if !i.isAlwaysObject() {
				return false
			}
		}
		return true
	case shapeBoth:
		for _, i := range n.items {
			if i.isAlwaysObject() {
				return true
			}
		}
	}
	return false
}

func typeMembers(n *typeNode) []*typeNode {
	if n.shape == shapeUnion {
		return n.items
	}
	return []*typeNode{n}
}

// flattenNested replaces a union within a union by its members, and an intersection within an intersection by its
// parts. It does not change a nested union or intersection that has documentation.
func flattenNested(items []*typeNode, s typeShape) []*typeNode {
	var out []*typeNode
	for _, n := range items {
		if n.shape == s && n.doc.isEmpty() && n.note == "" {
			out = append(out, n.items...)
		} else {
			out = append(out, n)
		}
	}
	return out
}

func joinNotes(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
