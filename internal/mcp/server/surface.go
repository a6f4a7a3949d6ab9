package server

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// surfaceFiles contains the descriptions of Retort's own tools as embedded files: a description (.md) and an input
// schema (.json) for each tool. These texts are what models read.
//
//go:embed tools/*.md tools/*.json
var surfaceFiles embed.FS

//go:embed instructions.md
var serverInstructions string

// modelTool is one of Retort's own tools, which models call.
type modelTool struct {
	name     string
	readOnly bool
	handle   toolHandler
}

// modelTools returns all of Retort's own tools in the order in which clients list them. The most important tools are
// first, because the lean (small) set consists of the first leanTools of them.
func (s *Server) modelTools() []modelTool {
	return []modelTool{
		{"search_tools", true, s.searchTools},
		{"get_tool_definition", true, s.describeTools},
		{"execute_code", false, s.executeCode},
		{"call_tool", false, s.callTool},
		{"get_execution_stats", true, s.executionStats},
		{"save_skill", false, s.saveSkill},
		{"load_skill", true, s.loadSkill},
		{"list_skills", true, s.listSkills},
		{"execute_skill", false, s.executeSkill},
		{"sanitize_pii", false, s.sanitizeText},
		{"restore_pii", false, s.restoreText},
		{"write_workspace_file", false, s.writeFile},
		{"read_workspace_file", true, s.readFile},
		{"list_workspace_files", true, s.listFiles},
		{"execute_task", false, s.executeTask},
		{"resume_execution", false, s.resumeExecution},
	}
}

const leanTools = 4

// ToolList returns the full tool list that clients get.
func ToolList(sandboxes []string) (list mcp.ListToolsResult, err error) {
	for _, t := range (*Server)(nil).modelTools() {
		d, err := t.loadDefinition(sandboxes)
		if err != nil {
			return mcp.ListToolsResult{}, err
		}
		list.Tools = append(list.Tools, d)
	}
	return list, nil
}

// isModelTool reports whether Retort has a tool of its own with this name.
func isModelTool(name string) bool {
	return slices.ContainsFunc((*Server)(nil).modelTools(), func(t modelTool) bool { return t.name == name })
}

// sandboxEnum is a placeholder in tool schemas that loadDefinition replaces by the names of the available sandboxes.
const sandboxEnum = `{"enum":"$sandboxes"}`

// loadDefinition returns the tool's definition as clients get it.
func (t modelTool) loadDefinition(sandboxes []string) (*mcp.Tool, error) {
	description, err := surfaceFiles.ReadFile("tools/" + t.name + ".md")
	if err != nil {
		return nil, err
	}
	schema, err := surfaceFiles.ReadFile("tools/" + t.name + ".json")
	if err != nil {
		return nil, err
	}
	named := map[string]any{"type": "string"}
	if len(sandboxes) > 0 {
		named = map[string]any{"enum": sandboxes}
	}
	enum, err := json.Marshal(named)
	if err != nil {
		return nil, err
	}
	schema = bytes.ReplaceAll(schema, []byte(sandboxEnum), enum)
	if !json.Valid(schema) {
		return nil, fmt.Errorf("tools/%s.json is not JSON", t.name)
	}
	d := &mcp.Tool{
		Name: t.name, Description: strings.TrimSpace(string(description)), InputSchema: json.RawMessage(strings.TrimSpace(string(schema))),
	}
	if t.readOnly {
		d.Annotations = &mcp.ToolAnnotations{ReadOnlyHint: true}
	}
	return d, nil
}
