package bindings

import (
	"retort/internal/core"
	"retort/internal/pipeline/paging"
)

// pagedComment returns a few words about how a tool returns a long list in pages, such as
// "paged: cursor → next_cursor", or "" if it does not seem to do so. They are for a comment on one line.
func pagedComment(t *core.Tool, types *toolTypes) string {
	var answer *paging.Shape
	if types.output != nil {
		answer = types.output.node.outline(0)
	}
	if method := paging.Describe(paging.InputsOf(t.InputSchema), answer); method != "" {
		return "paged: " + oneLine(method)
	}
	return ""
}

// maxOutline bounds how deeply a type is outlined.
const maxOutline = 5

// outline returns what package paging has to know of a type.
func (n *typeNode) outline(depth int) *paging.Shape {
	if depth > maxOutline {
		return &paging.Shape{Kind: paging.Any}
	}
	switch n.shape {
	case shapeNever:
		return &paging.Shape{}
	case shapeNull:
		return &paging.Shape{Kind: paging.Null}
	case shapeBoolean:
		return &paging.Shape{Kind: paging.Bool}
	case shapeNumber, shapeInteger:
		return &paging.Shape{Kind: paging.Number}
	case shapeString:
		return &paging.Shape{Kind: paging.String}
	case shapeLiteral:
		kinds := map[jsonKind]paging.Kind{jsonBool: paging.Bool, jsonNumber: paging.Number, jsonString: paging.String}
		return &paging.Shape{Kind: kinds[n.literal.kind]}
	case shapeArray:
		return &paging.Shape{Kind: paging.List, Item: n.items[0].outline(max(depth+1, maxOutline-1))}
	case shapeTuple:
		return &paging.Shape{Kind: paging.List}
	case shapeObject:
		s := &paging.Shape{Kind: paging.Object}
		for _, f := range n.fields {
			s.Members = append(s.Members, paging.Member{Name: f.name, Shape: f.node.outline(depth + 1)})
		}
		return s
	case shapeRef:
		return n.to.node.outline(depth + 1)
	case shapeUnion, shapeBoth:
		return n.outlineParts(depth)
	}
	return &paging.Shape{Kind: paging.Any}
}

// outlineParts returns the outline of a union or intersection: the types that its parts have, and their members.
func (n *typeNode) outlineParts(depth int) *paging.Shape {
	s := &paging.Shape{}
	for _, item := range n.items {
		part := item.outline(depth + 1)
		s.Kind |= part.Kind
		s.Members = append(s.Members, part.Members...)
		if part.Item != nil {
			s.Item = part.Item
		}
	}
	return s
}

// ItemsPath returns the path of the list in a tool's answers, judged by the declared or inferred type. It returns false
// if no list is known to be the one.
func ItemsPath(t *core.Tool) ([]string, bool) {
	types := buildTypes(t)
	if types.output == nil {
		return nil, false
	}
	method, problem := paging.Recognize(paging.InputsOf(t.InputSchema), types.output.node.outline(0))
	if problem != "" {
		return nil, false
	}
	return method.Items, true
}

// itemType returns the TypeScript type of the items of the list that a tool returns, as a part of the type of its
// answer. It returns "" if that is unknown.
func itemType(t *core.Tool, types *toolTypes) string {
	if types.output == nil {
		return ""
	}
	method, problem := paging.Recognize(paging.InputsOf(t.InputSchema), types.output.node.outline(0))
	if problem != "" {
		return ""
	}
	text, at := types.output.name, types.output.node
	for _, name := range method.Items {
		field := at.fieldNode(name)
		if field == nil {
			return ""
		}
		text, at = "NonNullable<"+text+"["+quoteString(name)+"]>", field
	}
	if !at.hasItems() {
		return ""
	}
	return text + "[number]"
}

// withoutNull follows references, and returns the only part of a union that is not null.
func (n *typeNode) withoutNull() *typeNode {
	for range refDepth {
		switch n.shape {
		case shapeRef:
			n = n.to.node
		case shapeUnion:
			var kept *typeNode
			for _, item := range n.items {
				if item.shape == shapeNull {
					continue
				}
				if kept != nil {
					return n
				}
				kept = item
			}
			if kept == nil {
				return n
			}
			n = kept
		default:
			return n
		}
	}
	return n
}

// fieldNode returns the type of a field of an object type, or nil.
func (n *typeNode) fieldNode(name string) *typeNode {
	n = n.withoutNull()
	parts := []*typeNode{n}
	if n.shape == shapeBoth {
		parts = n.items
	}
	for _, part := range parts {
		if part = part.withoutNull(); part.shape != shapeObject {
			continue
		}
		for _, f := range part.fields {
			if f.name == name {
				return f.node
			}
		}
	}
	return nil
}

// hasItems reports whether every value of the type is an array, but for null.
func (n *typeNode) hasItems() bool {
	n = n.withoutNull()
	if n.shape != shapeBoth {
		return n.shape == shapeArray
	}
	for _, part := range n.items {
		if part.withoutNull().shape == shapeArray {
			return true
		}
	}
	return false
}
