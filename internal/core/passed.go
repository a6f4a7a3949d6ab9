package core

import "encoding/json"

// PassthroughRequest holds a client's request that is forwarded to a server: a tool call or another MCP method.
type PassthroughRequest struct {
	Server string
	// Method names the MCP method. Empty means tools/call.
	Method string
	// Tool names the tool. For a method other than tools/call, it is the name that policy rules use for the method,
	// such as get_prompt.
	Tool      string
	Arguments json.RawMessage // of the tool, or the params of the method without _meta
}
