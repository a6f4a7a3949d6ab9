package server

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestPanicsAreContained(t *testing.T) {
	var log strings.Builder
	s := &Server{log: slog.New(slog.NewTextHandler(&log, nil))}
	handle := s.containPanics(func(context.Context, string, mcp.Request) (mcp.Result, error) {
		var nothing *mcp.InitializeResult
		return nil, errors.New(nothing.Instructions)
	})
	result, err := handle(t.Context(), "initialize", nil)
	var answer *jsonrpc.Error
	if result != nil || !errors.As(err, &answer) || answer.Code != jsonrpc.CodeInternalError || strings.Contains(answer.Message, "nil pointer") {
		t.Errorf("got %v, %v", result, err)
	}
	if !strings.Contains(log.String(), "nil pointer") || !strings.Contains(log.String(), "faults_test.go") {
		t.Errorf("the log says %q", log.String())
	}
}
