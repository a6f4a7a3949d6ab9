package server

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
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

// ToolList returns the full tool list that clients of a Server with these options get.
func ToolList(o Options) (list mcp.ListToolsResult, err error) {
	for _, t := range (*Server)(nil).modelTools() {
		d, err := t.loadDefinition(o)
		if err != nil {
			return mcp.ListToolsResult{}, err
		}
		list.Tools = append(list.Tools, d)
	}
	return list, nil
}

// isModelTool reports whether Retort has its own tool with this name.
func isModelTool(name string) bool {
	return slices.ContainsFunc((*Server)(nil).modelTools(), func(t modelTool) bool { return t.name == name })
}

// Placeholders that loadDefinition replaces: in schemas by the names of the available sandboxes, in descriptions by the
// time limit in milliseconds.
const (
	sandboxEnum = `{"enum":"$sandboxes"}`
	timeoutText = "$timeout"
)

// loadDefinition returns the tool's definition as clients get it.
func (t modelTool) loadDefinition(o Options) (*mcp.Tool, error) {
	description, err := surfaceFiles.ReadFile("tools/" + t.name + ".md")
	if err != nil {
		return nil, err
	}
	schema, err := surfaceFiles.ReadFile("tools/" + t.name + ".json")
	if err != nil {
		return nil, err
	}
	named := map[string]any{"type": "string"}
	if len(o.Sandboxes) > 0 {
		named = map[string]any{"enum": o.Sandboxes}
	}
	enum, err := json.Marshal(named)
	if err != nil {
		return nil, err
	}
	schema = bytes.ReplaceAll(schema, []byte(sandboxEnum), enum)
	if !json.Valid(schema) {
		return nil, fmt.Errorf("tools/%s.json is not JSON", t.name)
	}
	limit := cmp.Or(o.Timeout, core.DefaultLimits().Timeout).Milliseconds()
	text := strings.ReplaceAll(strings.TrimSpace(string(description)), timeoutText, strconv.FormatInt(limit, 10))
	d := &mcp.Tool{Name: t.name, Description: text, InputSchema: json.RawMessage(strings.TrimSpace(string(schema)))}
	if t.readOnly {
		d.Annotations = &mcp.ToolAnnotations{ReadOnlyHint: true}
	}
	return d, nil
}
