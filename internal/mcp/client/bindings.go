package client

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"

	"retort/internal/mcp/headers"
)

// headerBindings stores, for each tool, the arguments that the server wants repeated in HTTP headers. They come from
// the tools' definitions.
type headerBindings struct {
	mu    sync.Mutex
	tools map[string][]headers.HeaderBinding
}

// learnTools stores the header bindings in the definitions of a server's tools, and returns the tools that may be
// called. As the protocol requires, it leaves out each tool with invalid header annotations. For such a tool it calls
// refused.
func (b *headerBindings) learnTools(tools []json.RawMessage, refused func(tool string, why error)) []json.RawMessage {
	found := map[string][]headers.HeaderBinding{}
	kept := slices.DeleteFunc(slices.Clone(tools), func(raw json.RawMessage) bool {
		if !bytes.Contains(raw, []byte(`"`+headers.Keyword+`"`)) {
			return false
		}
		var tool struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"inputSchema"`
		}
		if unmarshalExact(raw, &tool) != nil {
			return false // the catalogue says what is wrong with it
		}
		bound, err := headers.FindBindings(tool.Schema)
		if err != nil {
			refused(tool.Name, err)
			return true
		}
		found[tool.Name] = bound
		return false
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tools = found
	return kept
}

// cloneBindings returns a copy of the header bindings that later changes of the original do not affect.
func (b *headerBindings) cloneBindings() *headerBindings {
	b.mu.Lock()
	defer b.mu.Unlock()
	return &headerBindings{tools: b.tools} // learn replaces the map and never changes it
}

// ofTool returns the header bindings of one tool.
func (b *headerBindings) ofTool(tool string) []headers.HeaderBinding {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tools[tool]
}
