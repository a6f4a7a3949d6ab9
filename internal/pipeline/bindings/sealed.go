package bindings

import (
	"fmt"
	"slices"
	"strings"

	"retort/internal/privacy/pii"
)

// sealedDoc is the documentation comment before the TypeScript namespace pii.
const sealedDoc = "/** What is sealed stands as a token, such as [EMAIL_1]: it compares and groups like the value, and has none of its letters. */\n"

// sealedNames returns the TypeScript source of the namespace pii, without a leading "declare". The namespace has an
// alias for each built-in type of personal data.
func sealedNames() string {
	var b strings.Builder
	b.WriteString("namespace pii {\n  type Sealed<T extends string> = string & { readonly __sealed?: T };\n")
	for _, t := range pii.AllTypes() {
		fmt.Fprintf(&b, "  type %s = Sealed<%s>;\n", toPascalCase(toCamelCase(string(t))), quoteString(string(t)))
	}
	b.WriteString("}\n")
	return b.String()
}

// sealProperty returns the TypeScript type of a property. n is the type without regard to personal data. If the
// property holds personal data, programs get tokens instead of its strings. Each string type in n, also in lists, is
// then replaced by a type of the namespace pii.
func (d *schemaDocument) sealProperty(property string, n *typeNode) *typeNode {
	if d.sealed == nil {
		return n
	}
	if typ := d.sealed(property); typ != "" {
		return sealedType(n, typ)
	}
	return n
}

func sealedType(n *typeNode, typ string) *typeNode {
	c := *n
	switch n.shape {
	case shapeString:
		c.sealed = typ
	case shapeArray, shapeUnion:
		c.items = slices.Clone(n.items)
		for i, item := range c.items {
			c.items[i] = sealedType(item, typ)
		}
	default:
		return n
	}
	return &c
}

// sealedName returns the TypeScript type of strings that may be tokens for personal data of type typ, or "string" if
// typ is empty.
func sealedName(typ string) string {
	switch {
	case typ == "":
		return "string"
	case slices.Contains(pii.AllTypes(), pii.Type(typ)):
		return "pii." + toPascalCase(toCamelCase(typ))
	}
	return "pii.Sealed<" + quoteString(typ) + ">"
}

// hasSealed reports whether a tool's result may contain tokens for personal data.
func (t *toolTypes) hasSealed() bool {
	return t.output != nil && slices.ContainsFunc(
		append(slices.Clone(t.names), t.output), func(n *namedType) bool { return n.node.hasSealed() },
	)
}

func (n *typeNode) hasSealed() bool {
	return n != nil && (n.sealed != "" || n.rest.hasSealed() || n.index.hasSealed() || slices.ContainsFunc(n.items, (*typeNode).hasSealed) ||
		slices.ContainsFunc(n.fields, func(f objectField) bool { return f.node.hasSealed() }))
}
