package bindings

import (
	"strings"

	"retort/internal/core"
)

// Detail selects how much of a tool a stub contains.
type Detail int

// Levels of detail of a stub.
const (
	Name        Detail = iota // the name that programs write
	Description               // and the first sentence
	Signature                 // a one-line signature with the first sentence and hints on parameters
	Full                      // everything that the schemas say
)

// Stub returns a tool's description for a model: text to read, not to compile.
func Stub(ts *core.Toolset, t *core.Tool, lang core.Language, d Detail) string {
	python := lang == core.Python
	name := ts.Qualified(t)
	if python {
		name = pythonName(ts, t)
	}
	switch {
	case d <= Name:
		return name
	case d == Description:
		if s := Summary(t); s != "" {
			return name + ": " + s
		}
		return name
	case d == Signature && python:
		return pySignature(name, t)
	case d == Signature:
		return signature(name, t)
	case python:
		return pyFull(name, t)
	}
	return full(name, t)
}

// pythonName returns a tool's name in Python programs: github.list_issues.
func pythonName(ts *core.Toolset, t *core.Tool) string {
	if s, ok := ts.Server(t.Server); ok {
		return s.Python + "." + t.Python
	}
	return t.Server + "." + t.Python
}

// maxOrdered bounds how many parameters are shown in order.
const maxOrdered = 6

// Positional returns the call of a tool with positional arguments. It returns "" if there is no such call or it has
// too many arguments.
//
//	github.getIssue(owner, repo, number)
func Positional(ts *core.Toolset, t *core.Tool) string { return ordered(ts.Qualified(t), describe(t)) }

func ordered(name string, types *tool) string {
	params := positional(types.input.node)
	if len(params) == 0 || len(params) > maxOrdered {
		return ""
	}
	needed := 0
	for i, q := range params {
		if q.required {
			needed = i + 1
		}
	}
	var names []string
	for i, q := range params {
		if i >= needed {
			q.ident += "?"
		}
		names = append(names, q.ident)
	}
	return name + "(" + strings.Join(names, ", ") + ")"
}

// full returns a tool's TypeScript declarations, preceded by the call.
func full(name string, t *core.Tool) string {
	types := outline(t)
	p := tsPrinter{bare: true}
	p.doc(toolDoc(t), 0)
	optional := ""
	if optionalInput(types.input.node) {
		optional = "?"
	}
	p.write(name, "(input", optional, ": ", types.input.name, "): ", result(types), "\n")
	if order := ordered(name, types); order != "" {
		p.write("// or ", order, "\n")
	}
	p.write("\n")
	p.types(types)
	return strings.ReplaceAll(strings.TrimSpace(p.b.String()), "\n\n", "\n") + "\n"
}
