package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
)

// realServers writes a client file with three published MCP servers: everything, filesystem and memory. It returns the
// folder that contains the file.
func realServers(t *testing.T) string {
	t.Helper()
	modules := filepath.Join(testenv.NPM(t), "@modelcontextprotocol")
	dir := t.TempDir()
	server := func(name string, args ...string) map[string]any {
		return map[string]any{"command": "node", "args": append([]string{filepath.Join(modules, name, "dist", "index.js")}, args...)}
	}
	memory := server("server-memory")
	memory["env"] = map[string]string{"MEMORY_FILE_PATH": filepath.Join(dir, "memory.jsonl")}
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"everything": server("server-everything", "stdio"), "filesystem": server("server-filesystem", dir), "memory": memory,
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".mcp.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// retortIn returns a command that runs retort in dir. It creates a link with the name retort to the test binary, which
// acts as the command if it is started under that name.
func retortIn(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "retort")
	if err := os.Link(self, link); err != nil {
		text, readErr := os.ReadFile(self)
		if readErr != nil || os.WriteFile(link, text, 0o700) != nil {
			t.Fatal(err, readErr)
		}
	}
	cmd := exec.Command(link, args...)
	cmd.Dir = dir
	return cmd
}

func outcomeOf(t *testing.T, cmd *exec.Cmd) core.Outcome {
	t.Helper()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	text, _ := cmd.Output()
	var o core.Outcome
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatalf("%v: %s%s", err, text, stderr.String())
	}
	return o
}

func TestProgramsAgainstRealServers(t *testing.T) {
	dir := realServers(t)
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("one\ntwo\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	program := `
import * as filesystem from './servers/filesystem';
const listing = await filesystem.listAllowedDirectories();
const text = await filesystem.readTextFile({ path: '` + filepath.Join(dir, "notes.txt") + `' });
const lines = (typeof text === 'string' ? text : text.content).trim().split('\n');
await memory.createEntities({ entities: lines.map((name: string) => ({ name, entityType: 'line', observations: ['seen'] })) });
const graph = await memory.readGraph();
const sum = await everything.getSum({ a: 2, b: 40 });
const echo = await callMCPTool('everything__echo', { message: 'Grüße' });
return { lines: lines.length, entities: graph.entities.length, sum, echo, listing: JSON.stringify(listing).length > 0 };`
	o := outcomeOf(t, retortIn(t, dir, "run", "--json", "-e", program))
	want := `{"lines":3,"entities":3,"sum":"The sum of 2 and 40 is 42.","echo":"Echo: Grüße","listing":true}`
	if o.Status != core.StatusOK || string(o.Result) != want {
		t.Errorf("got  %s %s %+v\nwant %s", o.Status, o.Result, o.Error, want)
	}
	if o.Stats.ToolCalls != 6 {
		t.Errorf("%d tool calls, want 6: %v", o.Stats.ToolCalls, o.Stats.Tools)
	}
}

// TestInspectorListsAndCalls checks that the MCP Inspector lists Retort's tools and runs a program, in both protocol
// eras.
func TestInspectorListsAndCalls(t *testing.T) {
	node, modules := testenv.Need(t, "node22"), testenv.NPM22(t)
	dir := realServers(t)
	server := retortIn(t, dir, "serve")
	for n, era := range eras {
		t.Run(era, func(t *testing.T) {
			inspect := func(args ...string) string {
				all := append([]string{filepath.Join(modules, ".bin", "mcp-inspector"), "--cli", "--protocol-era", era, "--cwd", dir, server.Path, "serve"}, args...)
				cmd := exec.Command(node, all...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "HOME="+dir)
				text, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %s", err, text)
				}
				return string(text)
			}
			if n > 0 && !testenv.Full() { // the list does not depend on the era
				inspectCall(t, inspect)
				return
			}
			list := inspect("--method", "tools/list")
			for _, tool := range []string{"search_tools", "get_tool_definition", "execute_code", "call_tool", "get_execution_stats"} {
				if !strings.Contains(list, `"name": "`+tool+`"`) {
					t.Errorf("the Inspector does not list %s:\n%s", tool, list)
				}
			}
			inspectCall(t, inspect)
		})
	}
}

// inspectCall runs a small program with execute_code through the Inspector and checks the result.
func inspectCall(t *testing.T, inspect func(args ...string) string) {
	t.Helper()
	answer := inspect("--method", "tools/call", "--tool-name", "execute_code", "--tool-arg", "code=return (await everything.echo({message: 'hi'})) + '!'")
	if !strings.Contains(answer, `"result": "Echo: hi!"`) {
		t.Errorf("the Inspector got: %s", answer)
	}
}
