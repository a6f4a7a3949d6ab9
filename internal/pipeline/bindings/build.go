// Package bindings converts the JSON Schemas of tools to typed wrappers in TypeScript and Python, and to descriptions
// for models (stubs) in four lengths. It does no I/O.
package bindings

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"retort/internal/core"
)

// Bounds on the types of one tool. maxListedSize is in bytes, all others are numbers of items.
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

// typeBuilder builds the types of one tool.
type typeBuilder struct {
	prefix string
	idents nameNumbering
	queue  []pendingType
	names  []*namedType
	nodes  int
	stub   bool                         // the types are to be read: of long enums they have the first literals
	sealed func(property string) string // of answers
}

// pendingType holds a named type that has no content yet, because its schema has not been converted so far.
type pendingType struct {
	*namedType
	where schemaScope
	of    *jsonValue
}

// schemaScope says where a schema is: in which document and resource, and how deeply nested. References in the schema
// are resolved against the resource. If the schema is a branch of another schema, as in allOf, the field around holds
// the properties of that other schema.
type schemaScope struct {
	document *schemaDocument
	resource *jsonValue
	depth    int
	around   *jsonValue // properties of the schema that this one is a branch of
}

func (s schemaScope) oneDeeper() schemaScope {
	s.depth++
	s.around = nil
	return s
}

// buildTypes converts the input and output schemas of a tool to types.
func buildTypes(t *core.Tool) *toolTypes {
	return (&typeBuilder{prefix: toPascalCase(t.TypeScript)}).describeTool(t)
}

// buildOutline returns the types of a tool for a stub. In contrast to buildTypes, it shortens long enums.
func buildOutline(t *core.Tool) *toolTypes {
	return (&typeBuilder{prefix: toPascalCase(t.TypeScript), stub: true}).describeTool(t)
}

func (b *typeBuilder) describeTool(t *core.Tool) *toolTypes {
	out := &toolTypes{prefix: b.prefix}
	out.input = b.buildRoot("Input", t.InputSchema, true)
	if answer := t.AnswerSchema(); len(bytes.TrimSpace(answer)) > 0 {
		b.sealed = t.Sealed
		out.output = b.buildRoot("Output", answer, false)
	}
	for len(b.queue) > 0 {
		next := b.queue[0]
		b.queue = b.queue[1:]
		next.node = b.schemaType(next.of, next.where)
	}
	out.noteLearned(t)
	out.names = b.names
	cutAliases(append([]*namedType{out.input, out.output}, out.names...))
	return out
}

func (b *typeBuilder) buildRoot(suffix string, raw []byte, input bool) *namedType {
	n := &namedType{name: b.prefix + suffix}
	b.idents.nextName(n.name)
	v, err := parseJSON(raw)
	switch {
	case len(bytes.TrimSpace(raw)) == 0, v.hasKind(jsonNull):
		n.node = freeObject()
		return n
	case err != nil:
		n.node = &typeNode{shape: shapeAny, note: "the schema is " + err.Error()}
		if input {
			n.node = freeObject()
			n.node.note = "the schema is " + err.Error()
		}
		return n
	}
	d := newDocument(v)
	d.sealed = b.sealed
	d.named[v] = n
	n.node = b.schemaType(v, schemaScope{document: d, resource: v})
	if input {
		n.node = argumentType(n.node, v)
	}
	return n
}

func freeObject() *typeNode { return &typeNode{shape: shapeObject, index: anyNode} }

// argumentType converts the type of a tool's input to an object type, because calls have an object as their input. If
// the schema declares no properties, the type accepts none, although JSON Schema itself would accept any.
func argumentType(n *typeNode, schema *jsonValue) *typeNode {
	switch {
	case n.isAny():
		free := freeObject()
		free.doc, free.note = n.doc, n.note
		return free
	case n.isAnyObject() && n.note == "" && schema.get("properties") != nil && schema.get("additionalProperties") == nil &&
		schema.get("patternProperties") == nil:
		return &typeNode{shape: shapeObject, index: &typeNode{shape: shapeNever}, doc: n.doc}
	}
	return n
}

// schemaType returns the TypeScript type that corresponds to a JSON Schema.
func (b *typeBuilder) schemaType(v *jsonValue, s schemaScope) *typeNode {
	b.nodes++
	switch {
	case v == nil:
		return anyNode
	case v.kind == jsonBool && v.text == "true":
		return anyNode
	case v.kind == jsonBool:
		return &typeNode{shape: shapeNever}
	case v.kind == jsonDeep, s.depth > maxNesting:
		return &typeNode{shape: shapeAny, note: "nested too deeply"}
	case b.nodes > maxNodes:
		return &typeNode{shape: shapeAny, note: "the schema is too large"}
	case v.kind != jsonObject:
		return &typeNode{shape: shapeAny, note: "not a schema: " + shortenText(v.raw, 60)}
	}
	n := b.undocumentedType(v, s)
	d := docOf(v, n)
	if d.isEmpty() {
		return n
	}
	c := *n
	c.doc = typeDoc{text: d.text, tags: append(d.tags, n.doc.tags...)}
	if d.text == "" {
		c.doc.text = n.doc.text
	}
	return &c
}

// undocumentedType converts a schema object to a type without documentation.
func (b *typeBuilder) undocumentedType(v *jsonValue, s schemaScope) *typeNode {
	var all []*typeNode
	if ref, ok := readReference(v); ok {
		n := b.referenceType(ref, s)
		if !s.document.siblings {
			return makeNullable(v, n)
		}
		all = append(all, n)
	}
	all = append(all, b.ownType(v, s))
	branch := s
	branch.depth++
	if p := v.get("properties"); p.hasKind(jsonObject) {
		branch.around = p
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		if branches := v.get(keyword); branches.hasKind(jsonArray) && len(branches.items) > 0 {
			all = append(all, b.branchTypes(keyword, branches, branch))
		}
	}
	return makeNullable(v, boundedIntersection(all))
}

func makeNullable(v *jsonValue, n *typeNode) *typeNode {
	if v.get("nullable").isTrue() || v.get("x-nullable").isTrue() {
		return unionOf(n, nullNode)
	}
	return n
}

// boundedIntersection returns the intersection of the types in parts. If that would have too many alternatives for a
// compiler, it leaves out the last types and adds a note that says how many are missing.
func boundedIntersection(parts []*typeNode) *typeNode {
	alternatives := 1
	for i, p := range parts {
		alternatives *= max(1, len(typeMembers(p)))
		if alternatives > maxCrossed || i == maxConditions {
			return intersectionOf(parts[:i]...).withNote("and " + strconv.Itoa(len(parts)-i) + " more conditions")
		}
	}
	return intersectionOf(parts...)
}

func (b *typeBuilder) branchTypes(keyword string, branches *jsonValue, s schemaScope) *typeNode {
	var types []*typeNode
	for _, item := range branches.items {
		types = append(types, b.schemaType(item, s))
	}
	if keyword == "allOf" {
		return addConditions(boundedIntersection(types), types)
	}
	n := liftDoc(unionOf(types...))
	if n.isAny() && n.note == "" {
		return n.withNote(keyword + " " + showValue(branches))
	}
	return n
}

// addConditions returns a copy of the intersection n with more documentation tags, such as "@minimum 1". They are the
// tags of those types in the argument parts that accept any value. Such types do not appear in n itself, so their
// tags would otherwise be lost.
func addConditions(n *typeNode, parts []*typeNode) *typeNode {
	c := *n
	for _, p := range parts {
		if p.isAny() && !n.isAny() {
			c.doc.tags = append(slices.Clip(c.doc.tags), p.doc.tags...)
		}
	}
	return &c
}

// liftDoc moves the documentation of a union's member to the union itself, if no other member has documentation.
func liftDoc(n *typeNode) *typeNode {
	at := -1
	for i, item := range n.items {
		if !item.doc.isEmpty() {
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
	c.doc, member.doc = member.doc, typeDoc{}
	c.items = slices.Clone(n.items)
	c.items[at] = &member
	return &c
}

// readReference returns the value of a schema's $ref, $dynamicRef or $recursiveRef. It returns false if the schema
// has none of these.
func readReference(v *jsonValue) (string, bool) {
	for _, keyword := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		if ref := v.get(keyword); ref.hasKind(jsonString) {
			return ref.text, true
		}
	}
	return "", false
}

// referenceType returns the type for a reference: a named type, or the referenced type itself if that is as short as
// a name.
func (b *typeBuilder) referenceType(ref string, s schemaScope) *typeNode {
	found, ok := schemaTarget{s.resource, s.resource}, false
	name := ref
	for range maxAliases {
		if found, ok = s.document.resolveReference(ref, found.resource); !ok {
			return &typeNode{shape: shapeAny, note: "unresolved $ref " + shortenText(quoteString(ref), 120)}
		}
		next, more := readReference(found.schema)
		if !more || len(found.schema.keys) > 1 {
			return b.targetType(found, name, s)
		}
		ref, name = next, next
	}
	return &typeNode{shape: shapeAny, note: "$ref " + shortenText(quoteString(ref), 120) + " means itself"}
}

func (b *typeBuilder) targetType(t schemaTarget, ref string, s schemaScope) *typeNode {
	if n, ok := s.document.named[t.schema]; ok {
		return &typeNode{shape: shapeRef, to: n}
	}
	where := schemaScope{document: s.document, resource: t.resource}
	if isShort(t.schema) {
		return b.schemaType(t.schema, where)
	}
	n := &namedType{name: b.typeName(ref), node: anyNode}
	s.document.named[t.schema] = n
	b.names = append(b.names, n)
	b.queue = append(b.queue, pendingType{n, where, t.schema})
	return &typeNode{shape: shapeRef, to: n}
}

// isShort reports whether a schema has a simple type, without a reference, properties, items or alternatives, so that
// its written form is short.
func isShort(v *jsonValue) bool {
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
	return !literals.hasKind(jsonArray) || len(literals.items) <= few
}

// typeName returns a name for the type that ref refers to. It is unique within the tool.
func (b *typeBuilder) typeName(ref string) string {
	base := "T"
	for _, step := range referenceNames(ref) {
		if p := toPascalCase(toCamelCase(step)); p != "" && !isSchemaKeyword(step) {
			base = p
			break
		}
	}
	if first := rune(base[0]); first < 'A' || first > 'Z' {
		base = "T" + base
	}
	return b.idents.nextName(b.prefix + "_" + strings.ReplaceAll(base, "_", ""))
}

func isSchemaKeyword(step string) bool {
	if _, err := strconv.Atoi(step); err == nil {
		return true
	}
	return slices.Contains([]string{"items", "anyOf", "oneOf", "allOf", "additionalProperties", "prefixItems", "properties", "not"}, step)
}

// cutAliases breaks cycles of types that are only names for each other, as in A = B | string and B = A | number.
// Where A occurs in B, it is replaced by any. Where A occurs in its own definition, it is dropped.
func cutAliases(types []*namedType) {
	const (
		unseen = iota
		open
		done
	)
	state := map[*namedType]int{}
	var visit func(n *typeNode, alias *namedType) *typeNode
	visit = func(n *typeNode, alias *namedType) *typeNode {
		switch n.shape {
		case shapeRef:
			switch {
			case state[n.to] == open && n.to == alias && n != alias.node:
				return &typeNode{shape: shapeNever}
			case state[n.to] == open:
				return &typeNode{shape: shapeAny, note: "a type that refers to itself", doc: n.doc}
			case state[n.to] == unseen:
				state[n.to] = open
				n.to.node = visit(n.to.node, n.to)
				state[n.to] = done
			}
		case shapeUnion:
			return replaceItems(n, unionOf, func(item *typeNode) *typeNode { return visit(item, alias) })
		case shapeBoth:
			return replaceItems(n, intersectionOf, func(item *typeNode) *typeNode { return visit(item, nil) })
		}
		return n
	}
	for _, t := range types {
		if t != nil {
			visit(&typeNode{shape: shapeRef, to: t}, nil)
		}
	}
}

// replaceItems applies replace to the items of a union or intersection and combines the results. It returns n itself
// if no item changes.
func replaceItems(n *typeNode, combine func(...*typeNode) *typeNode, replace func(*typeNode) *typeNode) *typeNode {
	items := make([]*typeNode, len(n.items))
	changed := false
	for i, item := range n.items {
		items[i] = replace(item)
		changed = changed || items[i] != item
	}
	if !changed {
		return n
	}
	c := *combine(items...).withNote(n.note)
	if c.doc.isEmpty() {
		c.doc = n.doc
	}
	return &c
}
