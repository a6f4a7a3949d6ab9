package server

import (
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// containPanics answers a request with an internal error if handling it panics, and logs the stack.
// A panic would otherwise end the process, and with it the requests of all other clients.
func (s *Server) containPanics(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		defer func() {
			if fault := recover(); fault != nil {
				s.log.Error("handling a request panicked", "method", method, "panic", fault, "stack", string(debug.Stack()))
				result, err = nil, &jsonrpc.Error{
					Code:    jsonrpc.CodeInternalError,
					Message: "an internal error occurred in Retort while handling " + method + "; see its log for the cause",
				}
			}
		}()
		return next(ctx, method, req)
	}
}

// ensureEncodable returns a handler that calls next and replaces each error or result that cannot be encoded as JSON
// by an error that can be. Otherwise a transport of the SDK would end the client's session with all its requests.
func ensureEncodable(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		var failure *jsonrpc.Error
		if errors.As(err, &failure) && len(failure.Data) > 0 && !json.Valid(failure.Data) {
			return nil, &jsonrpc.Error{Code: failure.Code, Message: failure.Message} // the SDK quotes some texts as Go does
		}
		if exact, ok := result.(*exactResult); ok && err == nil && !json.Valid(exact.raw) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the result of " + method + " is not valid JSON"}
		}
		return result, err
	}
}
