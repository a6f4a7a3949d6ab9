package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/mcp/headers"
)

const nameHeader = "Mcp-Name"

// checkMirrored returns a handler that refuses a request if values of its body are mirrored in HTTP headers and the
// two differ. It covers the cases that the SDK does not check. The check matters because proxies in front of Retort
// decide by the headers, and Retort by the body. Before next is called, the header with the tool's name is decoded,
// because next compares it with the body byte for byte.
func (s *Server) checkMirrored(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.Header.Get(VersionHeader) < Stateless {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			writeMismatch(w, nil, errors.New("the request arrived incomplete"))
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if id, err := s.compareHeaders(r.Context(), r.Header, body); err != nil {
			writeMismatch(w, id, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// compareHeaders returns the id of a request, and an error if the request's headers contradict its body. It ignores
// bodies that are not requests, because the SDK refuses them.
func (s *Server) compareHeaders(ctx context.Context, header http.Header, body []byte) (id json.RawMessage, err error) {
	var message, params map[string]json.RawMessage // keys count as they are spelled
	var method, tool string
	if json.Unmarshal(body, &message) != nil || json.Unmarshal(message["method"], &method) != nil {
		return nil, nil
	}
	id = message["id"]
	if given := header.Get(nameHeader); given != "" {
		plain, err := headers.DecodeValue(given)
		if err != nil {
			return id, fmt.Errorf("the header %s %w", nameHeader, err)
		}
		header.Set(nameHeader, plain)
	}
	if method != "tools/call" || s.direct == nil || json.Unmarshal(message["params"], &params) != nil ||
		json.Unmarshal(params["name"], &tool) != nil {
		return id, nil
	}
	s.direct.awaitTool(ctx, tool)
	n, ok := s.direct.lookupTool(tool)
	if !ok {
		return id, nil
	}
	return id, headers.CheckHeaders(header, n.bound, params["arguments"])
}

// writeMismatch answers a request whose headers contradict its body with an error.
func writeMismatch(w http.ResponseWriter, id json.RawMessage, why error) {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	text, _ := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": id, "error": &jsonrpc.Error{Code: mcp.CodeHeaderMismatch, Message: why.Error()},
	})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write(text)
}
