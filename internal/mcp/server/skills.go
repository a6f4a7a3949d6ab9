package server

import (
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
)

// SkillKeeper saves and loads skills, which are programs that have worked and are kept for later calls.
type SkillKeeper interface {
	// SaveSkill saves a skill. The result of the Outcome is a core.SavedSkill.
	SaveSkill(ctx context.Context, req core.ExecutionRequest, d core.SkillDraft) core.Outcome
	LoadSkill(name, version string) (core.LoadedSkill, error)
	ListSkills(query string, tags []string) ([]core.SkillInfo, error)
	// CallOfSkill returns a request for a program that calls a function of a skill.
	CallOfSkill(ctx context.Context, name, function string, values map[string]json.RawMessage) (core.ExecutionRequest, error)
}

func (s *Server) saveSkill(ctx context.Context, req *mcp.CallToolRequest) (any, error) {
	var a struct {
		Name        string        `json:"name"`
		Code        string        `json:"code"`
		Description string        `json:"description"`
		Language    core.Language `json:"language"`
		Tags        []string      `json:"tags"`
	}
	if req.Params.RequestState != "" {
		return s.resumeAnswered(ctx, req)
	}
	if err := decodeArguments(req, &a); err != nil {
		return nil, err
	}
	for _, given := range [][2]string{{"name", a.Name}, {"code", a.Code}, {"description", a.Description}} {
		if err := checkRequired(given[0], given[1]); err != nil {
			return nil, err
		}
	}
	draft := core.SkillDraft{Name: a.Name, Code: a.Code, Description: a.Description, Language: a.Language, Tags: a.Tags}
	o := s.engine.SaveSkill(s.withApprovalChannel(ctx, req), core.ExecutionRequest{Client: clientName(req)}, draft)
	if o.Status == core.StatusOK {
		return o.Result, nil
	}
	return s.answerOutcome(req, o, 0), nil
}

func (s *Server) loadSkill(_ context.Context, req *mcp.CallToolRequest) (any, error) {
	var a struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	if err := decodeArguments(req, &a); err != nil {
		return nil, err
	}
	if err := checkRequired("name", a.Name); err != nil {
		return nil, err
	}
	return s.engine.LoadSkill(a.Name, a.Version)
}

func (s *Server) listSkills(_ context.Context, req *mcp.CallToolRequest) (any, error) {
	var a struct {
		Query string   `json:"query"`
		Tags  []string `json:"tags"`
	}
	if err := decodeArguments(req, &a); err != nil {
		return nil, err
	}
	list, err := s.engine.ListSkills(a.Query, a.Tags)
	return map[string]any{"skills": list}, err
}

// executeSkill runs a function of a skill as a program.
func (s *Server) executeSkill(ctx context.Context, req *mcp.CallToolRequest) (any, error) {
	var a struct {
		Name      string                     `json:"name"`
		Function  string                     `json:"function"`
		Arguments map[string]json.RawMessage `json:"arguments"`
		TimeoutMS int64                      `json:"timeout_ms"`
		Session   string                     `json:"session"`
		DryRun    bool                       `json:"dry_run"`
	}
	if req.Params.RequestState != "" {
		return s.resumeAnswered(ctx, req)
	}
	if err := decodeArguments(req, &a); err != nil {
		return nil, err
	}
	if err := checkRequired("name", a.Name); err != nil {
		return nil, err
	}
	request, err := s.engine.CallOfSkill(ctx, a.Name, a.Function, a.Arguments)
	if err != nil {
		return nil, err
	}
	request.Session, request.Client, request.DryRun = a.Session, clientName(req), a.DryRun
	request.Limits.Timeout = time.Duration(max(a.TimeoutMS, 0)) * time.Millisecond
	progress, stop := reportProgress(ctx, req)
	defer stop()
	request.Progress = progress
	return s.answerOutcome(req, s.engine.Execute(s.withApprovalChannel(ctx, req), request), 0), nil
}
