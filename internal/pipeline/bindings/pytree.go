package bindings

import (
	"iter"
	"strings"

	"retort/internal/core"
)

// pythonFiles yields the tree for Python: one package per server.
func pythonFiles(ts *core.Toolset) iter.Seq[file] {
	return func(yield func(file) bool) {
		ok := yield(file{"client.py", func() string { return clientPy }}) &&
			yield(file{serversFolder + "/__init__.py", func() string { return serversPackage(ts) }})
		for _, s := range ts.Servers {
			ok = ok && yield(file{serversFolder + "/" + s.Python + "/__init__.py", func() string { return serverPackage(s) }})
		}
	}
}

func serversPackage(ts *core.Toolset) string {
	p := &pyPrinter{}
	p.write("\"\"\"All servers.\"\"\"\n\n")
	for _, s := range ts.Servers {
		p.write("from . import ", s.Python, "\n")
	}
	p.write("\n__all__ = [")
	for i, s := range ts.Servers {
		if i > 0 {
			p.write(", ")
		}
		p.write(pyQuote(s.Python))
	}
	p.write("]\n")
	return p.b.String()
}

const packageHead = `from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from client import call_mcp_tool, given, unset

if TYPE_CHECKING:
    from typing import Any, Literal, NoReturn, NotRequired, TypeAlias

`

// serverPackage returns the module of a server. Its first line is a docstring, so that no other line can declare an
// encoding.
func serverPackage(s *core.Server) string {
	p := &pyPrinter{}
	p.docstring(append([]string{"The tools of " + oneLine(s.Name) + "."}, lines(s.Instructions)...), "")
	p.write("\n", packageHead)
	for _, t := range s.Tools {
		p.write("\n", pyWrapper(t))
	}
	return p.b.String()
}

// pyWrapper returns a tool's types and the function that calls it.
func pyWrapper(t *core.Tool) string {
	types := describe(t)
	p := newPyPrinter(types)
	params := keywordParams(types.input.node)
	head, body := p.function(t, types, params)
	p.declarations(types)
	p.write(head)
	p.docstring(append(docLines(pyToolDoc(t, types)), paramDocs(params)...), "    ")
	p.write(body, "\n")
	return p.b.String()
}

// function returns the head and the last line of a wrapper.
func (p *pyPrinter) function(t *core.Tool, types *tool, params []param) (head, body string) {
	name := pyQuote(t.Server + "__" + t.Name)
	if params == nil {
		head = "def " + t.Python + "(**arguments: Any) -> " + pyResult(types) + ":\n"
		return head, "    return call_mcp_tool(" + name + ", arguments)\n"
	}
	var signature, pairs []string
	for _, q := range params {
		part := q.ident + ": " + p.typ(q.node, p.prefix+"_"+upperFirst(camel(q.name)))
		if !q.required {
			part += " = unset"
		}
		signature = append(signature, part)
		pairs = append(pairs, pyQuote(q.name)+": "+q.ident)
	}
	if index := flat(types.input.node).index; index != nil && index.shape != shapeNever {
		signature = append(signature, "**"+moreParam+": Any")
		pairs = append(pairs, "**"+moreParam)
	}
	p.notes = nil
	head = "def " + t.Python + "(" + strings.Join(signature, ", ") + ") -> " + pyResult(types) + ":\n"
	return head, "    return call_mcp_tool(" + name + ", given({" + strings.Join(pairs, ", ") + "}))\n"
}

// paramDocs returns the lines of a docstring that describe parameters.
func paramDocs(params []param) []string {
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
