package python

import (
	"encoding/json"
	"strings"

	"retort/internal/core"
	"retort/internal/pipeline/check/source"
)

// topNames returns the names that the program defines outside of functions and classes.
func (p *pythonProgram) topNames() map[string]bool {
	names := map[string]bool{}
	for v := range p.scopes.bindings {
		if v.scope == p.scopes.module {
			names[p.scopes.s.texts[v.name]] = true
		}
	}
	return names
}

// exportedFunctions returns the functions that a module exports: those at its top level whose names do not begin with an
// underscore.
func (p *pythonProgram) exportedFunctions() []source.SkillFunction {
	s := p.scopes.s
	var found []source.SkillFunction
	for _, item := range s.fieldList(s.root, fieldBody) {
		id := nodeOf(item)
		c := s.classOf(id)
		if name := s.fieldString(id, fieldName); (c == classFunctionDef || c == classAsyncFunctionDef) && !strings.HasPrefix(name, "_") {
			f := source.SkillFunction{
				Name: name, Async: c == classAsyncFunctionDef, Result: p.textOf(s.childNode(id, fieldReturns)),
				Doc: s.functionDocstring(id),
			}
			f.Params = p.functionParams(s.childNode(id, fieldArgs))
			found = append(found, f)
		}
	}
	return found
}

// checkImportable returns an error if a skill has a return or await outside of functions. Only programs may have
// these.
func (p *pythonProgram) checkImportable() *core.Error {
	s := p.scopes.s
	what := ""
	var find func(id nodeID) nodeID
	find = func(id nodeID) nodeID {
		switch c := s.classOf(id); {
		case isFunction(c), c == classClassDef:
			return 0
		case c == classReturn:
			what = "return"
			return id
		case c == classAwait, c == classAsyncFor, c == classAsyncWith:
			what = "await"
			return id
		}
		for child := range s.childNodes(id) {
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
	return p.refuseFindings(
		[]refusalFinding{{
			kind: core.KindSyntax, message: what + " outside of functions, in a skill",
			hint:        "skills are imported, so put the code into functions",
			sourcePlace: sourcePlace{int(n.line), int(n.column) + 1, len(what)},
		}},
	)
}

// functionDocstring returns the docstring of a function, without its indentation.
func (s *syntaxTree) functionDocstring(id nodeID) string {
	body := s.fieldList(id, fieldBody)
	if len(body) == 0 {
		return ""
	}
	first := nodeOf(body[0])
	if s.classOf(first) != classExpr || !s.isText(s.childNode(first, fieldValue)) {
		return ""
	}
	var lines []string
	for line := range strings.Lines(s.fieldString(s.childNode(first, fieldValue), fieldValue)) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

func (p *pythonProgram) functionParams(arguments nodeID) []source.FunctionParam {
	s := p.scopes.s
	var found []source.FunctionParam
	plain := append(s.fieldList(arguments, fieldPositionOnly)[:len(
		s.fieldList(arguments, fieldPositionOnly),
	):len(s.fieldList(arguments, fieldPositionOnly))], s.fieldList(arguments, fieldArgs)...)
	defaults := len(s.fieldList(arguments, fieldDefaults))
	for i, item := range plain {
		found = append(found, p.functionParam(nodeOf(item), i >= len(plain)-defaults, false))
	}
	if id := s.childNode(arguments, fieldVarArg); id != 0 {
		found = append(found, p.functionParam(id, true, true))
	}
	kinds := s.fieldList(arguments, fieldKeywordDefaults)
	for i, item := range s.fieldList(arguments, fieldKeywordOnly) {
		found = append(found, p.functionParam(nodeOf(item), i < len(kinds) && kinds[i].sort != sortNone, false))
	}
	return found
}

func (p *pythonProgram) functionParam(id nodeID, optional, rest bool) source.FunctionParam {
	s := p.scopes.s
	annotation := s.childNode(id, fieldAnnotation)
	schema, err := json.Marshal(s.annotationSchema(annotation, 0))
	if err != nil {
		schema = []byte("{}")
	}
	return source.FunctionParam{
		Name: s.fieldString(id, fieldArg), Type: p.textOf(annotation), Schema: string(schema), Optional: optional,
		Rest: rest,
	}
}

// textOf returns the source text of a node, or "".
func (p *pythonProgram) textOf(id nodeID) string {
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

var schemaTypes = map[string]string{
	"str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "List": "array",
	"Sequence": "array", "Iterable": "array", "dict": "object", "Dict": "object", "Mapping": "object",
}

// annotationSchema returns the JSON Schema for a type annotation. If the annotation is missing or unknown, the schema
// is {}, which accepts every value.
func (s *syntaxTree) annotationSchema(id nodeID, depth int) map[string]any {
	if id == 0 || depth > deepestSchema {
		return map[string]any{}
	}
	switch s.classOf(id) {
	case className, classAttribute:
		name := s.fieldString(id, fieldID) + s.fieldString(id, fieldAttr)
		if t := schemaTypes[name]; t != "" {
			return map[string]any{"type": t}
		}
	case classConstant:
		if s.fieldValue(id, fieldValue).sort == sortNone {
			return map[string]any{"const": nil}
		}
	case classBinOp:
		if s.fieldSymbol(id, fieldOp) == classBitOr {
			return anyOf(s.annotationSchema(s.childNode(id, fieldLeft), depth+1), s.annotationSchema(s.childNode(id, fieldRight), depth+1))
		}
	case classSubscript:
		return s.subscriptSchema(id, depth)
	}
	return map[string]any{}
}

func (s *syntaxTree) subscriptSchema(id nodeID, depth int) map[string]any {
	of, inside := s.childNode(id, fieldValue), s.childNode(id, fieldSlice)
	name := s.fieldString(of, fieldID) + s.fieldString(of, fieldAttr)
	var arguments []nodeID
	if s.classOf(inside) == classTuple {
		for _, item := range s.fieldList(inside, fieldElements) {
			arguments = append(arguments, nodeOf(item))
		}
	} else {
		arguments = []nodeID{inside}
	}
	switch {
	case name == "Optional" && len(arguments) == 1:
		return anyOf(s.annotationSchema(arguments[0], depth+1), map[string]any{"const": nil})
	case name == "Union" && len(arguments) == 2:
		return anyOf(s.annotationSchema(arguments[0], depth+1), s.annotationSchema(arguments[1], depth+1))
	case name == "Literal":
		return s.literalSchema(arguments)
	case schemaTypes[name] == "array" && len(arguments) == 1:
		return map[string]any{"type": "array", "items": s.annotationSchema(arguments[0], depth+1)}
	case schemaTypes[name] == "object":
		return map[string]any{"type": "object"}
	}
	return map[string]any{}
}

func (s *syntaxTree) literalSchema(arguments []nodeID) map[string]any {
	var values []json.RawMessage
	for _, id := range arguments {
		value, ok := s.appendLiteral(nil, id, 0)
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
