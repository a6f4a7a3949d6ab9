package python

import (
	"encoding/json"
	"slices"
	"strings"

	"retort/internal/core"
	"retort/internal/pipeline/bindings"
)

func server(name string, tools ...*core.Tool) *core.ToolServer {
	raw := make([]string, len(tools))
	for i, t := range tools {
		t.Server = name
		raw[i] = t.Name
	}
	names := bindings.AssignTools(raw)
	for _, t := range tools {
		t.TypeScript, t.Python = names[t.Name].TypeScript, names[t.Name].Python
	}
	return &core.ToolServer{Name: name, Tools: tools}
}

func tool(name, input, output string) *core.Tool {
	return &core.Tool{Name: name, Description: "About " + name + ".", InputSchema: json.RawMessage(input), OutputSchema: json.RawMessage(output)}
}

func toolset(servers ...*core.ToolServer) *core.Toolset {
	slices.SortFunc(servers, func(a, b *core.ToolServer) int { return strings.Compare(a.Name, b.Name) })
	raw := make([]string, len(servers))
	for i, s := range servers {
		raw[i] = s.Name
	}
	names := bindings.AssignServer(raw)
	for _, s := range servers {
		s.TypeScript, s.Python = names[s.Name].TypeScript, names[s.Name].Python
	}
	return core.NewToolset(servers)
}

// sample returns the toolset that most tests use.
func sample() *core.Toolset {
	return toolset(
		server("github",
			tool("list_issues", `{"type":"object","properties":{"owner":{"type":"string"},"repo":{"type":"string"},"state":{"enum":["open","closed"]},"labels":{"type":"array","items":{"type":"string"}},"perPage":{"type":"integer"}},"required":["owner","repo"],"additionalProperties":false}`,
				`{"type":"object","properties":{"issues":{"type":"array","items":{"type":"object","properties":{"number":{"type":"integer"},"title":{"type":"string"}}}}},"required":["issues"]}`),
			tool("get_issue", `{"type":"object","properties":{"owner":{"type":"string"},"repo":{"type":"string"},"number":{"type":"integer"}},"required":["owner","repo","number"]}`, ``),
			tool("create_issue", `{"type":"object","properties":{"title":{"type":"string"}},"required":["title"]}`, ``),
			tool("get_me", `{"type":"object","properties":{}}`, ``),
			tool("put", `{"type":"object","properties":{"record":{"type":"object"},"due":{"type":["string","null"]}},"required":["record"]}`, ``),
		),
		server("google-drive",
			tool("getDocument", `{"type":"object","properties":{"documentId":{"type":"string"},"fields":{"type":"string"},"from":{"type":"number"},"max-size":{"type":"integer"}},"required":["documentId"]}`, ``),
			tool("search", `{"type":"object","properties":{"query":{"type":"string"}},"required":["query"],"additionalProperties":true}`, ``),
		),
		server("math", tool("add", `{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}}}`, ``)),
	)
}
