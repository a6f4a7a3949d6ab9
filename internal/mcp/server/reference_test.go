package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"retort/internal/devel/testenv"
	"retort/internal/tokens"
)

// TestToolReference checks that docs/reference/mcp-tools.md agrees with the tools' definitions, and that
// testdata/arguments.txt describes every argument and nothing else. With -update it writes the page.
func TestToolReference(t *testing.T) {
	meanings := readMeanings(t)
	var summary, sections strings.Builder
	for _, tool := range (*Server)(nil).modelTools() {
		writeToolReference(t, &summary, &sections, tool, meanings)
	}
	for name := range meanings {
		t.Errorf("testdata/arguments.txt: no tool has the argument %s", name)
	}
	page := fmt.Sprintf(toolPage, leanTools, summary.String(), sections.String())
	file := filepath.Join("..", "..", "..", "docs", "reference", "mcp-tools.md")
	testenv.CheckGenerated(t, file, page, "go test ./internal/mcp/server -run TestToolReference -update", *update)
}

const toolPage = `# MCP tools

<!-- Written by: go test ./internal/mcp/server -run TestToolReference -update -->

` + "`retort serve` offers these tools to the model. `retort serve --surface lean` offers the first %d, and `resume_execution`" + `
from the moment an execution waits for approval.

The tokens are those of the tool's definition in the tool list, in the encoding o200k_base. The text below each heading is the
description that the model reads. An argument in **bold** is required. Tools that run something return an
[Outcome](outcome.md).

| tool | changes something | tokens |
|---|---|---|
%s%s`

// readMeanings returns the descriptions in testdata/arguments.txt. The keys of the map have the form "tool.argument".
func readMeanings(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/arguments.txt")
	if err != nil {
		t.Fatal(err)
	}
	meanings := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, meaning, found := strings.Cut(strings.TrimSpace(line), ": ")
		if found && !strings.HasPrefix(name, "#") {
			meanings[name] = meaning
		}
	}
	return meanings
}

// writeToolReference writes the row and the section of one tool. It removes the descriptions that it has used from
// meanings.
func writeToolReference(t *testing.T, summary, sections *strings.Builder, tool modelTool, meanings map[string]string) {
	t.Helper()
	d, err := tool.loadDefinition(Options{Sandboxes: testSandboxes})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	changes := "yes"
	if tool.readOnly {
		changes = "no"
	}
	fmt.Fprintf(summary, "| [`%s`](#%s) | %s | %d |\n", tool.name, tool.name, changes, tokens.CountTokens(string(text)))
	fmt.Fprintf(sections, "\n## %s\n\n%s\n\n| argument | type | |\n|---|---|---|\n", tool.name, strings.ReplaceAll(d.Description, "<path>", "PATH"))
	var schema toolSchema
	if err := json.Unmarshal(d.InputSchema.(json.RawMessage), &schema); err != nil {
		t.Fatal(err)
	}
	for _, name := range schema.sortedArguments() {
		key, shown := tool.name+"."+name, "`"+name+"`"
		if slices.Contains(schema.Required, name) {
			shown = "**" + shown + "**"
		}
		if meanings[key] == "" {
			t.Errorf("testdata/arguments.txt does not describe %s", key)
		}
		fmt.Fprintf(sections, "| %s | %s | %s |\n", shown, schema.Properties[name], meanings[key])
		delete(meanings, key)
	}
}

// toolSchema is the part of an input schema that the page shows.
type toolSchema struct {
	Properties map[string]argumentSchema
	Required   []string
}

// sortedArguments returns the names of the arguments, the required ones first.
func (s toolSchema) sortedArguments() []string {
	return slices.SortedFunc(maps.Keys(s.Properties), func(a, b string) int {
		if x, y := slices.Contains(s.Required, a), slices.Contains(s.Required, b); x != y {
			if x {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
}

type argumentSchema struct {
	Type  string
	Enum  []string
	Items *argumentSchema
}

func (s argumentSchema) String() string {
	switch {
	case len(s.Enum) > 0:
		return "`" + strings.Join(s.Enum, "`, `") + "`"
	case s.Items != nil:
		return "list of " + s.Items.String() + "s"
	}
	return s.Type
}
