package server

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
)

// AgentRunner runs agent tasks.
type AgentRunner interface {
	// ExecuteTask runs an agent task. If the Outcome is pending, the task can be resumed like an execution.
	ExecuteTask(ctx context.Context, t core.AgentTask) core.Outcome
}

// executeTask runs an agent task.
func (s *Server) executeTask(ctx context.Context, req *mcp.CallToolRequest) (any, error) {
	if req.Params.RequestState != "" {
		return s.resumeAnswered(ctx, req)
	}
	t, err := taskAskedFor(req)
	if err != nil {
		return nil, err
	}
	progress, stop := reportSteps(ctx, req)
	defer stop()
	t.Progress = progress
	return s.answerOutcome(req, s.engine.ExecuteTask(s.withApprovalChannel(ctx, req), t), 0), nil
}

// taskAskedFor returns the agent task in the arguments of a call. It also accepts task objects in the form of other
// orchestrators, with description, requiredTools and status.
func taskAskedFor(req *mcp.CallToolRequest) (core.AgentTask, error) {
	var a struct {
		Task          string          `json:"task"`
		Description   string          `json:"description"`
		ID            string          `json:"id"`
		Code          string          `json:"code"`
		Language      core.Language   `json:"language"`
		Tools         []string        `json:"required_tools"`
		RequiredTools []string        `json:"requiredTools"`
		Inputs        json.RawMessage `json:"inputs"`
		Status        string          `json:"status"`
	}
	if err := decodeArguments(req, &a); err != nil {
		return core.AgentTask{}, err
	}
	if err := checkTaskObject(a.Task != "" && a.Description != "", a.Tools != nil && a.RequiredTools != nil, a.Status); err != nil {
		return core.AgentTask{}, err
	}
	task := core.AgentTask{
		ID: a.ID, Description: cmp.Or(a.Task, a.Description), Code: a.Code, Language: a.Language,
		RequiredTools: slices.Concat(a.Tools, a.RequiredTools), Inputs: a.Inputs, Client: clientName(req),
	}
	if task.Code == "" {
		if err := checkRequired("task", task.Description); err != nil {
			return core.AgentTask{}, err
		}
	}
	if task.ID != "" {
		if err := core.CheckTaskID(task.ID); err != nil {
			return core.AgentTask{}, err
		}
	}
	return task, nil
}

// checkTaskObject returns an error if a task object gives the same property under two names, or has a status other
// than "pending", the status of a new task.
func checkTaskObject(twoDescriptions, twoLists bool, status string) error {
	switch {
	case twoDescriptions:
		return core.Errorf(core.KindInvalidArguments, "mcpserver", `"task" and "description" are the same argument; give one of them`)
	case twoLists:
		return core.Errorf(core.KindInvalidArguments, "mcpserver", `"required_tools" and "requiredTools" are the same argument; give one of them`)
	case status != "" && status != "pending":
		return core.Errorf(core.KindInvalidArguments, "mcpserver", `status: a new task is "pending", not %q`, status)
	}
	return nil
}
