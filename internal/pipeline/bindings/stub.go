package bindings

import (
	"slices"
	"strings"

	"retort/internal/core"
)

// StubDetail says how much a tool's description for a model (stub) contains.
type StubDetail int

// The levels of detail of a stub.
const (
	Name        StubDetail = iota // the name that programs write
	Description                   // and the first sentence
	Signature                     // a one-line signature with the first sentence and hints on parameters
	Full                          // everything that the schemas say
	Compact                       // the same, on one line where that is possible; in Python the same as Full
)

// RenderStub returns a tool's description for a model. It is meant to be read, not compiled.
func RenderStub(ts *core.Toolset, t *core.Tool, lang core.Language, d StubDetail) string {
	python := lang == core.Python
	name := ts.QualifiedName(t)
	if d > Description {
		t = ts.MarkTool(t)
	}
	if python {
		name = pythonName(ts, t)
	}
	switch {
	case d <= Name:
		return name
	case d == Description:
		if s := SummaryLine(t); s != "" {
			return name + ": " + s
		}
		return name
	case d == Signature && python:
		return pySignature(name, t)
	case d == Signature:
		return renderSignature(name, t)
	case python:
		return pyFull(name, t)
	case d == Compact:
		if text, ok := compactDefinition(name, t); ok {
			return text
		}
	}
	return fullDeclaration(name, t)
}

// pythonName returns the name by which Python programs call a tool, such as github.list_issues.
func pythonName(ts *core.Toolset, t *core.Tool) string {
	if s, ok := ts.FindServer(t.Server); ok {
		return s.Python + "." + t.Python
	}
	return t.Server + "." + t.Python
}

// maxOrdered bounds the number of parameters in a call that PositionalCall returns.
const maxOrdered = 6

// PositionalCall returns the call of a tool with positional arguments, such as github.getIssue(owner, repo, number).
// It returns "" if the tool cannot be called in this way, or if the call has too many arguments.
func PositionalCall(ts *core.Toolset, t *core.Tool) string {
	return orderedCall(ts.QualifiedName(t), buildTypes(t))
}

// maxBriefBytes bounds the names of parameters in a call that BriefCall returns, in bytes. Servers choose these names, so
// without a bound a server could fill the model's context.
const maxBriefBytes = 300

// BriefCall returns a short example call of a tool, with the names of its parameters but not their types. In Python, the
// call has keyword arguments: crm.search_records(objectType, filters=...). In TypeScript, it has positional arguments if
// the tool can be called with them (see PositionalCall), and otherwise one object:
// crm.searchRecords({objectType, filters?}). An ellipsis stands for names that do not fit into maxBriefBytes.
func BriefCall(ts *core.Toolset, t *core.Tool, lang core.Language) string {
	if lang == core.Python {
		return pythonName(ts, t) + "(" + joinWithin(keywordNames(t), maxBriefBytes) + ")"
	}
	name := ts.QualifiedName(t)
	if call := PositionalCall(ts, t); call != "" && len(call) <= len(name)+maxBriefBytes {
		return call
	}
	if names := parameterNames(t); len(names) > 0 {
		return name + "({" + joinWithin(names, maxBriefBytes) + "})"
	}
	return name + "()"
}

// joinWithin joins names with commas. If they have more than maxBytes bytes, it replaces the last names by an ellipsis.
func joinWithin(names []string, maxBytes int) string {
	for i, name := range names {
		if maxBytes -= len(name) + len(", "); maxBytes < 0 {
			return strings.Join(append(slices.Clone(names[:i]), "…"), ", ")
		}
	}
	return strings.Join(names, ", ")
}

// parameterNames returns the names of a tool's parameters. Optional ones end with a question mark.
func parameterNames(t *core.Tool) []string {
	var names []string
	for _, f := range buildTypes(t).input.node.fields {
		name := bareName(f.name)
		if !f.required {
			name += "?"
		}
		names = append(names, name)
	}
	return names
}

// keywordNames returns the names of a tool's parameters for Python: first the required ones, then the optional ones, and
// last those that are not Python identifiers.
func keywordNames(t *core.Tool) []string {
	var required, optional, other []string
	for _, f := range buildTypes(t).input.node.fields {
		switch {
		case !isIdentifier(f.name):
			other = append(other, "**{"+quoteString(f.name)+": ...}")
		case f.required:
			required = append(required, f.name)
		default:
			optional = append(optional, f.name+"=...")
		}
	}
	return slices.Concat(required, optional, other)
}

func orderedCall(name string, types *toolTypes) string {
	params := positionalParams(types.input.node)
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

// fullDeclaration returns a tool's TypeScript declarations. They begin with the signature of the tool's function.
func fullDeclaration(name string, t *core.Tool) string {
	types := buildOutline(t)
	p := tsPrinter{bare: true}
	p.writeDoc(toolDoc(t), 0)
	optional := ""
	if optionalInput(types.input.node) {
		optional = "?"
	}
	p.writeParts(name, "(input", optional, ": ", types.input.name, "): ", resultType(types), "\n")
	if order := orderedCall(name, types); order != "" {
		p.writeParts("// or ", order, "\n")
	}
	if paged := pagedComment(t, types); paged != "" {
		p.writeParts("// ", paged, "\n")
	}
	p.writeParts("\n")
	p.writeTypes(types)
	return strings.ReplaceAll(strings.TrimSpace(p.b.String()), "\n\n", "\n") + "\n"
}
