package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"retort/internal/core"
)

var update = flag.Bool("update", false, "write what the server answers into testdata")

// engine is an engine with fixed answers. The program "wait" runs until it is cancelled, "progress" reports three
// calls, and "ask" waits for an approval.
type engine struct {
	started, cancelled chan struct{}
	answer             *core.ApprovalAnswer // the person's answer to the approval of the program "ask"
}

func newEngine() *engine {
	return &engine{started: make(chan struct{}), cancelled: make(chan struct{})}
}

func (e *engine) Search(_ context.Context, q core.ToolQuery) (core.FoundTools, error) {
	if q.Server == "nowhere" {
		return core.FoundTools{}, core.Errorf(core.KindInvalidArguments, "test", "there is no server %q", q.Server).WithHint("did you mean github?")
	}
	return core.FoundTools{Tools: []core.FoundTool{{Name: "github.listIssues", Server: "github", Tool: "list_issues", Category: "code", Description: "Lists <issues> & more."}}, Total: 1}, nil
}

func (e *engine) DescribeIn(_ context.Context, _ string, names []string, _ core.Language) ([]core.ToolDefinition, error) {
	return []core.ToolDefinition{{Name: names[0], Definition: "listIssues(): any"}}, nil
}

func (e *engine) Sample(_ context.Context, _ core.ExecutionRequest, s core.SampleRequest) core.Outcome {
	result, _ := json.Marshal(core.ToolDefinition{Name: s.Name, Definition: "sampled(): number"})
	return core.Outcome{ExecutionID: "x7", Status: core.StatusOK, Result: result}
}

func (e *engine) Execute(ctx context.Context, r core.ExecutionRequest) core.Outcome {
	switch r.Code {
	case "wait":
		close(e.started)
		<-ctx.Done()
		close(e.cancelled)
		return core.Outcome{ExecutionID: "x1", Status: core.StatusCancelled}
	case "progress":
		if r.Progress != nil {
			r.Progress(3)
		}
	case "ask":
		return core.Outcome{ExecutionID: "x9", Status: core.StatusPendingApproval}
	case "bad":
		return core.Outcome{ExecutionID: "x1", Status: core.StatusRejected, Error: &core.Error{Kind: core.KindType, Message: "no", Line: 1, Column: 2}}
	}
	return core.Outcome{ExecutionID: "x1", Status: core.StatusOK, Result: json.RawMessage(`{"big":12345678901234567890,"html":"<b>"}`)}
}

func (e *engine) ExecuteTask(_ context.Context, t core.AgentTask) core.Outcome {
	if t.Description == "none" {
		return core.Outcome{ExecutionID: "t1", Status: core.StatusRejected, Error: &core.Error{Kind: core.KindInvalidArguments, Message: "no model configured"}, TaskContext: &core.TaskContext{Skeleton: "return 1"}}
	}
	return core.Outcome{ExecutionID: "x4", Status: core.StatusOK, Task: "t1", Program: "return " + string(t.Inputs), Attempts: len(t.RequiredTools)}
}

func (e *engine) Call(_ context.Context, _ core.ExecutionRequest, name string, arguments json.RawMessage) core.Outcome {
	return core.Outcome{ExecutionID: "x2", Status: core.StatusOK, Result: json.RawMessage(`["` + name + `",` + string(arguments) + `]`)}
}

func (e *engine) Resume(_ context.Context, id string, _ time.Duration) core.Outcome {
	switch {
	case id != "x9":
		return core.Outcome{ExecutionID: id, Status: core.StatusRejected, Error: &core.Error{Kind: core.KindInvalidArguments, Message: "there is no such execution"}}
	case e.answer == nil:
		return core.Outcome{ExecutionID: id, Status: core.StatusPendingApproval}
	case !e.answer.Approve:
		return core.Outcome{ExecutionID: id, Status: core.StatusDenied, Error: &core.Error{Kind: core.KindPolicy, Message: "a person denied it: " + e.answer.Note}}
	}
	return core.Outcome{ExecutionID: id, Status: core.StatusOK, Result: json.RawMessage(`"done"`)}
}

func (e *engine) CancelExecution(_ context.Context, id string) core.Outcome {
	return core.Outcome{ExecutionID: id, Status: core.StatusCancelled}
}

func (e *engine) Waiting(id string) []core.Approval {
	if id != "x9" || e.answer != nil {
		return nil
	}
	return []core.Approval{{ID: "a1", Digest: "d1", Expires: time.Now().Add(time.Hour), Question: core.Question{Code: "ask"}}}
}

func (e *engine) Decide(id, digest string, a core.ApprovalAnswer) error {
	if id != "a1" || digest != "d1" {
		return core.Errorf(core.KindInvalidArguments, "test", "%s is not what waits", id)
	}
	e.answer = &a
	return nil
}

func (e *engine) SaveSkill(_ context.Context, _ core.ExecutionRequest, d core.SkillDraft) core.Outcome {
	if d.Code == "bad" {
		return core.Outcome{ExecutionID: "x3", Status: core.StatusRejected, Error: &core.Error{Kind: core.KindType, Message: "no", Line: 1, Column: 2}}
	}
	return core.Outcome{ExecutionID: "x3", Status: core.StatusOK, Result: json.RawMessage(`{"name":"` + d.Name + `","version":"0123456789ab","path":"skills/x/skill.ts"}`)}
}

func (e *engine) LoadSkill(name, version string) (core.LoadedSkill, error) {
	if name != "x" {
		return core.LoadedSkill{}, core.Errorf(core.KindType, "test", "there is no skill %q", name)
	}
	return core.LoadedSkill{Name: name, Version: version, Language: core.TypeScript, Code: "export const f = () => 1", Description: "One.", Usage: "f()"}, nil
}

func (e *engine) CallOfSkill(_ context.Context, name, _ string, _ map[string]json.RawMessage) (core.ExecutionRequest, error) {
	return core.ExecutionRequest{Code: name}, nil
}

func (e *engine) ListSkills(string, []string) ([]core.SkillInfo, error) {
	return []core.SkillInfo{{Name: "x", Description: "One.", Language: core.TypeScript, Version: "0123456789ab", Use: "import { f } from './skills/x';"}}, nil
}

func (e *engine) Stats(context.Context, string) any { return map[string]int{"servers": 1} }

func (e *engine) WriteFile(_, name, content, _ string, _ bool) (core.FileWritten, error) {
	return core.FileWritten{Path: name, Bytes: int64(len(content))}, nil
}

func (e *engine) ReadFile(_, name string, offset, _ int64, _ string) (core.FilePart, error) {
	if name == "a.png" {
		return core.FilePart{Path: name, Bytes: 4, MIMEType: "image/png", Image: []byte("\x89PNG")}, nil
	}
	return core.FilePart{Path: name, Content: "text", Bytes: 10, NextOffset: offset + 4}, nil
}

func (e *engine) ListFiles(_, below, _ string) (core.FileList, error) {
	return core.FileList{Files: []core.FileEntry{{Path: below + "/a.csv", Bytes: 3, Modified: "2026-01-31T00:00:00Z"}}}, nil
}

var requestStates = regexp.MustCompile(`"requestState": "((?:[^"\\]|\\.)*)"`)

// session sends the lines of a script to a server in a testing/synctest bubble and returns its
// answers, one for each line with an id. Notifications come before the answer they belong to. $STATE
// in the script and in the answers stands for the requestState that the server sent last.
func session(t *testing.T, o Options, script string) (log string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { log = converse(t, o, script) })
	return log
}

func converse(t *testing.T, o Options, script string) string {
	t.Helper()
	var e Engine = newEngine()
	if strings.Contains(t.Name(), "/tasks") {
		e = newTaskEngine()
	}
	s, err := New(e, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.ServeLines(t.Context(), fromClient, toClient); toClient.Close() }()
	answers := bufio.NewScanner(fromServer)
	answers.Buffer(nil, 1<<20)
	var log bytes.Buffer
	var state string // as it stands in JSON
	for line := range strings.Lines(script) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if _, err := io.WriteString(toServer, strings.ReplaceAll(line, "$STATE", state)+"\n"); err != nil {
			t.Fatal(err)
		}
		for strings.Contains(line, `"id"`) && answers.Scan() {
			text := indent(t, answers.Bytes())
			if m := requestStates.FindStringSubmatch(text); m != nil {
				state = m[1]
				text = strings.Replace(text, state, "$STATE", 1)
			}
			log.WriteString(text + "\n")
			if bytes.Contains(answers.Bytes(), []byte(`"id"`)) {
				break
			}
		}
	}
	toServer.Close()
	if err := <-done; err != nil {
		t.Errorf("Serve: %v", err)
	}
	return log.String()
}

func indent(t *testing.T, line []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, line, "", " "); err != nil {
		t.Fatalf("the server wrote what is not JSON: %q", line)
	}
	return b.String()
}

// TestWire checks the server's exact answers in recorded conversations. Each file in testdata has the lines of the
// client and the expected answers; -update rewrites the answers.
func TestWire(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no conversations", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := session(t, Options{Version: "0.0.0-test", Sandboxes: testSandboxes, Lean: strings.Contains(file, "lean")}, string(a.Files[0].Data))
			if *update {
				a.Files = append(a.Files[:1], txtar.File{Name: "server", Data: []byte(got)})
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(a.Files[1].Data), got); diff != "" {
				t.Errorf("the answers differ (-want +got):\n%s", diff)
			}
		})
	}
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`

// TestCancellationReachesTheProgram checks that a cancelled call ends its program and is never answered.
func TestCancellationReachesTheProgram(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	for era, c := range map[string]struct{ hello, meta string }{"legacy": {hello, `"_meta":{}`}, "modern": {"", meta}} {
		t.Run(era, func(t *testing.T) {
			e := newEngine()
			s, err := New(e, Options{})
			if err != nil {
				t.Fatal(err)
			}
			fromClient, toServer := io.Pipe()
			fromServer, toClient := io.Pipe()
			go func() { _ = s.ServeLines(t.Context(), fromClient, toClient) }()
			write := func(lines string) {
				if _, err := io.WriteString(toServer, lines+"\n"); err != nil {
					t.Error(err)
				}
			}
			go func() {
				write(c.hello + `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_code","arguments":{"code":"wait"},` + c.meta + `}}`)
				<-e.started
				write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
				<-e.cancelled
				write(`{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{` + c.meta + `}}`)
			}()
			for answers := bufio.NewScanner(fromServer); answers.Scan(); {
				switch text := answers.Text(); {
				case strings.Contains(text, `"id":2`):
					t.Errorf("the cancelled call was answered: %s", text)
				case strings.Contains(text, `"id":3`):
					toServer.Close()
					return
				}
			}
			t.Error("the server left")
		})
	}
}

// TestLongLine checks that a line over the size limit is answered with an error, and the next line as usual.
func TestLongLine(t *testing.T) {
	long := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"x":"` + strings.Repeat("x", maxLine) + `"}}`
	got := session(t, Options{}, long+"\n"+hello+`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	if !strings.Contains(got, `"code": -32600`) || !strings.Contains(got, "larger than 16 MB") || !strings.Contains(got, `"id": 2`) {
		t.Errorf("%s", got)
	}
}

func (e *engine) Sanitize(string, string) (string, map[string]int, error) { return "", nil, nil }

func (e *engine) Restore(context.Context, core.ExecutionRequest, string) core.Outcome {
	return core.Outcome{}
}
