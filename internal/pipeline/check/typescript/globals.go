package typescript

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"retort/internal/core"
)

// names holds the names of servers in programs.
type names struct{ builtins map[string]bool }

// global returns the name under which programs find a server without an import, or "" if a built-in has it.
func (n names) global(s *core.Server) string {
	if n.builtins[s.TypeScript] {
		return ""
	}
	return s.TypeScript
}

func (n names) globals(tools *core.Toolset) map[string]*core.Server {
	m := make(map[string]*core.Server, len(tools.Servers))
	for _, s := range tools.Servers {
		if name := n.global(s); name != "" {
			m[name] = s
		}
	}
	return m
}

// namespaceOf returns a server as the guest creates it.
func namespaceOf(s *core.Server, global string) core.Namespace {
	n := core.Namespace{Server: s.Name, Global: global}
	for _, spelling := range []string{s.TypeScript, s.Name, s.Python} {
		if spelling != "" && !slices.Contains(n.Modules, spelling) {
			n.Modules = append(n.Modules, spelling)
		}
	}
	for _, t := range s.Tools {
		n.Functions = append(n.Functions, core.Function{Name: t.TypeScript, Tool: t.Name, Params: params(t.InputSchema)})
	}
	return n
}

// respelt returns a namespace with additional functions for tools that a program names in another spelling.
func respelt(n core.Namespace, other map[string]*core.Tool) core.Namespace {
	n.Functions = slices.Clip(n.Functions)
	for _, name := range slices.Sorted(maps.Keys(other)) {
		n.Functions = append(n.Functions, core.Function{Name: name, Tool: other[name].Name, Params: params(other[name].InputSchema)})
	}
	return n
}

// params returns the properties of a schema, in its order.
func params(schema json.RawMessage) []string {
	var s struct{ Properties json.RawMessage }
	if json.Unmarshal(schema, &s) != nil || len(s.Properties) == 0 {
		return nil
	}
	return keysOf(s.Properties)
}

// keysOf lists the keys of a JSON object in their order.
func keysOf(object json.RawMessage) []string {
	d := json.NewDecoder(strings.NewReader(string(object)))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var keys []string
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return nil
		}
		keys = append(keys, key.(string))
	}
	return keys
}
