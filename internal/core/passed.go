package core

import "encoding/json"

// PassthroughRequest represents a client's request that is passed to a server: a tool call or another MCP method.
type PassthroughRequest struct {
	Server string
	// Method is the MCP method. Empty means tools/call.
	Method string
	// Tool is the name of the tool. For a method other than tools/call, it is the name under which the policy judges
	// the method, such as get_prompt.
	Tool      string
	Arguments json.RawMessage // of the tool, or the params of the method without _meta
}
