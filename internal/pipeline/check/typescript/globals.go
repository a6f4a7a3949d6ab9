package typescript

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"retort/internal/core"
)

// serverNames determines under which names programs find servers.
type serverNames struct{ builtins map[string]bool }

// globalName returns the global name under which programs find a server. It returns "" if a built-in object has that
// name.
func (n serverNames) globalName(s *core.ToolServer) string {
	if n.builtins[s.TypeScript] {
		return ""
	}
	return s.TypeScript
}

func (n serverNames) globalServers(tools *core.Toolset) map[string]*core.ToolServer {
	m := make(map[string]*core.ToolServer, len(tools.Servers))
	for _, s := range tools.Servers {
		if name := n.globalName(s); name != "" {
			m[name] = s
		}
	}
	return m
}

// namespaceOf describes a server. The JavaScript engine in the sandbox creates the server's namespace from this
// description.
func namespaceOf(s *core.ToolServer, global string) core.ServerNamespace {
	n := core.ServerNamespace{Server: s.Name, Global: global}
	for _, spelling := range []string{s.TypeScript, s.Name, s.Python} {
		if spelling != "" && !slices.Contains(n.Modules, spelling) {
			n.Modules = append(n.Modules, spelling)
		}
	}
	for _, t := range s.Tools {
		n.Functions = append(n.Functions, core.ToolFunction{Name: t.TypeScript, Tool: t.Name, Params: schemaParams(t.InputSchema)})
	}
	return n
}

// addSpellings adds functions to the namespace of a server, for the tools that the program names in another spelling
// than the namespace does. The argument other maps these spellings to the tools.
func addSpellings(n core.ServerNamespace, other map[string]*core.Tool) core.ServerNamespace {
	n.Functions = slices.Clip(n.Functions)
	for _, name := range slices.Sorted(maps.Keys(other)) {
		n.Functions = append(n.Functions, core.ToolFunction{Name: name, Tool: other[name].Name, Params: schemaParams(other[name].InputSchema)})
	}
	return n
}

// schemaParams returns the names of a schema's properties, in the schema's order.
func schemaParams(schema json.RawMessage) []string {
	var s struct{ Properties json.RawMessage }
	if json.Unmarshal(schema, &s) != nil || len(s.Properties) == 0 {
		return nil
	}
	return keysOf(s.Properties)
}

// keysOf returns the keys of a JSON object in the order in which they are written.
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
