package core

import "encoding/json"

// PassthroughRequest describes a client's request that is passed through to a server: a tool call or another MCP method.
type PassthroughRequest struct {
	Server string
	// Method names the MCP method. Empty means tools/call.
	Method string
	// Tool names the tool. For another method it is the name that the policy judges the method by, such as
	// get_prompt.
	Tool      string
	Arguments json.RawMessage // of the tool, or the params of the method without _meta
}
