package mcpserver

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/run"
)

// task does a task that is said in words.
func (s *Server) task(ctx context.Context, req *mcp.CallToolRequest) (any, error) {
	if req.Params.RequestState != "" {
		return s.answered(ctx, req)
	}
	t, err := taskAskedFor(req)
	if err != nil {
		return nil, err
	}
	progress, stop := reportSteps(ctx, req)
	defer stop()
	t.Progress = progress
	return s.outcome(req, s.engine.ExecuteTask(asking(ctx, req), t), 0), nil
}

// taskAskedFor is the task of a call.
func taskAskedFor(req *mcp.CallToolRequest) (run.Task, error) {
	var a struct {
		Task     string          `json:"task"`
		ID       string          `json:"id"`
		Code     string          `json:"code"`
		Language run.Language    `json:"language"`
		Tools    []string        `json:"required_tools"`
		Inputs   json.RawMessage `json:"inputs"`
	}
	if err := arguments(req, &a, "task", "id", "code", "language", "required_tools", "inputs"); err != nil {
		return run.Task{}, err
	}
	if a.Code == "" {
		if err := required("task", a.Task); err != nil {
			return run.Task{}, err
		}
	}
	if a.ID != "" {
		if err := run.CheckTaskID(a.ID); err != nil {
			return run.Task{}, err
		}
	}
	return run.Task{ID: a.ID, Description: a.Task, Code: a.Code, Language: a.Language, RequiredTools: a.Tools, Inputs: a.Inputs, Client: client(req)}, nil
}
