package tsc

import (
	"encoding/json"
	"slices"

	"github.com/microsoft/typescript-go/internal/ast"
)

// maxSchemaDepth bounds the depth of nested types that a schema describes. Deeper types are unrestricted.
const maxSchemaDepth = 6

// schema returns the JSON Schema of a type, derived from the text of the type alone. A type that it does not
// understand becomes {}, which allows anything.
func (e *exporter) schema(t *ast.Node) string { return encodeSchema(e.shape(t)) }

func encodeSchema(s map[string]any) string {
	text, err := json.Marshal(s)
	if err != nil {
		return "{}"
	}
	return string(text)
}

func (e *exporter) shape(t *ast.Node) map[string]any {
	if e.depth++; e.depth > maxSchemaDepth {
		e.depth--
		return map[string]any{}
	}
	defer func() { e.depth-- }()
	switch t.Kind {
	case ast.KindStringKeyword:
		return map[string]any{"type": "string"}
	case ast.KindNumberKeyword:
		return map[string]any{"type": "number"}
	case ast.KindBooleanKeyword:
		return map[string]any{"type": "boolean"}
	case ast.KindParenthesizedType:
		return e.shape(t.Type())
	case ast.KindArrayType:
		return map[string]any{"type": "array", "items": e.shape(t.AsArrayTypeNode().ElementType)}
	case ast.KindLiteralType:
		return literal(t.AsLiteralTypeNode().Literal)
	case ast.KindUnionType:
		return e.union(t.AsUnionTypeNode().Types.Nodes)
	case ast.KindTypeLiteral:
		return e.object(t.Members())
	case ast.KindTypeReference:
		return e.reference(t)
	}
	return map[string]any{}
}

// reference returns the schema of a named type: an array, a record, or a type that the module declares. For any other
// type it returns {}, which allows anything.
func (e *exporter) reference(t *ast.Node) map[string]any {
	name := e.written(t.AsTypeReferenceNode().TypeName)
	arguments := t.TypeArguments()
	switch {
	case (name == "Array" || name == "ReadonlyArray") && len(arguments) == 1:
		return map[string]any{"type": "array", "items": e.shape(arguments[0])}
	case name == "Record":
		return map[string]any{"type": "object"}
	}
	declared, ok := e.types[name]
	switch {
	case !ok || len(declared.TypeParameters()) > 0:
		return map[string]any{}
	case declared.Kind == ast.KindTypeAliasDeclaration:
		return e.shape(declared.Type())
	}
	return e.object(declared.Members())
}

func (e *exporter) object(members []*ast.Node) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, m := range members {
		if m.Kind != ast.KindPropertySignature || m.Name() == nil || !ast.IsIdentifier(m.Name()) && !ast.IsStringLiteral(m.Name()) {
			continue
		}
		name := m.Name().Text()
		properties[name] = map[string]any{}
		if m.Type() != nil {
			properties[name] = e.shape(m.Type())
		}
		if m.QuestionToken() == nil {
			required = append(required, name)
		}
	}
	s := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// union returns the schema of a union type. A union of literals becomes an enum.
func (e *exporter) union(types []*ast.Node) map[string]any {
	var constants []any
	var shapes []map[string]any
	for _, t := range types {
		if t.Kind == ast.KindUndefinedKeyword {
			continue
		}
		s := e.shape(t)
		if c, ok := s["const"]; ok {
			constants = append(constants, c)
		}
		if !slices.ContainsFunc(shapes, func(o map[string]any) bool { return encodeSchema(o) == encodeSchema(s) }) {
			shapes = append(shapes, s)
		}
	}
	switch {
	case len(constants) == len(shapes) && len(constants) > 0:
		return map[string]any{"enum": constants}
	case len(shapes) == 1:
		return shapes[0]
	case slices.ContainsFunc(shapes, func(s map[string]any) bool { return len(s) == 0 }):
		return map[string]any{}
	}
	return map[string]any{"anyOf": shapes}
}

func literal(n *ast.Node) map[string]any {
	switch n.Kind {
	case ast.KindStringLiteral, ast.KindNoSubstitutionTemplateLiteral:
		return map[string]any{"const": n.Text()}
	case ast.KindNumericLiteral:
		return map[string]any{"const": json.Number(n.Text())}
	case ast.KindTrueKeyword, ast.KindFalseKeyword:
		return map[string]any{"const": n.Kind == ast.KindTrueKeyword}
	case ast.KindNullKeyword:
		return map[string]any{"const": nil}
	}
	return map[string]any{}
}

// literalSchema returns the schema of a parameter without a declared type, derived from its default value.
func literalSchema(n *ast.Node) string {
	switch n.Kind {
	case ast.KindStringLiteral, ast.KindNoSubstitutionTemplateLiteral, ast.KindTemplateExpression:
		return `{"type":"string"}`
	case ast.KindNumericLiteral, ast.KindPrefixUnaryExpression:
		return `{"type":"number"}`
	case ast.KindTrueKeyword, ast.KindFalseKeyword:
		return `{"type":"boolean"}`
	case ast.KindArrayLiteralExpression:
		return `{"type":"array"}`
	case ast.KindObjectLiteralExpression:
		return `{"type":"object"}`
	}
	return "{}"
}
