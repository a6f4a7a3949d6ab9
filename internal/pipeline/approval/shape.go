package approval

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// maxShape bounds the nesting depth of values that ArgumentShape replaces by their types. Values nested more deeply
// are kept unchanged.
const maxShape = 32

// ArgumentShape returns a text with the keys and types of arguments, without their values. Arguments with equal keys
// and types have equal shapes.
func ArgumentShape(arguments json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(arguments))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return string(arguments)
	}
	return shapeOf(v, 0)
}

func shapeOf(v any, depth int) string {
	if depth > maxShape {
		raw, err := json.Marshal(v)
		if err != nil {
			return "?"
		}
		return string(raw)
	}
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		var of []string
		for _, item := range v {
			of = append(of, shapeOf(item, depth+1))
		}
		slices.Sort(of)
		return "[" + strings.Join(slices.Compact(of), "|") + "]"
	case map[string]any:
		var of []string
		for key, item := range v {
			name, _ := json.Marshal(key) // a string always marshals
			of = append(of, string(name)+":"+shapeOf(item, depth+1))
		}
		slices.Sort(of)
		return "{" + strings.Join(of, ",") + "}"
	}
	return "?"
}
