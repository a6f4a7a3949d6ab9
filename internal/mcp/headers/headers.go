// Package headers knows the headers in which requests of MCP over HTTP repeat what their
// bodies say, since 2026-07-28: arguments of tools that are marked with x-mcp-header, and names.
// Who sends them and who judges them have the same rules. It does no I/O.
package headers

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ParamPrefix is how the headers of arguments begin.
const ParamPrefix = "Mcp-Param-"

// Keyword marks a property of an input schema whose value goes into a header.
const Keyword = "x-mcp-header"

const maxDepth = 64

// Binding represents an argument that a header repeats.
type Binding struct {
	Path   []string // of properties that lead to it
	Header string   // without ParamPrefix
}

// Of finds the bindings of an input schema, in the order of their paths. A header can only stand
// where a chain of properties leads: elsewhere nobody knows which value is meant. One that is
// not as the protocol says is an error, and the tool is none that may be called.
func Of(schema json.RawMessage) ([]Binding, error) {
	var root map[string]any
	if !strings.Contains(string(schema), Keyword) || json.Unmarshal(schema, &root) != nil {
		return nil, nil // the catalogue says what is wrong with it
	}
	w := walk{}
	if err := w.schema(root, nil, true); err != nil {
		return nil, err
	}
	return w.found, nil
}

// walk goes through a schema and collects the headers that it names.
type walk struct {
	found []Binding
	depth int
}

func (w *walk) schema(s map[string]any, path []string, reachable bool) error {
	if w.depth++; w.depth > maxDepth {
		return fmt.Errorf("the schema is nested over %d levels", maxDepth)
	}
	defer func() { w.depth-- }()
	if header, ok := s[Keyword]; ok {
		if err := w.take(header, s["type"], path, reachable); err != nil {
			return fmt.Errorf("%s of %q %w", Keyword, strings.Join(path, "."), err)
		}
	}
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		var err error
		switch keyword {
		case "const", "default", "enum", "examples", Keyword: // values, not schemas
		case "properties":
			err = w.named(s[keyword], path, reachable)
		case "$defs", "definitions", "patternProperties", "dependentSchemas":
			err = w.named(s[keyword], path, false)
		default:
			err = w.within(s[keyword], path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// named takes in schemas by their names.
func (w *walk) named(v any, path []string, reachable bool) error {
	schemas, _ := v.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		if s, ok := schemas[name].(map[string]any); ok {
			if err := w.schema(s, append(slices.Clip(path), name), reachable); err != nil {
				return err
			}
		}
	}
	return nil
}

// within takes in a keyword's schema, or list of schemas, to which no chain of
// properties leads.
func (w *walk) within(v any, path []string) error {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, one := range list {
		if s, ok := one.(map[string]any); ok {
			if err := w.schema(s, path, false); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *walk) take(header, kind any, path []string, reachable bool) error {
	name, _ := header.(string)
	switch {
	case !reachable || len(path) == 0:
		return errors.New("is where no chain of properties leads")
	case !IsToken(name):
		return errors.New("is not the name of a header")
	case kind != "string" && kind != "integer" && kind != "boolean":
		return errors.New("is on a property that is no string, integer or boolean")
	case slices.ContainsFunc(w.found, func(b Binding) bool { return strings.EqualFold(b.Header, name) }):
		return errors.New("names a header for the second time")
	}
	w.found = append(w.found, Binding{Path: path, Header: name})
	return nil
}

// IsToken reports whether s can be part of a header's name (RFC 9110, 5.6.2).
func IsToken(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		alnum := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !alnum && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}
