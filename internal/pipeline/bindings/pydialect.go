package bindings

import "strings"

// pythonDialect writes types on one line in Python's syntax.
type pythonDialect struct{}

func (pythonDialect) atom(n *node) string                 { return pyAtom(n) }
func (pythonDialect) array(element string, _ bool) string { return "list[" + element + "]" }
func (pythonDialect) object(fields []string) string       { return "{" + strings.Join(fields, ", ") + "}" }
func (pythonDialect) some(other string) string            { return "dict[str, " + other + "]" }
func (pythonDialect) both(items []string) string          { return strings.Join(items, " & ") }
func (pythonDialect) opaque(*node) string                 { return "dict" }

func (pythonDialect) field(f field, typ string) string {
	if f.required {
		return pyQuote(f.name) + ": " + typ
	}
	return pyQuote(f.name) + "?: " + typ
}

func (pythonDialect) tuple(elements []string, rest string) string {
	if rest != "" {
		elements = append(elements, rest, "...")
	}
	return "tuple[" + strings.Join(elements, ", ") + "]"
}

// union joins types. Literals become one Literal.
func (pythonDialect) union(items []string) string {
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
