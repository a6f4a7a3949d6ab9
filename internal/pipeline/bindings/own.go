package bindings

import (
	"slices"
	"strconv"
	"strings"
)

// ownType converts a schema's own keywords to a type. It ignores allOf, anyOf and oneOf, which combine other schemas.
func (b *typeBuilder) ownType(v *jsonValue, s schemaScope) *typeNode {
	if c := v.get("const"); c != nil {
		return b.literalType(c, 0)
	}
	if e := v.get("enum"); e.hasKind(jsonArray) && len(e.items) > 0 {
		return b.enumType(e)
	}
	switch t := v.get("type"); {
	case t.hasKind(jsonString):
		return b.typeByName(t.text, v, s)
	case t.hasKind(jsonArray):
		var types []*typeNode
		for _, name := range t.items {
			if name.hasKind(jsonString) {
				types = append(types, b.typeByName(name.text, v, s))
			} else {
				types = append(types, b.schemaType(name, s.oneDeeper())) // draft-03
			}
		}
		return unionOf(types...)
	}
	switch {
	case hasKeyword(v, "properties", "additionalProperties", "patternProperties"), v.get("required").hasKind(jsonArray):
		return b.objectType(v, s)
	case hasKeyword(v, "items", "prefixItems"):
		return b.arrayType(v, s)
	}
	return anyNode
}

func hasKeyword(v *jsonValue, keywords ...string) bool {
	return slices.ContainsFunc(keywords, func(k string) bool { return v.get(k) != nil })
}

func (b *typeBuilder) typeByName(name string, v *jsonValue, s schemaScope) *typeNode {
	switch name {
	case "string":
		return &typeNode{shape: shapeString}
	case "number":
		return &typeNode{shape: shapeNumber}
	case "integer", "int":
		return &typeNode{shape: shapeInteger}
	case "boolean":
		return &typeNode{shape: shapeBoolean}
	case "null":
		return nullNode
	case "object":
		return b.objectType(v, s)
	case "array":
		return b.arrayType(v, s)
	case "any":
		return anyNode
	}
	return &typeNode{shape: shapeAny, note: "unknown type " + shortenText(quoteString(name), 60)}
}

func (b *typeBuilder) enumType(e *jsonValue) *typeNode {
	var literals []*typeNode
	size := 0
	for i, item := range e.items {
		size += len(item.raw) + len(item.text)
		switch {
		case b.stub && i > 0 && (i == maxListed || size > maxListedSize):
			first := *unionOf(literals...)
			first.note = "… and " + strconv.Itoa(len(e.items)-i) + " more"
			return &first
		case i == maxEnum:
			return widenEnum(literals, len(e.items))
		}
		literals = append(literals, b.literalType(item, 0))
	}
	return unionOf(literals...)
}

// widenEnum returns the type for an enum with too many values to list: the types of the values, with a note that says
// how many there are.
func widenEnum(literals []*typeNode, count int) *typeNode {
	var types []*typeNode
	for _, l := range literals {
		switch {
		case l.shape != shapeLiteral:
			types = append(types, l)
		case l.literal.hasKind(jsonString):
			types = append(types, &typeNode{shape: shapeString})
		case l.literal.hasKind(jsonNumber):
			types = append(types, &typeNode{shape: shapeNumber})
		default:
			types = append(types, &typeNode{shape: shapeBoolean})
		}
	}
	wide := *unionOf(types...)
	wide.note = "one of " + strconv.Itoa(count) + " values"
	return &wide
}

// literalType returns the type whose only value is v.
func (b *typeBuilder) literalType(v *jsonValue, depth int) *typeNode {
	if b.nodes++; b.nodes > maxNodes || depth > maxNesting {
		return anyNode
	}
	switch v.kind {
	case jsonNull:
		return nullNode
	case jsonArray:
		n := &typeNode{shape: shapeTuple, least: len(v.items)}
		for _, item := range v.items {
			n.items = append(n.items, b.literalType(item, depth+1))
		}
		return n
	case jsonObject:
		n := &typeNode{shape: shapeObject}
		for i, key := range v.keys {
			n.fields = append(n.fields, objectField{name: key, required: true, node: b.literalType(v.items[i], depth+1)})
		}
		return n
	case jsonNumber:
		if !isExactNumber(v.text) {
			return &typeNode{shape: shapeNumber, note: "the value is " + shortenText(v.text, 40)}
		}
	case jsonDeep:
		return anyNode
	}
	return &typeNode{shape: shapeLiteral, literal: v}
}

// isExactNumber reports whether JavaScript represents this number exactly.
func isExactNumber(number string) bool {
	const safe = 15 // digits
	return len(strings.TrimLeft(number, "-0.")) <= safe && !strings.ContainsAny(number, "eE")
}

// arrayType returns the type of a schema with type array.
func (b *typeBuilder) arrayType(v *jsonValue, s schemaScope) *typeNode {
	items := v.get("items")
	first, rest := v.get("prefixItems"), items
	if items.hasKind(jsonArray) { // before draft 2020-12
		first, rest = items, v.get("additionalItems")
	}
	inner := s.oneDeeper()
	if !first.hasKind(jsonArray) || len(first.items) == 0 {
		if v.get("maxItems").hasKind(jsonNumber) && v.get("maxItems").text == "0" {
			return &typeNode{shape: shapeTuple}
		}
		if first.hasKind(jsonArray) {
			items = rest
		}
		of := b.schemaType(items, inner)
		return &typeNode{shape: shapeArray, items: []*typeNode{of}}
	}
	n := &typeNode{shape: shapeTuple, least: min(numberOr(v.get("minItems"), 0), len(first.items))}
	for _, item := range first.items {
		n.items = append(n.items, b.schemaType(item, inner))
	}
	if !rest.isFalse() && numberOr(v.get("maxItems"), len(first.items)+1) > len(first.items) {
		n.rest = b.schemaType(rest, inner)
	}
	return n
}

func numberOr(v *jsonValue, otherwise int) int {
	if v.hasKind(jsonNumber) {
		if n, err := strconv.Atoi(v.text); err == nil && n >= 0 {
			return n
		}
	}
	return otherwise
}

// objectType returns the type of a schema with type object.
func (b *typeBuilder) objectType(v *jsonValue, s schemaScope) *typeNode {
	n := &typeNode{shape: shapeObject}
	inner := s.oneDeeper()
	required := requiredNames(v.get("required"))
	properties := v.get("properties")
	if properties.hasKind(jsonObject) {
		for i, name := range properties.keys {
			schema := properties.items[i]
			// In draft-03 each property says itself that it is required.
			must := required[name] || schema.get("required").isTrue()
			n.fields = append(n.fields, objectField{name: name, required: must, node: s.document.sealProperty(name, b.schemaType(schema, inner))})
		}
	}
	if r := v.get("required"); r.hasKind(jsonArray) {
		n.fields = append(n.fields, b.undeclaredFields(r, properties, s)...)
	}
	if special := v.get("patternProperties").get(specialKeys); special != nil && len(n.fields) > 0 && v.get("additionalProperties") == nil {
		n.note = "and more under keys that are not identifiers"
		return n
	}
	n.index = b.otherProperties(v, inner, len(n.fields) == 0)
	return n
}

// specialKeys is a regular expression that a schema may use in patternProperties. It matches property names that
// cannot be written after a dot. TypeScript's index signatures cannot express this restriction and would make every
// name valid, so a schema with this pattern gets no index signature.
const specialKeys = `[^0-9A-Za-z_$]`

func requiredNames(v *jsonValue) map[string]bool {
	names := map[string]bool{}
	if v.hasKind(jsonArray) {
		for _, item := range v.items {
			if item.hasKind(jsonString) {
				names[item.text] = true
			}
		}
	}
	return names
}

// undeclaredFields returns the properties that a schema requires but does not declare. If a surrounding schema
// declares such a property, the property has the type declared there.
func (b *typeBuilder) undeclaredFields(required, properties *jsonValue, s schemaScope) []objectField {
	var fields []objectField
	seen := map[string]bool{}
	for _, item := range required.items {
		name := item.stringText()
		if !item.hasKind(jsonString) || seen[name] || properties.get(name) != nil {
			continue
		}
		seen[name] = true
		n := anyNode
		if declared := s.around.get(name); declared != nil {
			c := *b.schemaType(declared, s.oneDeeper())
			c.doc = typeDoc{}
			n = &c
		}
		fields = append(fields, objectField{name: name, required: true, node: n})
	}
	return fields
}

// otherProperties returns the type of an object's undeclared properties, or nil if undeclared properties are not
// allowed. An object without declared properties may have any properties. An object with declared properties is
// assumed to have no others, so that misspelt names are found.
func (b *typeBuilder) otherProperties(v *jsonValue, inner schemaScope, bare bool) *typeNode {
	var types []*typeNode
	patterns := v.get("patternProperties")
	if patterns.hasKind(jsonObject) {
		for _, schema := range patterns.items {
			types = append(types, b.schemaType(schema, inner))
		}
	}
	additional := v.get("additionalProperties")
	if additional == nil {
		additional = v.get("unevaluatedProperties")
	}
	switch {
	case additional.isFalse():
	case additional != nil:
		types = append(types, b.schemaType(additional, inner))
	case bare && len(types) == 0:
		types = append(types, anyNode)
	}
	switch {
	case len(types) == 0 && bare:
		return &typeNode{shape: shapeNever}
	case len(types) == 0:
		return nil
	}
	return unionOf(types...)
}
