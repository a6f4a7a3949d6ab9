package bindings

import (
	"slices"
	"strconv"

	"retort/internal/core"
)

// noteLearned marks the result type of a tool that declares none as inferred from earlier results. It removes an
// inferred type that accepts any value, because such a type says nothing.
func (out *toolTypes) noteLearned(t *core.Tool) {
	if out.output == nil || len(t.OutputSchema) > 0 {
		return
	}
	if out.output.node.isAny() {
		out.output = nil
		return
	}
	out.learned = "learned from " + countOf(t.Learned.Observations, "answer")
	if t.Learned.Shared {
		out.learned = "shared, " + out.learned
	}
	n := *out.output.node
	n.doc.tags = append(slices.Clip(n.doc.tags), "@"+out.learned)
	out.output.node = &n
}

func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// AdviceDeclaration returns the TypeScript declaration of a tool with inferred types, for checking programs. If a
// value was sometimes an object and sometimes a string, its type is the intersection of both, so that programs can
// use the object's fields without a type test. The function of a tool that returns a list has a member __item with the
// type of its items, which only the declaration of pages uses.
func AdviceDeclaration(t *core.Tool) string {
	types := buildTypes(t)
	if types.learned != "" {
		types.output.node = atOnce(types.output.node)
	}
	var p tsPrinter
	p.writeTypes(types)
	if item := itemType(t, types); item != "" {
		p.writeParts("export declare namespace ", t.TypeScript, " { const __item: ", item, "; }\n")
	}
	p.writeSignatures(t, types, ";")
	return p.b.String()
}

func atOnce(n *typeNode) *typeNode {
	if n == nil {
		return nil
	}
	c := *n
	c.index, c.items, c.fields = atOnce(n.index), nil, nil
	for _, item := range n.items {
		c.items = append(c.items, atOnce(item))
	}
	for _, f := range n.fields {
		f.node = atOnce(f.node)
		c.fields = append(c.fields, f)
	}
	if n.shape != shapeUnion {
		return &c
	}
	var parts, texts []*typeNode
	for _, item := range c.items {
		switch item.shape {
		case shapeObject, shapeArray:
			parts = append(parts, item)
		case shapeString:
			texts = append(texts, item)
		}
	}
	if len(parts) == 0 {
		return &c
	}
	joined := *intersectionOf(append(parts, texts...)...)
	joined.doc = n.doc
	return &joined
}
