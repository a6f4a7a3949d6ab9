package server

import (
	"context"
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
