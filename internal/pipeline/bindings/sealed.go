package bindings

import (
	"fmt"
	"slices"
	"strings"

	"retort/internal/privacy/pii"
)

// sealedDoc is the comment before the namespace pii.
const sealedDoc = "/** What is sealed stands as a token, such as [EMAIL_1]: it compares and groups like the value, and has none of its letters. */\n"

// sealedNames returns the TypeScript namespace pii, without the word declare before it. Each built-in type of personal
// data has an alias in it.
func sealedNames() string {
	var b strings.Builder
	b.WriteString("namespace pii {\n  type Sealed<T extends string> = string & { readonly __sealed?: T };\n")
	for _, t := range pii.Types() {
		fmt.Fprintf(&b, "  type %s = Sealed<%s>;\n", pascal(camel(string(t))), quote(string(t)))
	}
	b.WriteString("}\n")
	return b.String()
}

// seal marks the strings of an answer's property as sealed, alone or in a list.
func (d *document) seal(property string, n *node) *node {
	if d.sealed == nil {
		return n
	}
	if typ := d.sealed(property); typ != "" {
		return sealed(n, typ)
	}
	return n
}

func sealed(n *node, typ string) *node {
	c := *n
	switch n.shape {
	case shapeString:
		c.sealed = typ
	case shapeArray, shapeUnion:
		c.items = slices.Clone(n.items)
		for i, item := range c.items {
			c.items[i] = sealed(item, typ)
		}
	default:
		return n
	}
	return &c
}

// sealedName returns the TypeScript name of a string type that may be sealed.
func sealedName(typ string) string {
	switch {
	case typ == "":
		return "string"
	case slices.Contains(pii.Types(), pii.Type(typ)):
		return "pii." + pascal(camel(typ))
	}
	return "pii.Sealed<" + quote(typ) + ">"
}

// seals reports whether a tool's answers contain sealed values.
func (t *tool) seals() bool {
	return t.output != nil && slices.ContainsFunc(append(slices.Clone(t.names), t.output), func(n *named) bool { return n.node.seals() })
}

func (n *node) seals() bool {
	return n != nil && (n.sealed != "" || n.rest.seals() || n.index.seals() || slices.ContainsFunc(n.items, (*node).seals) ||
		slices.ContainsFunc(n.fields, func(f field) bool { return f.node.seals() }))
}
