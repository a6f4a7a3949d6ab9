package paging

import (
	"bytes"
	"encoding/json"
	"strings"

	"retort/internal/base/jsonscan"
)

// Kind is a set of types that a value may have.
type Kind uint8

// The types of JSON values. A Kind can combine them.
const (
	Null Kind = 1 << iota
	Bool
	Number
	String
	List
	Object
	Any = Null | Bool | Number | String | List | Object
)

// Shape outlines the type of a value: of one that a schema describes, or of one that is there.
type Shape struct {
	Kind    Kind
	Members []Member // of an object, as far as they are known
	Item    *Shape   // of a list; nil if unknown
}

// Member is a named part of an object's Shape.
type Member struct {
	Name  string
	Shape *Shape
}

// Bounds on the Shape of a value.
const (
	maxDepth   = 5    // of objects in objects
	maxMembers = 5000 // of all objects
	maxOuter   = 1000 // of the outermost one
	maxInner   = 100  // of each of the others
)

// ShapeOf returns the Shape of a value, which must be valid JSON. An empty text counts as null, because servers mark
// the last page with either. Of a value with very many members, the Shape has the first ones.
func ShapeOf(value json.RawMessage) *Shape {
	type part struct {
		shape *Shape
		value []byte
		depth int
	}
	root := &Shape{}
	left := maxMembers
	for queue := []part{{root, bytes.TrimSpace(value), 0}}; len(queue) > 0; queue = queue[1:] {
		p := queue[0]
		p.shape.Kind = kindOfValue(p.value)
		if p.depth == maxDepth {
			continue
		}
		switch p.shape.Kind {
		case List:
			for item := range jsonscan.Items(p.value) {
				p.shape.Item = &Shape{}
				queue = append(queue, part{p.shape.Item, item, max(p.depth+1, maxDepth-1)}) // only its own members
				break
			}
		case Object:
			for key, inner := range jsonscan.Members(p.value) {
				most := maxInner
				if p.depth == 0 {
					most = maxOuter
				}
				if left--; left < 0 || len(p.shape.Members) == most {
					break
				}
				if name, ok := jsonscan.Unquote(string(key)); ok {
					m := Member{name, &Shape{}}
					p.shape.Members = append(p.shape.Members, m)
					queue = append(queue, part{m.Shape, inner, p.depth + 1})
				}
			}
		}
	}
	return root
}

func kindOfValue(value []byte) Kind {
	switch {
	case len(value) == 0, value[0] == 'n', string(value) == `""`:
		return Null
	case value[0] == 't', value[0] == 'f':
		return Bool
	case value[0] == '"':
		return String
	case value[0] == '[':
		return List
	case value[0] == '{':
		return Object
	}
	return Number
}

// member returns the Shape of a member, or nil. Of several members with one name, the last counts, as in JSON.parse.
func (s *Shape) member(name string) *Shape {
	for i := len(s.Members) - 1; i >= 0; i-- {
		if s.Members[i].Name == name {
			return s.Members[i].Shape
		}
	}
	return nil
}

// names returns the names of an object's members, with those of the objects that may hold facts about the page.
func (s *Shape) names() []string {
	var all []string
	for _, m := range s.Members {
		all = append(all, m.Name)
		if m.Shape.Kind&Object != 0 && containers.has(foldName(m.Name)) {
			for _, inner := range m.Shape.Members {
				all = append(all, m.Name+"."+inner.Name)
			}
		}
	}
	return all
}

// lookup returns the value at a path of member names, or nil if a name on the path is missing.
func lookup(value []byte, path []string) []byte {
	value = bytes.TrimSpace(value)
	for _, name := range path {
		if len(value) == 0 || value[0] != '{' {
			return nil
		}
		var found []byte
		for key, member := range jsonscan.Members(value) {
			if text, ok := jsonscan.Unquote(string(key)); ok && text == name {
				found = member
			}
		}
		value = found
	}
	return value
}

// Input describes a parameter of a tool.
type Input struct {
	Name  string
	Kind  Kind
	first int64 // the number of the first page, or the offset of the first item; -1 if unknown
}

// InputsOf returns the parameters that a tool's input schema declares, in the order of their names in the schema.
func InputsOf(schema json.RawMessage) []Input {
	if !json.Valid(schema) {
		return nil
	}
	var inputs []Input
	for key, property := range jsonscan.Members(bytes.TrimSpace(lookup(schema, []string{"properties"}))) {
		name, ok := jsonscan.Unquote(string(key))
		if !ok || len(inputs) == maxOuter {
			continue
		}
		inputs = append(inputs, inputOf(name, property))
	}
	return inputs
}

func inputOf(name string, property []byte) Input {
	var p struct {
		Type        json.RawMessage
		Description string
		Default     json.RawMessage
		Minimum     json.RawMessage
		AnyOf       []struct{ Type, Minimum json.RawMessage }
	}
	_ = json.Unmarshal(property, &p) // what cannot be read is not known
	in := Input{Name: name, Kind: kindOf(p.Type), first: -1}
	for _, branch := range p.AnyOf {
		in.Kind |= kindOf(branch.Type)
	}
	if in.Kind&^Null == 0 {
		in.Kind = Any
	}
	if n, ok := parseNumber(p.Default); ok {
		in.first = n
	} else if n, ok := parseNumber(p.Minimum); ok && n < 2 {
		in.first = n
	} else if zeroBased(strings.ToLower(p.Description)) {
		in.first = 0
	}
	return in
}

// zeroBased reports whether the description of a parameter says that pages are counted from 0.
func zeroBased(description string) bool {
	for _, said := range []string{
		"0-based", "zero-based", "0-indexed", "zero-indexed", "starts at 0", "starting at 0", "starting from 0", "starts from 0",
	} {
		if strings.Contains(description, said) {
			return true
		}
	}
	return false
}

var kindNames = map[string]Kind{
	"null": Null, "boolean": Bool, "number": Number, "integer": Number, "string": String, "array": List, "object": Object,
}

// kindOf returns the types that the keyword type of a schema names.
func kindOf(typ json.RawMessage) Kind {
	var one string
	var several []string
	if json.Unmarshal(typ, &one) == nil {
		return kindNames[one]
	}
	_ = json.Unmarshal(typ, &several)
	var k Kind
	for _, name := range several {
		k |= kindNames[name]
	}
	return k
}
