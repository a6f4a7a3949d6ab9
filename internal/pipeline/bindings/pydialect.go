package bindings

import "strings"

// pythonDialect writes types on one line in Python's syntax.
type pythonDialect struct{}

func (pythonDialect) formatAtom(n *typeNode) string             { return pyAtom(n) }
func (pythonDialect) formatArray(element string, _ bool) string { return "list[" + element + "]" }
func (pythonDialect) formatObject(fields []string) string {
	return "{" + strings.Join(fields, ", ") + "}"
}
func (pythonDialect) formatMore(other string) string           { return "dict[str, " + other + "]" }
func (pythonDialect) formatIntersection(items []string) string { return strings.Join(items, " & ") }
func (pythonDialect) formatOpaque(*typeNode) string            { return "dict" }

func (pythonDialect) formatField(f objectField, typ string) string {
	if f.required {
		return pyQuote(f.name) + ": " + typ
	}
	return pyQuote(f.name) + "?: " + typ
}

func (pythonDialect) formatTuple(elements []string, rest string) string {
	if rest != "" {
		elements = append(elements, rest, "...")
	}
	return "tuple[" + strings.Join(elements, ", ") + "]"
}

// formatUnion joins the members of a union with "|". It merges several Literal[…] into one.
func (pythonDialect) formatUnion(items []string) string {
	var literals, others []string
	for _, item := range items {
		if inner, ok := strings.CutPrefix(item, "Literal["); ok && strings.HasSuffix(inner, "]") {
			literals = append(literals, strings.TrimSuffix(inner, "]"))
		} else {
			others = append(others, item)
		}
	}
	if len(literals) > 0 {
		others = append([]string{"Literal[" + strings.Join(literals, ", ") + "]"}, others...)
	}
	return strings.Join(others, " | ")
}
