package server

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The surface towards the model is text under review: each tool has a
// description (.md) and an input schema (.json) of its name.
//
//go:embed tools/*.md tools/*.json
var surface embed.FS

//go:embed instructions.md
var instructions string

// definition is one tool as the model sees it.
type definition struct {
	Name        string
	Description string
	InputSchema json.RawMessage
	ReadOnly    bool
}

// names lists every tool of the surface in the order that the model sees,
// those that every client needs first.
var names = []string{
	"search_tools", "get_tool_definition", "execute_code", "call_tool", "get_execution_stats",
	"save_skill", "load_skill", "list_skills", "execute_skill", "sanitize_pii", "restore_pii",
	"write_workspace_file", "read_workspace_file", "list_workspace_files", "execute_task", "resume_execution",
}

// lean is how many of names the lean surface offers.
const lean = 4

var readOnly = []string{"search_tools", "get_tool_definition", "get_execution_stats", "load_skill", "list_skills", "read_workspace_file", "list_workspace_files"}

func define(name string) (definition, error) {
	description, err := surface.ReadFile("tools/" + name + ".md")
	if err != nil {
		return definition{}, err
	}
	schema, err := surface.ReadFile("tools/" + name + ".json")
	if err != nil {
		return definition{}, err
	}
	if !json.Valid(schema) {
		return definition{}, fmt.Errorf("tools/%s.json is not JSON", name)
	}
	return definition{
		Name: name, Description: strings.TrimSpace(string(description)),
		InputSchema: json.RawMessage(strings.TrimSpace(string(schema))), ReadOnly: slices.Contains(readOnly, name),
	}, nil
}
