package bindings

import (
	"slices"
	"strconv"

	"retort/internal/core"
)

// learn adds a note to the answer's type that it is only inferred from past answers. It drops a type that says
// nothing.
func (out *tool) learn(t *core.Tool) {
	if out.output == nil || len(t.OutputSchema) > 0 {
		return
	}
	if out.output.node.isAny() {
		out.output = nil
		return
	}
	out.learned = "learned from " + count(t.Learned.Observations, "answer")
	n := *out.output.node
	n.doc.tags = append(slices.Clip(n.doc.tags), "@"+out.learned)
	out.output.node = &n
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// Advice returns the Declaration of a tool for checking programs. A value that was sometimes an object and sometimes
// a string has both types at once, so that the object's fields are known in any case.
func Advice(t *core.Tool) string {
	types := describe(t)
	if types.learned != "" {
		types.output.node = atOnce(types.output.node)
	}
	return declaration(t, types)
}

func atOnce(n *node) *node {
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
	var parts, texts []*node
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
	joined := *both(append(parts, texts...)...)
	joined.doc = n.doc
	return &joined
}
