package client

import (
	"cmp"
	"encoding/json"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/mcp/headers"
)

// requestHeader returns the HTTP headers of a message: the session id, the protocol version and, since version
// 2026-07-28, the headers that repeat values from the body.
func (h *streamableWire) requestHeader(msg jsonrpc.Message) http.Header {
	header := http.Header{}
	h.mu.Lock()
	session, protocol := h.session, h.protocol
	h.mu.Unlock()
	if session != "" {
		header.Set(headerSession, session)
	}
	if req, ok := msg.(*jsonrpc.Request); ok {
		if modern := h.setMirroredHeaders(header, req); modern != "" {
			protocol = modern
		}
	}
	if protocol != "" {
		header.Set(headerProtocol, protocol)
	}
	return header
}

// setMirroredHeaders sets the headers that repeat values of a request's body since protocol version 2026-07-28. It
// returns the request's protocol version, or "" for older versions.
func (h *streamableWire) setMirroredHeaders(header http.Header, req *jsonrpc.Request) string {
	var params struct {
		Name      string          `json:"name"`
		URI       string          `json:"uri"`
		TaskID    string          `json:"taskId"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      map[string]any  `json:"_meta"`
	}
	_ = unmarshalExact(req.Params, &params)
	protocol, _ := params.Meta[mcp.MetaKeyProtocolVersion].(string)
	if protocol < protocolModern {
		return ""
	}
	header.Set("Mcp-Method", req.Method)
	if name := cmp.Or(params.Name, params.URI, params.TaskID); name != "" || req.Method == methodCall {
		header.Set("Mcp-Name", headers.EncodeValue(name))
	}
	if req.Method == methodCall {
		headers.SetHeaders(header, h.bindings.ofTool(params.Name), params.Arguments)
	}
	return protocol
}
