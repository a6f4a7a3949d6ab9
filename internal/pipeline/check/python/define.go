package python

import (
	"encoding/json"
	"strings"

	"retort/internal/core"
	"retort/internal/pipeline/check/source"
)

// topNames returns the names that a module defines.
func (p *program) topNames() map[string]bool {
	names := map[string]bool{}
	for v := range p.scopes.bindings {
		if v.scope == p.scopes.module {
			names[p.scopes.s.texts[v.name]] = true
		}
	}
	return names
}

// functions returns the functions that a module exports: those at its top level whose names do not begin with an
// underscore.
func (p *program) functions() []source.Function {
	s := p.scopes.s
	var found []source.Function
	for _, item := range s.list(s.root, fieldBody) {
		id := nodeOf(item)
		c := s.class(id)
		if name := s.word(id, fieldName); (c == classFunctionDef || c == classAsyncFunctionDef) && !strings.HasPrefix(name, "_") {
			f := source.Function{Name: name, Async: c == classAsyncFunctionDef, Result: p.textOf(s.node(id, fieldReturns)), Doc: s.docstring(id)}
			f.Params = p.params(s.node(id, fieldArgs))
			found = append(found, f)
		}
	}
	return found
}

// importable refuses a skill's code outside of functions that only a program may have.
func (p *program) importable() *core.Error {
	s := p.scopes.s
	what := ""
	var find func(id nodeID) nodeID
	find = func(id nodeID) nodeID {
		switch c := s.class(id); {
		case isFunction(c), c == classClassDef:
			return 0
		case c == classReturn:
			what = "return"
			return id
		case c == classAwait, c == classAsyncFor, c == classAsyncWith:
			what = "await"
			return id
		}
		for child := range s.children(id) {
			if found := find(child); found != 0 {
				return found
			}
		}
		return 0
	}
	id := find(s.root)
	if id == 0 {
		return nil
	}
	n := s.nodes[id]
	return p.refuse([]finding{{kind: core.KindSyntax, message: what + " outside of functions, in a skill", hint: "a skill is imported: put what it does into functions", place: place{int(n.line), int(n.column) + 1, len(what)}}})
}

// docstring returns the docstring of a function, without its indentation.
func (s *syntax) docstring(id nodeID) string {
	body := s.list(id, fieldBody)
	if len(body) == 0 {
		return ""
	}
	first := nodeOf(body[0])
	if s.class(first) != classExpr || !s.isText(s.node(first, fieldValue)) {
		return ""
	}
	var lines []string
	for line := range strings.Lines(s.word(s.node(first, fieldValue), fieldValue)) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

func (p *program) params(arguments nodeID) []source.Param {
	s := p.scopes.s
	var found []source.Param
	plain := append(s.list(arguments, fieldPositionOnly)[:len(s.list(arguments, fieldPositionOnly)):len(s.list(arguments, fieldPositionOnly))], s.list(arguments, fieldArgs)...)
	defaults := len(s.list(arguments, fieldDefaults))
	for i, item := range plain {
		found = append(found, p.param(nodeOf(item), i >= len(plain)-defaults, false))
	}
	if id := s.node(arguments, fieldVarArg); id != 0 {
		found = append(found, p.param(id, true, true))
	}
	kinds := s.list(arguments, fieldKeywordDefaults)
	for i, item := range s.list(arguments, fieldKeywordOnly) {
		found = append(found, p.param(nodeOf(item), i < len(kinds) && kinds[i].sort != sortNone, false))
	}
	return found
}

func (p *program) param(id nodeID, optional, rest bool) source.Param {
	s := p.scopes.s
	annotation := s.node(id, fieldAnnotation)
	schema, err := json.Marshal(s.schema(annotation, 0))
	if err != nil {
		schema = []byte("{}")
	}
	return source.Param{Name: s.word(id, fieldArg), Type: p.textOf(annotation), Schema: string(schema), Optional: optional, Rest: rest}
}

// textOf returns the source text of a node, or "".
func (p *program) textOf(id nodeID) string {
	n := p.scopes.s.nodes[id]
	starts := lineStarts(p.code)
	if id == 0 || n.line < 1 || int(n.endLine) > len(starts) {
		return ""
	}
	from, to := starts[n.line-1]+int(n.column), starts[n.endLine-1]+int(n.endColumn)
	if from < 0 || to > len(p.code) || from > to {
		return ""
	}
	return p.code[from:to]
}

const deepestSchema = 6

var schemaTypes = map[string]string{"str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "List": "array", "Sequence": "array", "Iterable": "array", "dict": "object", "Dict": "object", "Mapping": "object"}

// schema returns the JSON Schema of an annotation. {} accepts anything.
func (s *syntax) schema(id nodeID, depth int) map[string]any {
	if id == 0 || depth > deepestSchema {
		return map[string]any{}
	}
	switch s.class(id) {
	case className, classAttribute:
		name := s.word(id, fieldID) + s.word(id, fieldAttr)
		if t := schemaTypes[name]; t != "" {
			return map[string]any{"type": t}
		}
	case classConstant:
		if s.get(id, fieldValue).sort == sortNone {
			return map[string]any{"const": nil}
		}
	case classBinOp:
		if s.symbol(id, fieldOp) == classBitOr {
			return anyOf(s.schema(s.node(id, fieldLeft), depth+1), s.schema(s.node(id, fieldRight), depth+1))
		}
	case classSubscript:
		return s.subscript(id, depth)
	}
	return map[string]any{}
}

func (s *syntax) subscript(id nodeID, depth int) map[string]any {
	of, inside := s.node(id, fieldValue), s.node(id, fieldSlice)
	name := s.word(of, fieldID) + s.word(of, fieldAttr)
	var arguments []nodeID
	if s.class(inside) == classTuple {
		for _, item := range s.list(inside, fieldElements) {
			arguments = append(arguments, nodeOf(item))
		}
	} else {
		arguments = []nodeID{inside}
	}
	switch {
	case name == "Optional" && len(arguments) == 1:
		return anyOf(s.schema(arguments[0], depth+1), map[string]any{"const": nil})
	case name == "Union" && len(arguments) == 2:
		return anyOf(s.schema(arguments[0], depth+1), s.schema(arguments[1], depth+1))
	case name == "Literal":
		return s.literals(arguments)
	case schemaTypes[name] == "array" && len(arguments) == 1:
		return map[string]any{"type": "array", "items": s.schema(arguments[0], depth+1)}
	case schemaTypes[name] == "object":
		return map[string]any{"type": "object"}
	}
	return map[string]any{}
}

func (s *syntax) literals(arguments []nodeID) map[string]any {
	var values []json.RawMessage
	for _, id := range arguments {
		value, ok := s.literal(nil, id, 0)
		if !ok {
			return map[string]any{}
		}
		values = append(values, value)
	}
	return map[string]any{"enum": values}
}

func anyOf(a, b map[string]any) map[string]any {
	if len(a) == 0 || len(b) == 0 {
		return map[string]any{}
	}
	return map[string]any{"anyOf": []any{a, b}}
}
