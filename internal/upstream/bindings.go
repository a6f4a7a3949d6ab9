package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// bindings are the arguments of tools that servers want repeated in headers,
// learned from the definitions ("x-mcp-header" on a property).
type bindings struct {
	mu    sync.Mutex
	tools map[string][]binding
}

// binding is one such argument: where it is, and the header's name.
type binding struct {
	path   []string
	header string
}

const (
	headerKeyword  = "x-mcp-header"
	maxSchemaDepth = 64
)

// learn takes in the definitions of all tools of a server and returns those that
// may be called: the protocol has clients leave out a tool whose headers are not as
// it says. refused is told of each that is left out.
func (b *bindings) learn(tools []json.RawMessage, refused func(tool string, why error)) []json.RawMessage {
	found := map[string][]binding{}
	kept := slices.DeleteFunc(slices.Clone(tools), func(raw json.RawMessage) bool {
		if !bytes.Contains(raw, []byte(`"`+headerKeyword+`"`)) {
			return false
		}
		var tool struct {
			Name   string         `json:"name"`
			Schema map[string]any `json:"inputSchema"`
		}
		if json.Unmarshal(raw, &tool) != nil {
			return false // the catalogue says what is wrong with it
		}
		w := headerWalk{}
		if err := w.schema(tool.Schema, nil, true); err != nil {
			refused(tool.Name, err)
			return true
		}
		found[tool.Name] = w.found
		return false
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tools = found
	return kept
}

// headerWalk goes through a schema and collects the headers that it names.
type headerWalk struct {
	found []binding
	depth int
}

// schema takes in one schema. A header can only stand where a chain of properties
// leads: elsewhere nobody knows which value is meant.
func (w *headerWalk) schema(s map[string]any, path []string, reachable bool) error {
	if w.depth++; w.depth > maxSchemaDepth {
		return fmt.Errorf("the schema is nested over %d levels", maxSchemaDepth)
	}
	defer func() { w.depth-- }()
	if header, ok := s[headerKeyword]; ok {
		if err := w.take(header, s["type"], path, reachable); err != nil {
			return fmt.Errorf("%s of %q %w", headerKeyword, strings.Join(path, "."), err)
		}
	}
	for keyword, v := range s {
		var err error
		switch keyword {
		case "const", "default", "enum", "examples", headerKeyword: // values, not schemas
		case "properties":
			err = w.named(v, path, reachable)
		case "$defs", "definitions", "patternProperties", "dependentSchemas":
			err = w.named(v, path, false)
		default:
			err = w.within(v, path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// named takes in schemas by their names.
func (w *headerWalk) named(v any, path []string, reachable bool) error {
	schemas, _ := v.(map[string]any)
	for name, sub := range schemas {
		if s, ok := sub.(map[string]any); ok {
			if err := w.schema(s, append(slices.Clip(path), name), reachable); err != nil {
				return err
			}
		}
	}
	return nil
}

// within takes in a keyword's schema, or list of schemas, to which no chain of
// properties leads.
func (w *headerWalk) within(v any, path []string) error {
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

func (w *headerWalk) take(header, kind any, path []string, reachable bool) error {
	name, _ := header.(string)
	switch {
	case !reachable || len(path) == 0:
		return errors.New("is where no chain of properties leads")
	case !isToken(name):
		return errors.New("is not the name of a header")
	case kind != "string" && kind != "integer" && kind != "boolean":
		return errors.New("is on a property that is no string, integer or boolean")
	case slices.ContainsFunc(w.found, func(b binding) bool { return strings.EqualFold(b.header, name) }):
		return errors.New("names a header for the second time")
	}
	w.found = append(w.found, binding{path: path, header: name})
	return nil
}
