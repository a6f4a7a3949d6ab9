package bindings

import (
	"slices"
	"strconv"
	"strings"
)

// own returns the type given by a schema's own keywords, except those that combine other schemas.
func (b *builder) own(v *value, s scope) *node {
	if c := v.get("const"); c != nil {
		return b.literal(c, 0)
	}
	if e := v.get("enum"); e.is(jsonArray) && len(e.items) > 0 {
		return b.enum(e)
	}
	switch t := v.get("type"); {
	case t.is(jsonString):
		return b.typed(t.text, v, s)
	case t.is(jsonArray):
		var types []*node
		for _, name := range t.items {
			if name.is(jsonString) {
				types = append(types, b.typed(name.text, v, s))
			} else {
				types = append(types, b.schema(name, s.deeper())) // draft-03
			}
		}
		return union(types...)
	}
	switch {
	case has(v, "properties", "additionalProperties", "patternProperties"), v.get("required").is(jsonArray):
		return b.object(v, s)
	case has(v, "items", "prefixItems"):
		return b.array(v, s)
	}
	return anyNode
}

func has(v *value, keywords ...string) bool {
	return slices.ContainsFunc(keywords, func(k string) bool { return v.get(k) != nil })
}

func (b *builder) typed(name string, v *value, s scope) *node {
	switch name {
	case "string":
		return &node{shape: shapeString}
	case "number":
		return &node{shape: shapeNumber}
	case "integer", "int":
		return &node{shape: shapeInteger}
	case "boolean":
		return &node{shape: shapeBoolean}
	case "null":
		return nullNode
	case "object":
		return b.object(v, s)
	case "array":
		return b.array(v, s)
	case "any":
		return anyNode
	}
	return &node{shape: shapeAny, note: "unknown type " + shorten(quote(name), 60)}
}

func (b *builder) enum(e *value) *node {
	var literals []*node
	size := 0
	for i, item := range e.items {
		size += len(item.raw) + len(item.text)
		switch {
		case b.stub && i > 0 && (i == maxListed || size > maxListedSize):
			first := *union(literals...)
			first.note = "… and " + strconv.Itoa(len(e.items)-i) + " more"
			return &first
		case i == maxEnum:
			return widened(literals, len(e.items))
		}
		literals = append(literals, b.literal(item, 0))
	}
	return union(literals...)
}

// widened returns the general type of an enum with too many literals.
func widened(literals []*node, count int) *node {
	var types []*node
	for _, l := range literals {
		switch {
		case l.shape != shapeLiteral:
			types = append(types, l)
		case l.literal.is(jsonString):
			types = append(types, &node{shape: shapeString})
		case l.literal.is(jsonNumber):
			types = append(types, &node{shape: shapeNumber})
		default:
			types = append(types, &node{shape: shapeBoolean})
		}
	}
	wide := *union(types...)
	wide.note = "one of " + strconv.Itoa(count) + " values"
	return &wide
}

// literal returns the type whose only value is v.
func (b *builder) literal(v *value, depth int) *node {
	if b.nodes++; b.nodes > maxNodes || depth > maxNesting {
		return anyNode
	}
	switch v.kind {
	case jsonNull:
		return nullNode
	case jsonArray:
		n := &node{shape: shapeTuple, least: len(v.items)}
		for _, item := range v.items {
			n.items = append(n.items, b.literal(item, depth+1))
		}
		return n
	case jsonObject:
		n := &node{shape: shapeObject}
		for i, key := range v.keys {
			n.fields = append(n.fields, field{name: key, required: true, node: b.literal(v.items[i], depth+1)})
		}
		return n
	case jsonNumber:
		if !exact(v.text) {
			return &node{shape: shapeNumber, note: "the value is " + shorten(v.text, 40)}
		}
	case jsonDeep:
		return anyNode
	}
	return &node{shape: shapeLiteral, literal: v}
}

// exact reports whether JavaScript reads exactly this number.
func exact(number string) bool {
	const safe = 15 // digits
	return len(strings.TrimLeft(number, "-0.")) <= safe && !strings.ContainsAny(number, "eE")
}

// array returns the type of a schema with type array.
func (b *builder) array(v *value, s scope) *node {
	items := v.get("items")
	first, rest := v.get("prefixItems"), items
	if items.is(jsonArray) { // before draft 2020-12
		first, rest = items, v.get("additionalItems")
	}
	inner := s.deeper()
	if !first.is(jsonArray) || len(first.items) == 0 {
		if v.get("maxItems").is(jsonNumber) && v.get("maxItems").text == "0" {
			return &node{shape: shapeTuple}
		}
		if first.is(jsonArray) {
			items = rest
		}
		of := b.schema(items, inner)
		return &node{shape: shapeArray, items: []*node{of}}
	}
	n := &node{shape: shapeTuple, least: min(number(v.get("minItems"), 0), len(first.items))}
	for _, item := range first.items {
		n.items = append(n.items, b.schema(item, inner))
	}
	if !rest.isFalse() && number(v.get("maxItems"), len(first.items)+1) > len(first.items) {
		n.rest = b.schema(rest, inner)
	}
	return n
}

func number(v *value, otherwise int) int {
	if v.is(jsonNumber) {
		if n, err := strconv.Atoi(v.text); err == nil && n >= 0 {
			return n
		}
	}
	return otherwise
}

// object returns the type of a schema with type object.
func (b *builder) object(v *value, s scope) *node {
	n := &node{shape: shapeObject}
	inner := s.deeper()
	required := requiredNames(v.get("required"))
	properties := v.get("properties")
	if properties.is(jsonObject) {
		for i, name := range properties.keys {
			schema := properties.items[i]
			// In draft-03 each property says itself that it is required.
			must := required[name] || schema.get("required").isTrue()
			n.fields = append(n.fields, field{name: name, required: must, node: s.document.seal(name, b.schema(schema, inner))})
		}
	}
	if r := v.get("required"); r.is(jsonArray) {
		n.fields = append(n.fields, b.undeclared(r, properties, s)...)
	}
	if special := v.get("patternProperties").get(specialKeys); special != nil && len(n.fields) > 0 && v.get("additionalProperties") == nil {
		n.note = "and more under keys that are no identifiers"
		return n
	}
	n.index = b.others(v, inner, len(n.fields) == 0)
	return n
}

// specialKeys matches the keys that can never be written after a dot. A pattern for them does not make every name
// valid.
const specialKeys = `[^0-9A-Za-z_$]`

func requiredNames(v *value) map[string]bool {
	names := map[string]bool{}
	if v.is(jsonArray) {
		for _, item := range v.items {
			if item.is(jsonString) {
				names[item.text] = true
			}
		}
	}
	return names
}

// undeclared returns the properties that required lists but this schema does not declare. The surrounding schema may
// give them types.
func (b *builder) undeclared(required, properties *value, s scope) []field {
	var fields []field
	seen := map[string]bool{}
	for _, item := range required.items {
		name := item.str()
		if !item.is(jsonString) || seen[name] || properties.get(name) != nil {
			continue
		}
		seen[name] = true
		n := anyNode
		if declared := s.around.get(name); declared != nil {
			c := *b.schema(declared, s.deeper())
			c.doc = doc{}
			n = &c
		}
		fields = append(fields, field{name: name, required: true, node: n})
	}
	return fields
}

// others returns the type of undeclared properties, or nil if there are none. An object that declares no properties
// may hold anything. One that declares some is assumed to be complete, so that misspelt ones are found.
func (b *builder) others(v *value, inner scope, bare bool) *node {
	var types []*node
	patterns := v.get("patternProperties")
	if patterns.is(jsonObject) {
		for _, schema := range patterns.items {
			types = append(types, b.schema(schema, inner))
		}
	}
	additional := v.get("additionalProperties")
	if additional == nil {
		additional = v.get("unevaluatedProperties")
	}
	switch {
	case additional.isFalse():
	case additional != nil:
		types = append(types, b.schema(additional, inner))
	case bare && len(types) == 0:
		types = append(types, anyNode)
	}
	switch {
	case len(types) == 0 && bare:
		return &node{shape: shapeNever}
	case len(types) == 0:
		return nil
	}
	return union(types...)
}
