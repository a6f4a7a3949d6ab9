package core

import "encoding/json"

// Passed is a request of a client that is passed on to a server: a call of a tool, or
// another method of MCP.
type Passed struct {
	Server string
	// Method is empty for tools/call.
	Method string
	// Tool is the name of the tool, or that by which the policy judges the method: get_prompt.
	Tool      string
	Arguments json.RawMessage // of the tool, or the params of the method without _meta
}
