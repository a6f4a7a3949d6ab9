package bindings

import (
	"bytes"
	"encoding/json"
	"slices"

	"retort/internal/core"
)

// ToolParameter describes one parameter of a tool as Python programs write it.
type ToolParameter struct {
	Name     string // the property's name in the schema
	Keyword  string // the parameter's name in Python
	Snake    string // Keyword in snake_case, if that is another spelling and no other parameter's; else ""
	Required bool
	Null     bool   // null is one of its values
	Object   bool   // its value may be an object
	Type     string // in Python, on one line

	node *typeNode
}

// ToolParameters describes the parameters of a tool.
type ToolParameters struct {
	List []ToolParameter // in the order of positional arguments: required ones first
	Open bool            // others may be there
}

// ParametersOf returns the parameters of a tool. A tool whose input is not a simple object has no declared parameters
// and accepts anything.
func ParametersOf(t *core.Tool) ToolParameters {
	types := buildTypes(t)
	object := flattenObjects(types.input.node)
	if object == nil {
		return ToolParameters{Open: true}
	}
	out := ToolParameters{Open: object.index != nil && object.index.shape != shapeNever}
	c := compactPrinter{dialect: pythonDialect{}}
	for _, p := range keywordParams(types.input.node) {
		out.List = append(out.List, ToolParameter{
			Name: p.name, Keyword: p.ident, Required: p.required, Null: mayBeNull(p.node), Object: mayBeObject(p.node),
			Type: c.shortType(p.node, maxType), node: p.node,
		})
	}
	spellSnake(out.List)
	return out
}

// spellSnake sets the field Snake of each parameter to the snake_case spelling of its name. The field stays empty if
// that spelling is already a name of this or another parameter.
func spellSnake(list []ToolParameter) {
	taken := map[string]int{}
	for _, p := range list {
		taken[p.Name]++
		if p.Keyword != p.Name {
			taken[p.Keyword]++
		}
		if s := keywordName(toSnakeCase(p.Keyword)); s != p.Keyword && s != p.Name {
			taken[s]++
		}
	}
	for i, p := range list {
		if s := keywordName(toSnakeCase(p.Keyword)); taken[s] == 1 && s != p.Keyword && s != p.Name {
			list[i].Snake = s
		}
	}
}

func mayBeNull(n *typeNode) bool {
	switch n.shape {
	case shapeAny, shapeNull, shapeBoth:
		return true
	case shapeRef:
		return n.to.node.shape != shapeRef && mayBeNull(n.to.node)
	case shapeUnion:
		return slices.ContainsFunc(n.items, mayBeNull)
	}
	return false
}

// CanTake reports whether a JSON literal is a valid value of the parameter. It returns true if that cannot be
// decided.
func (p ToolParameter) CanTake(literal json.RawMessage) bool {
	if p.node == nil {
		return true
	}
	v, err := parseJSON(bytes.TrimSpace(literal))
	return err != nil || fitsType(p.node, v, 0)
}

// exampleValues maps each kind of Python literal to an example value.
var exampleValues = map[string]*jsonValue{
	"str": {kind: jsonString}, "int": {kind: jsonNumber, text: "1"}, "float": {kind: jsonNumber, text: "1.5"},
	"bool": {kind: jsonBool, text: "true"},
	"list": {kind: jsonArray}, "dict": {kind: jsonObject},
}

// TakesKind reports whether the parameter can have a value of the Python type kind: "str", "int", "float", "bool",
// "list" or "dict".
func (p ToolParameter) TakesKind(kind string) bool {
	v, known := exampleValues[kind]
	return !known || p.node == nil || fitsKind(p.node, v, 0)
}

const fitDepth = 24

// fitsType reports whether v is a value of type n. It returns true if that is unclear.
func fitsType(n *typeNode, v *jsonValue, depth int) bool {
	if depth > fitDepth {
		return true
	}
	switch n.shape {
	case shapeLiteral:
		return n.literal.kind == v.kind && (n.literal.text == v.text || v.kind == jsonNumber)
	case shapeUnion:
		return slices.ContainsFunc(n.items, func(item *typeNode) bool { return fitsType(item, v, depth+1) })
	case shapeRef:
		return fitsType(n.to.node, v, depth+1)
	case shapeArray:
		if v.kind != jsonArray {
			return false
		}
		return !slices.ContainsFunc(v.items, func(item *jsonValue) bool { return !fitsType(n.items[0], item, depth+1) })
	case shapeObject:
		return v.kind == jsonObject && fitsObject(n, v, depth)
	}
	return fitsKind(n, v, depth)
}

// fitsObject reports whether the properties that v has fit the object type n. Missing properties are left to the
// server to check.
func fitsObject(n *typeNode, v *jsonValue, depth int) bool {
	for _, f := range n.fields {
		if given := v.get(f.name); given != nil && !fitsType(f.node, given, depth+1) {
			return false
		}
	}
	return true
}

// fitsKind reports whether a value of v's kind can have type n.
func fitsKind(n *typeNode, v *jsonValue, depth int) bool {
	switch n.shape {
	case shapeNever:
		return false
	case shapeNull:
		return v.kind == jsonNull
	case shapeBoolean:
		return v.kind == jsonBool
	case shapeInteger:
		return v.kind == jsonNumber && !bytes.ContainsAny([]byte(v.text), ".") ||
			v.kind == jsonNumber && bytes.HasSuffix([]byte(v.text), []byte(".0"))
	case shapeNumber:
		return v.kind == jsonNumber
	case shapeString:
		return v.kind == jsonString
	case shapeLiteral:
		return n.literal.kind == v.kind
	case shapeArray, shapeTuple:
		return v.kind == jsonArray
	case shapeObject:
		return v.kind == jsonObject
	case shapeRef:
		return depth > fitDepth || fitsKind(n.to.node, v, depth+1)
	case shapeUnion:
		return slices.ContainsFunc(n.items, func(item *typeNode) bool { return fitsKind(item, v, depth+1) })
	}
	return true
}
