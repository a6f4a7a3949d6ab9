package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
	"retort/internal/devel/testenv"
)

// approved is a program whose second call a person must approve.
const approved = `const made = await crm.createRecord({objectType: 'Lead', data: {LastName: 'A', Company: 'C', Email: 'a@example.org'}});
await crm.updateRecord({objectType: 'Lead', recordId: made.id, data: {Score: 99}});
return 'changed';`

// story holds the results of one client session. In the session the client searches for tools, reads a definition and
// runs the program approved. Asked holds the approval questions that the client received.
type story struct {
	Tools      int                `json:"tools"`
	Found      []string           `json:"found"`
	Definition string             `json:"definition"`
	Status     core.OutcomeStatus `json:"status"`
	Result     string             `json:"result"`
	Asked      []string           `json:"asked"`
}

func (s story) check(t *testing.T) {
	t.Helper()
	if s.Tools < 14 || len(s.Found) == 0 || s.Found[0] != "crm.updateRecord" || !strings.Contains(s.Definition, "crm.updateRecord(input: UpdateRecordInput)") {
		t.Errorf("%d tools, found %q, definition %s", s.Tools, s.Found, s.Definition)
	}
	if s.Status != core.StatusOK || s.Result != "changed" || len(s.Asked) != 1 || !strings.Contains(s.Asked[0], "wants to call crm.update_record (irreversible)") {
		t.Errorf("%s %q, asked %q", s.Status, s.Result, s.Asked)
	}
}

// targets lists the transports over which clients connect to Retort in tests.
var targets = []string{"stdio", "http"}

// withTarget runs f as a subtest with the bundled servers. For the target "stdio", the argument words of f is the
// command line that starts Retort. For "http", words is the address of a running Retort.
func withTarget(t *testing.T, target string, f func(t *testing.T, dir string, words []string)) {
	t.Run(target, func(t *testing.T) {
		dir, server := demoFolder(t)
		if target == "http" {
			f(t, dir, []string{listening(t, dir, server)})
			return
		}
		t.Chdir(dir)
		f(t, dir, []string{server, "serve"})
	})
}

// targetsForClient returns the targets for the test of the n-th client. If RETORT_FULL is set, these are all targets.
// Otherwise it is a single one, which alternates with n. TestSDKForGo always tests all targets in both protocol eras.
func targetsForClient(n int) []string {
	if testenv.Full() {
		return targets
	}
	return targets[n%len(targets):][:1]
}

var listensOn = regexp.MustCompile(`listens on (http://\S+)`)

// listening starts "retort serve --http" in dir and returns its address. The process ends with the test.
func listening(t *testing.T, dir, command string) string {
	t.Helper()
	cmd := exec.Command(command, "serve", "--http", "127.0.0.1:0")
	cmd.Dir = dir
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	var said strings.Builder
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if m := listensOn.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, stderr) }()
			return m[1]
		}
		said.WriteString(lines.Text() + "\n")
	}
	t.Fatalf("it does not listen: %s", said.String())
	return ""
}

// demoFolder returns a new folder with a client file that lists bundled servers, and the path of the retort command.
// It sets HOME to the folder for the rest of the test.
func demoFolder(t *testing.T) (dir, command string) {
	t.Helper()
	dir = t.TempDir()
	t.Cleanup(func() { testenv.WaitForUsers(t, dir) }) // clients may end before the engine that they started
	command = retortIn(t, dir).Path
	t.Setenv("PATH", filepath.Dir(command)+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("HOME", dir)
	if err := os.WriteFile(filepath.Join(dir, ".mcp.json"), demoConfig("crm drive sheets"), 0o600); err != nil {
		t.Fatal(err)
	}
	known := exec.Command(command, "tools") // a search finds what has been listed so far
	known.Dir = dir
	if out, err := known.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir, command
}

// eras lists names of the older and the newer generation of the MCP protocol, by which tests select one.
var eras = []string{"legacy", "modern"}

func TestSDKForGo(t *testing.T) {
	versions := map[string]string{"legacy": "2025-11-25", "modern": "2026-07-28"}
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			for _, target := range targets {
				withTarget(t, target, func(t *testing.T, _ string, words []string) {
					var s story
					client := mcp.NewClient(&mcp.Implementation{Name: "session", Version: "1"}, &mcp.ClientOptions{
						ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
							s.Asked = append(s.Asked, r.Params.Message)
							return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "once"}}, nil
						},
					})
					session, err := client.Connect(t.Context(), transport(words), &mcp.ClientSessionOptions{ProtocolVersion: versions[era]})
					if err != nil {
						t.Fatal(err)
					}
					defer session.Close()
					if got := session.InitializeResult().ProtocolVersion; got != versions[era] {
						t.Errorf("it speaks %s", got)
					}
					performStory(t, session, &s)
					s.check(t)
				})
			}
		})
	}
}

func transport(words []string) mcp.Transport {
	if strings.HasPrefix(words[0], "http") {
		return &mcp.StreamableClientTransport{Endpoint: words[0]}
	}
	return &mcp.CommandTransport{Command: exec.Command(words[0], words[1:]...), TerminateDuration: testenv.Patience}
}

// performStory performs the steps of a story in a session of the Go SDK. It stores the results in s.
func performStory(t *testing.T, session *mcp.ClientSession, s *story) {
	t.Helper()
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Tools = len(list.Tools)
	call := func(name string, args any, into any) {
		r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
		if err != nil {
			t.Fatal(name, err)
		}
		text, _ := json.Marshal(r.StructuredContent)
		if err := json.Unmarshal(text, into); err != nil || r.IsError {
			t.Fatalf("%s: %s, %v", name, text, err)
		}
	}
	var found core.FoundTools
	call("search_tools", map[string]any{"query": "update a record of the crm"}, &found)
	for _, tool := range found.Tools {
		s.Found = append(s.Found, tool.Name)
	}
	var described struct{ Definitions []core.ToolDefinition }
	call("get_tool_definition", map[string]any{"name": "crm.updateRecord"}, &described)
	for _, d := range described.Definitions {
		s.Definition += d.Definition
	}
	call("execute_code", map[string]any{"code": approved}, s)
}

// TestSDKsForTypeScript checks that clients of both TypeScript SDKs complete a story. Version 1 uses the legacy
// protocol era, version 2 both eras.
func TestSDKsForTypeScript(t *testing.T) {
	node, modules := testenv.Need(t, "node22"), testenv.NPM22(t)
	for n, client := range [][]string{{"v1", "legacy"}, {"v2", "legacy"}, {"v2", "modern"}} {
		t.Run(strings.Join(client, "/"), func(t *testing.T) {
			for _, target := range targetsForClient(n) {
				withTarget(t, target, func(t *testing.T, _ string, words []string) {
					args := append([]string{filepath.Join(filepath.Dir(modules), "session.mjs")}, client...)
					var s story
					decodeOutput(t, exec.Command(node, append(append(args, approved), words...)...), &s)
					s.check(t)
				})
			}
		})
	}
}

// decodeOutput runs a command and decodes its standard output as JSON into *into.
func decodeOutput(t *testing.T, cmd *exec.Cmd, into any) {
	t.Helper()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	cmd.WaitDelay = testenv.Patience
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s%s", err, out, stderr.String())
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// TestInspectorSession checks that the MCP Inspector completes a story. It uses the Inspector's daemon, because a
// person can answer only in a session that stays open. Without the daemon, each command opens a session of its own.
func TestInspectorSession(t *testing.T) {
	node, modules := testenv.Need(t, "node22"), testenv.NPM22(t)
	for n, era := range eras {
		t.Run(era, func(t *testing.T) {
			for _, target := range targetsForClient(n) {
				withTarget(t, target, func(t *testing.T, dir string, words []string) {
					i := &inspector{t: t, command: []string{node, filepath.Join(modules, ".bin", "mcpdo"), "--format", "json", "--connection", "c"}, dir: dir}
					i.start(node, filepath.Join(modules, ".bin", "mcpdo"))
					var connection struct{ ProtocolEra string }
					i.do(&connection, append([]string{"connect", "--era", era, "--"}, words...)...)
					if connection.ProtocolEra != era {
						t.Errorf("the era is %q", connection.ProtocolEra)
					}
					i.story().check(t)
				})
			}
		})
	}
}

// inspector runs the MCP Inspector's command line with a daemon that keeps connections open between commands.
type inspector struct {
	t       *testing.T
	command []string
	dir     string
	env     []string
}

func (i *inspector) start(command ...string) {
	state, err := os.MkdirTemp("/tmp", "mcpdo") // the path of a socket is short
	if err != nil {
		i.t.Fatal(err)
	}
	i.env = append(os.Environ(), "HOME="+i.dir, "MCP_INSPECTOR_SECRET_STORE=memory", "MCP_INSPECTOR_DAEMON_DIR="+state, "MCP_INSPECTOR_DAEMON_TOKEN=test")
	i.t.Cleanup(func() {
		stop := exec.Command(command[0], append(command[1:], "daemon", "stop")...)
		stop.Env = i.env
		if out, err := stop.CombinedOutput(); err != nil {
			i.t.Errorf("%v: %s", err, out)
		}
		_ = os.RemoveAll(state)
	})
}

func (i *inspector) do(into any, args ...string) {
	i.t.Helper()
	cmd := exec.Command(i.command[0], append(i.command[1:len(i.command):len(i.command)], args...)...)
	cmd.Dir, cmd.Env = i.dir, i.env
	decodeOutput(i.t, cmd, into)
}

func (i *inspector) story() (s story) {
	var list struct{ Tools []any }
	i.do(&list, "tools/list")
	s.Tools = len(list.Tools)
	type answer[T any] struct{ StructuredContent T }
	var found answer[core.FoundTools]
	i.do(&found, "tools/call", "search_tools", `{"query":"update a record of the crm"}`)
	for _, tool := range found.StructuredContent.Tools {
		s.Found = append(s.Found, tool.Name)
	}
	var described answer[struct{ Definitions []core.ToolDefinition }]
	i.do(&described, "tools/call", "get_tool_definition", `{"name":"crm.updateRecord"}`)
	for _, d := range described.StructuredContent.Definitions {
		s.Definition += d.Definition
	}
	code, _ := json.Marshal(map[string]string{"code": approved})
	var pending struct {
		ElicitationPending struct{ ElicitationID, Message string }
	}
	i.do(&pending, "tools/call", "execute_code", string(code))
	s.Asked = append(s.Asked, pending.ElicitationPending.Message)
	var done answer[struct {
		Status core.OutcomeStatus
		Result string
	}]
	i.do(&done, "elicitation/respond", pending.ElicitationPending.ElicitationID, "decision:=once")
	s.Status, s.Result = done.StructuredContent.Status, done.StructuredContent.Result
	return s
}
