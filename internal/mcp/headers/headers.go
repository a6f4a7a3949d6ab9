// Package headers implements the HTTP headers in which MCP requests repeat parts of their bodies, since protocol
// version 2026-07-28: names, and arguments of tools marked with x-mcp-header. Sender and receiver share these rules.
// The package does no I/O.
package headers

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ParamPrefix begins the name of each header that repeats an argument.
const ParamPrefix = "Mcp-Param-"

// Keyword marks a property of an input schema whose value is repeated in a header.
const Keyword = "x-mcp-header"

const maxDepth = 64

// HeaderBinding connects an argument with the header that repeats it.
type HeaderBinding struct {
	Path   []string // names of the properties that lead to the argument
	Header string   // name of the header, without ParamPrefix
}

// FindBindings returns the header bindings of an input schema, in the order of their paths. A property can be bound
// to a header only if all schemas above it are properties of objects: elsewhere, such as in an array, it is unclear
// which value is meant. If the schema violates the protocol, FindBindings returns an error, and the tool must not be
// called.
func FindBindings(schema json.RawMessage) ([]HeaderBinding, error) {
	var root map[string]any
	if !strings.Contains(string(schema), Keyword) || json.Unmarshal(schema, &root) != nil {
		return nil, nil // the catalogue reports invalid schemas
	}
	w := schemaWalk{}
	if err := w.walkSchema(root, nil, true); err != nil {
		return nil, err
	}
	return w.found, nil
}

// schemaWalk visits a schema and collects its bindings.
type schemaWalk struct {
	found []HeaderBinding
	depth int
}

func (w *schemaWalk) walkSchema(s map[string]any, path []string, reachable bool) error {
	if w.depth++; w.depth > maxDepth {
		return fmt.Errorf("the schema is nested more than %d levels deep", maxDepth)
	}
	defer func() { w.depth-- }()
	if header, ok := s[Keyword]; ok {
		if err := w.addBinding(header, s["type"], path, reachable); err != nil {
			return fmt.Errorf("%s of %q %w", Keyword, strings.Join(path, "."), err)
		}
	}
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		var err error
		switch keyword {
		case "const", "default", "enum", "examples", Keyword: // values, not schemas
		case "properties":
			err = w.walkProperties(s[keyword], path, reachable)
		case "$defs", "definitions", "patternProperties", "dependentSchemas":
			err = w.walkProperties(s[keyword], path, false)
		default:
			err = w.walkUnreachable(s[keyword], path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// walkProperties visits an object of schemas by name.
func (w *schemaWalk) walkProperties(v any, path []string, reachable bool) error {
	schemas, _ := v.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		if s, ok := schemas[name].(map[string]any); ok {
			if err := w.walkSchema(s, append(slices.Clip(path), name), reachable); err != nil {
				return err
			}
		}
	}
	return nil
}

// walkUnreachable visits the schema, or list of schemas, of a keyword such as items, below which no property can be
// bound to a header.
func (w *schemaWalk) walkUnreachable(v any, path []string) error {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, one := range list {
		if s, ok := one.(map[string]any); ok {
			if err := w.walkSchema(s, path, false); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *schemaWalk) addBinding(header, kind any, path []string, reachable bool) error {
	name, _ := header.(string)
	switch {
	case !reachable || len(path) == 0:
		return errors.New("cannot be reached through a chain of properties")
	case !IsToken(name):
		return errors.New("is not the name of a header")
	case kind != "string" && kind != "integer" && kind != "boolean":
		return errors.New("is on a property that is not a string, an integer or a boolean")
	case slices.ContainsFunc(w.found, func(b HeaderBinding) bool { return strings.EqualFold(b.Header, name) }):
		return errors.New("names a header that another property already names")
	}
	w.found = append(w.found, HeaderBinding{Path: path, Header: name})
	return nil
}

// IsToken reports whether s may be part of a header's name (RFC 9110, 5.6.2).
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
