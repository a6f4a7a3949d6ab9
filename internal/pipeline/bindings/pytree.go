package bindings

import (
	"iter"
	"strings"

	"retort/internal/core"
)

// pythonFiles yields the wrapper files for Python: one package for each server.
func pythonFiles(ts *core.Toolset) iter.Seq[treeFile] {
	return func(yield func(treeFile) bool) {
		ok := yield(treeFile{"client.py", func() string { return clientPy }}) &&
			yield(treeFile{serversFolder + "/__init__.py", func() string { return serversPackage(ts) }})
		for _, s := range ts.Servers {
			ok = ok && yield(treeFile{serversFolder + "/" + s.Python + "/__init__.py", func() string { return serverPackage(ts.MarkServer(s)) }})
		}
	}
}

func serversPackage(ts *core.Toolset) string {
	p := &pyPrinter{}
	p.writeParts("\"\"\"All servers.\"\"\"\n\n")
	for _, s := range ts.Servers {
		p.writeParts("from . import ", s.Python, "\n")
	}
	p.writeParts("\n__all__ = [")
	for i, s := range ts.Servers {
		if i > 0 {
			p.writeParts(", ")
		}
		p.writeParts(pyQuote(s.Python))
	}
	p.writeParts("]\n")
	return p.b.String()
}

const packageHead = `from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from client import call_mcp_tool, given, unset

if TYPE_CHECKING:
    from typing import Any, Literal, NoReturn, NotRequired, TypeAlias

`

// serverPackage returns the Python module of a server. Its first line is a docstring, so that no text from the server
// can declare a source encoding.
func serverPackage(s *core.ToolServer) string {
	p := &pyPrinter{}
	p.writeDocstring(append([]string{"The tools of " + oneLine(s.Name) + "."}, plainLines(s.Instructions)...), "")
	p.writeParts("\n", packageHead)
	for _, t := range s.Tools {
		p.writeParts("\n", pyWrapper(t))
	}
	return p.b.String()
}

// pyWrapper returns the Python source of a tool: its types, and the function that calls it.
func pyWrapper(t *core.Tool) string {
	types := buildTypes(t)
	p := newPyPrinter(types)
	params := keywordParams(types.input.node)
	head, body := p.formatFunction(t, types, params)
	p.writeDeclarations(types)
	if paged := pagedComment(t, types); paged != "" {
		p.writeParts("# ", paged, "\n")
	}
	p.writeParts(head)
	p.writeDocstring(append(docLines(pyToolDoc(t, types)), paramDocs(params)...), "    ")
	p.writeParts(body, "\n")
	return p.b.String()
}

// formatFunction returns the two parts of a wrapper function between which its docstring is written: the line with
// its signature, and the statement that calls the tool.
func (p *pyPrinter) formatFunction(t *core.Tool, types *toolTypes, params []positionalParam) (head, body string) {
	name := pyQuote(t.Server + "__" + t.Name)
	if params == nil {
		head = "def " + t.Python + "(**arguments: Any) -> " + pyResult(types) + ":\n"
		return head, "    return call_mcp_tool(" + name + ", arguments)\n"
	}
	var signature, pairs []string
	for _, q := range params {
		part := q.ident + ": " + p.formatType(q.node, p.prefix+"_"+upperFirst(toCamelCase(q.name)))
		if !q.required {
			part += " = unset"
		}
		signature = append(signature, part)
		pairs = append(pairs, pyQuote(q.name)+": "+q.ident)
	}
	if index := flattenObjects(types.input.node).index; index != nil && index.shape != shapeNever {
		signature = append(signature, "**"+moreParam+": Any")
		pairs = append(pairs, "**"+moreParam)
	}
	p.notes = nil
	head = "def " + t.Python + "(" + strings.Join(signature, ", ") + ") -> " + pyResult(types) + ":\n"
	return head, "    return call_mcp_tool(" + name + ", given({" + strings.Join(pairs, ", ") + "}))\n"
}

// paramDocs returns the lines of a docstring that describe parameters.
func paramDocs(params []positionalParam) []string {
	var out []string
	for _, q := range params {
		if text := strings.Join(docLines(q.node.doc), " "); text != "" {
			out = append(out, q.ident+": "+oneLine(text))
		}
	}
	if len(out) > 0 {
		out = append([]string{""}, out...)
	}
	return out
}
