// Package bindings converts JSON Schema to text that programs are written against: typed wrappers in TypeScript and
// Python, and stubs of four lengths. It is pure.
package bindings

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"retort/internal/core"
)

// Bounds on the types of one tool.
const (
	maxNesting    = 48     // of types within types without a name
	maxNodes      = 20_000 // beyond them everything is any
	maxEnum       = 1000   // of literals in one type
	maxAliases    = 32     // of references that mean just another reference
	maxConditions = 200    // of types in an intersection
	maxListed     = 40     // of literals in one type that a stub shows
	maxListedSize = 2000   // of their bytes
	maxCrossed    = 2000   // of alternatives that an intersection of unions multiplies to
)

// builder builds the types of one tool.
type builder struct {
	prefix string
	idents numbering
	queue  []waiting
	names  []*named
	nodes  int
	stub   bool                         // the types are to be read: of long enums they have the first literals
	sealed func(property string) string // of answers
}

// waiting holds a named type whose schema has not been read yet.
type waiting struct {
	*named
	where scope
	of    *value
}

// scope locates a schema within its document.
type scope struct {
	document *document
	resource *value
	depth    int
	around   *value // properties of the schema that this one is a branch of
}

func (s scope) deeper() scope {
	s.depth++
	s.around = nil
	return s
}

// describe returns the types of a tool.
func describe(t *core.Tool) *tool { return (&builder{prefix: pascal(t.TypeScript)}).describe(t) }

// outline returns the types of a tool for a stub.
func outline(t *core.Tool) *tool {
	return (&builder{prefix: pascal(t.TypeScript), stub: true}).describe(t)
}

func (b *builder) describe(t *core.Tool) *tool {
	out := &tool{prefix: b.prefix}
	out.input = b.root("Input", t.InputSchema, true)
	if answer := t.Answer(); len(bytes.TrimSpace(answer)) > 0 {
		b.sealed = t.Sealed
		out.output = b.root("Output", answer, false)
	}
	for len(b.queue) > 0 {
		next := b.queue[0]
		b.queue = b.queue[1:]
		next.node = b.schema(next.of, next.where)
	}
	out.learn(t)
	out.names = b.names
	cutAliases(append([]*named{out.input, out.output}, out.names...))
	return out
}

func (b *builder) root(suffix string, raw []byte, input bool) *named {
	n := &named{name: b.prefix + suffix}
	b.idents.name(n.name)
	v, err := parseJSON(raw)
	switch {
	case len(bytes.TrimSpace(raw)) == 0, v.is(jsonNull):
		n.node = freeObject()
		return n
	case err != nil:
		n.node = &node{shape: shapeAny, note: "the schema is " + err.Error()}
		if input {
			n.node = freeObject()
			n.node.note = "the schema is " + err.Error()
		}
		return n
	}
	d := newDocument(v)
	d.sealed = b.sealed
	d.named[v] = n
	n.node = b.schema(v, scope{document: d, resource: v})
	if input {
		n.node = arguments(n.node, v)
	}
	return n
}

func freeObject() *node { return &node{shape: shapeObject, index: anyNode} }

// arguments converts an input's type to one that calls can have: an object. A schema that declares no properties
// accepts none, although JSON Schema itself would accept any.
func arguments(n *node, schema *value) *node {
	switch {
	case n.isAny():
		free := freeObject()
		free.doc, free.note = n.doc, n.note
		return free
	case n.free() && n.note == "" && schema.get("properties") != nil && schema.get("additionalProperties") == nil && schema.get("patternProperties") == nil:
		return &node{shape: shapeObject, index: &node{shape: shapeNever}, doc: n.doc}
	}
	return n
}

// schema returns the type of a schema.
func (b *builder) schema(v *value, s scope) *node {
	b.nodes++
	switch {
	case v == nil:
		return anyNode
	case v.kind == jsonBool && v.text == "true":
		return anyNode
	case v.kind == jsonBool:
		return &node{shape: shapeNever}
	case v.kind == jsonDeep, s.depth > maxNesting:
		return &node{shape: shapeAny, note: "nested too deeply"}
	case b.nodes > maxNodes:
		return &node{shape: shapeAny, note: "the schema is too large"}
	case v.kind != jsonObject:
		return &node{shape: shapeAny, note: "not a schema: " + shorten(v.raw, 60)}
	}
	n := b.parts(v, s)
	d := docOf(v, n)
	if d.empty() {
		return n
	}
	c := *n
	c.doc = doc{text: d.text, tags: append(d.tags, n.doc.tags...)}
	if d.text == "" {
		c.doc.text = n.doc.text
	}
	return &c
}

// parts returns the type of a schema object, without its documentation.
func (b *builder) parts(v *value, s scope) *node {
	var all []*node
	if ref, ok := reference(v); ok {
		n := b.reference(ref, s)
		if !s.document.siblings {
			return nullable(v, n)
		}
		all = append(all, n)
	}
	all = append(all, b.own(v, s))
	branch := s
	branch.depth++
	if p := v.get("properties"); p.is(jsonObject) {
		branch.around = p
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		if branches := v.get(keyword); branches.is(jsonArray) && len(branches.items) > 0 {
			all = append(all, b.branches(keyword, branches, branch))
		}
	}
	return nullable(v, bounded(all))
}

func nullable(v *value, n *node) *node {
	if v.get("nullable").isTrue() || v.get("x-nullable").isTrue() {
		return union(n, nullNode)
	}
	return n
}

// bounded intersects types, unless there would be more alternatives than a compiler can handle.
func bounded(parts []*node) *node {
	alternatives := 1
	for i, p := range parts {
		alternatives *= max(1, len(members(p)))
		if alternatives > maxCrossed || i == maxConditions {
			return both(parts[:i]...).noted("and " + strconv.Itoa(len(parts)-i) + " more conditions")
		}
	}
	return both(parts...)
}

func (b *builder) branches(keyword string, branches *value, s scope) *node {
	var types []*node
	for _, item := range branches.items {
		types = append(types, b.schema(item, s))
	}
	if keyword == "allOf" {
		return conditions(bounded(types), types)
	}
	n := lifted(union(types...))
	if n.isAny() && n.note == "" {
		return n.noted(keyword + " " + show(branches))
	}
	return n
}

// conditions adds the conditions of parts without a type of their own to an intersection.
func conditions(n *node, parts []*node) *node {
	c := *n
	for _, p := range parts {
		if p.isAny() && !n.isAny() {
			c.doc.tags = append(slices.Clip(c.doc.tags), p.doc.tags...)
		}
	}
	return &c
}

// lifted moves the documentation of a union's only documented member to the union.
func lifted(n *node) *node {
	at := -1
	for i, item := range n.items {
		if !item.doc.empty() {
			if at >= 0 {
				return n
			}
			at = i
		}
	}
	if n.shape != shapeUnion || at < 0 {
		return n
	}
	c, member := *n, *n.items[at]
	c.doc, member.doc = member.doc, doc{}
	c.items = slices.Clone(n.items)
	c.items[at] = &member
	return &c
}

// reference returns the reference that v consists of, if it is one.
func reference(v *value) (string, bool) {
	for _, keyword := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		if ref := v.get(keyword); ref.is(jsonString) {
			return ref.text, true
		}
	}
	return "", false
}

// reference returns the type that a reference points to: a named type, unless the type itself is as short as a name.
func (b *builder) reference(ref string, s scope) *node {
	found, ok := target{s.resource, s.resource}, false
	name := ref
	for range maxAliases {
		if found, ok = s.document.resolve(ref, found.resource); !ok {
			return &node{shape: shapeAny, note: "unresolved $ref " + shorten(quote(ref), 120)}
		}
		next, more := reference(found.schema)
		if !more || len(found.schema.keys) > 1 {
			return b.target(found, name, s)
		}
		ref, name = next, next
	}
	return &node{shape: shapeAny, note: "$ref " + shorten(quote(ref), 120) + " means itself"}
}

func (b *builder) target(t target, ref string, s scope) *node {
	if n, ok := s.document.named[t.schema]; ok {
		return &node{shape: shapeRef, to: n}
	}
	where := scope{document: s.document, resource: t.resource}
	if isShort(t.schema) {
		return b.schema(t.schema, where)
	}
	n := &named{name: b.typeName(ref), node: anyNode}
	s.document.named[t.schema] = n
	b.names = append(b.names, n)
	b.queue = append(b.queue, waiting{n, where, t.schema})
	return &node{shape: shapeRef, to: n}
}

// isShort reports whether a schema's type is no longer than a name.
func isShort(v *value) bool {
	if v.kind != jsonObject {
		return true
	}
	for _, keyword := range []string{
		"$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "properties", "items", "prefixItems", "required",
		"additionalProperties", "patternProperties", "if", "not",
	} {
		if v.get(keyword) != nil {
			return false
		}
	}
	const few = 4
	literals := v.get("enum")
	return !literals.is(jsonArray) || len(literals.items) <= few
}

// typeName returns a name for what ref refers to, unique within the tool.
func (b *builder) typeName(ref string) string {
	base := "T"
	for _, step := range steps(ref) {
		if p := pascal(camel(step)); p != "" && !isSchemaKeyword(step) {
			base = p
			break
		}
	}
	if first := rune(base[0]); first < 'A' || first > 'Z' {
		base = "T" + base
	}
	return b.idents.name(b.prefix + "_" + strings.ReplaceAll(base, "_", ""))
}

func isSchemaKeyword(step string) bool {
	if _, err := strconv.Atoi(step); err == nil {
		return true
	}
	return slices.Contains([]string{"items", "anyOf", "oneOf", "allOf", "additionalProperties", "prefixItems", "properties", "not"}, step)
}

// cutAliases breaks cycles of types that are only names for each other. With type A = B | string and type B = A |
// number, A within B becomes any, while A within itself adds nothing.
func cutAliases(types []*named) {
	const (
		unseen = iota
		open
		done
	)
	state := map[*named]int{}
	var visit func(n *node, alias *named) *node
	visit = func(n *node, alias *named) *node {
		switch n.shape {
		case shapeRef:
			switch {
			case state[n.to] == open && n.to == alias && n != alias.node:
				return &node{shape: shapeNever}
			case state[n.to] == open:
				return &node{shape: shapeAny, note: "a type that means itself", doc: n.doc}
			case state[n.to] == unseen:
				state[n.to] = open
				n.to.node = visit(n.to.node, n.to)
				state[n.to] = done
			}
		case shapeUnion:
			return remade(n, union, func(item *node) *node { return visit(item, alias) })
		case shapeBoth:
			return remade(n, both, func(item *node) *node { return visit(item, nil) })
		}
		return n
	}
	for _, t := range types {
		if t != nil {
			visit(&node{shape: shapeRef, to: t}, nil)
		}
	}
}

// remade returns a union or intersection with its items replaced, or the same node if none changes.
func remade(n *node, combine func(...*node) *node, replace func(*node) *node) *node {
	items := make([]*node, len(n.items))
	changed := false
	for i, item := range n.items {
		items[i] = replace(item)
		changed = changed || items[i] != item
	}
	if !changed {
		return n
	}
	c := *combine(items...).noted(n.note)
	if c.doc.empty() {
		c.doc = n.doc
	}
	return &c
}
