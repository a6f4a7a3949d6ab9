package mcpserver

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/run"
)

// task does a task that is said in words.
func (s *Server) task(ctx context.Context, req *mcp.CallToolRequest) (any, error) {
	var a struct {
		Task     string          `json:"task"`
		Language run.Language    `json:"language"`
		Tools    []string        `json:"required_tools"`
		Inputs   json.RawMessage `json:"inputs"`
	}
	if req.Params.RequestState != "" {
		return s.answered(ctx, req)
	}
	if err := arguments(req, &a, "task", "language", "required_tools", "inputs"); err != nil {
		return nil, err
	}
	if err := required("task", a.Task); err != nil {
		return nil, err
	}
	t := run.Task{Description: a.Task, Language: a.Language, RequiredTools: a.Tools, Inputs: a.Inputs, Client: client(req)}
	progress, stop := reportSteps(ctx, req)
	defer stop()
	t.Progress = progress
	return s.outcome(req, s.engine.ExecuteTask(asking(ctx, req), t), 0), nil
}
