package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"retort/internal/run"
)

var update = flag.Bool("update", false, "write what the server answers into testdata")

// engine answers in a fixed way. A program "wait" lasts until it is cancelled;
// "progress" tells of three calls made.
type engine struct{ started, cancelled chan struct{} }

func newEngine() *engine { return &engine{make(chan struct{}), make(chan struct{})} }

func (e *engine) Search(_ context.Context, q run.Query) (run.Found, error) {
	if q.Server == "nowhere" {
		return run.Found{}, run.Errorf(run.KindInvalidArguments, "test", "there is no server %q", q.Server).WithHint("did you mean github?")
	}
	return run.Found{Tools: []run.FoundTool{{Name: "github.listIssues", Server: "github", Tool: "list_issues", Category: "code", Description: "Lists <issues> & more."}}, Total: 1}, nil
}

func (e *engine) Describe(_ context.Context, names []string, _ run.Language) ([]run.Definition, error) {
	return []run.Definition{{Name: names[0], Definition: "listIssues(): any"}}, nil
}

func (e *engine) Execute(ctx context.Context, r run.Request) run.Outcome {
	switch r.Code {
	case "wait":
		close(e.started)
		<-ctx.Done()
		close(e.cancelled)
		return run.Outcome{ExecutionID: "x1", Status: run.StatusCancelled}
	case "progress":
		r.Progress(3)
		time.Sleep(50 * time.Millisecond)
	case "bad":
		return run.Outcome{ExecutionID: "x1", Status: run.StatusRejected, Error: &run.Error{Kind: run.KindType, Message: "no", Line: 1, Column: 2}}
	}
	return run.Outcome{ExecutionID: "x1", Status: run.StatusOK, Result: json.RawMessage(`{"big":12345678901234567890,"html":"<b>"}`)}
}

func (e *engine) Call(_ context.Context, _ run.Request, name string, arguments json.RawMessage) run.Outcome {
	return run.Outcome{ExecutionID: "x2", Status: run.StatusOK, Result: json.RawMessage(`["` + name + `",` + string(arguments) + `]`)}
}

func (e *engine) Resume(_ context.Context, id string, _ time.Duration) run.Outcome {
	return run.Outcome{ExecutionID: id, Status: run.StatusRejected, Error: &run.Error{Kind: run.KindInvalidArguments, Message: "there is no such execution"}}
}

func (e *engine) Waiting(string) []run.Approval { return nil }

func (e *engine) Decide(string, string, run.Answer) error { return nil }

func (e *engine) SaveSkill(_ context.Context, _ run.Request, d run.SkillDraft) run.Outcome {
	if d.Code == "bad" {
		return run.Outcome{ExecutionID: "x3", Status: run.StatusRejected, Error: &run.Error{Kind: run.KindType, Message: "no", Line: 1, Column: 2}}
	}
	return run.Outcome{ExecutionID: "x3", Status: run.StatusOK, Result: json.RawMessage(`{"name":"` + d.Name + `","version":"0123456789ab","path":"skills/x/skill.ts"}`)}
}

func (e *engine) LoadSkill(name, version string) (run.LoadedSkill, error) {
	if name != "x" {
		return run.LoadedSkill{}, run.Errorf(run.KindType, "test", "there is no skill %q", name)
	}
	return run.LoadedSkill{Name: name, Version: version, Language: run.TypeScript, Code: "export const f = () => 1", Description: "One.", Usage: "f()"}, nil
}

func (e *engine) ListSkills(string, []string) ([]run.SkillInfo, error) {
	return []run.SkillInfo{{Name: "x", Description: "One.", Language: run.TypeScript, Version: "0123456789ab", Use: "import { f } from './skills/x';"}}, nil
}

func (e *engine) Stats(context.Context, string) any { return map[string]int{"servers": 1} }

func (e *engine) WriteFile(_, name, content, _ string, _ bool) (run.FileWritten, error) {
	return run.FileWritten{Path: name, Bytes: int64(len(content))}, nil
}

func (e *engine) ReadFile(_, name string, offset, _ int64, _ string) (run.FilePart, error) {
	if name == "a.png" {
		return run.FilePart{Path: name, Bytes: 4, MIMEType: "image/png", Image: []byte("\x89PNG")}, nil
	}
	return run.FilePart{Path: name, Content: "text", Bytes: 10, NextOffset: offset + 4}, nil
}

func (e *engine) ListFiles(_, below, _ string) (run.FileList, error) {
	return run.FileList{Files: []run.FileEntry{{Path: below + "/a.csv", Bytes: 3, Modified: "2026-01-31T00:00:00Z"}}}, nil
}

// session speaks the lines of a script to a server and returns its answers, one
// for each request, notifications before the answer they belong to.
func session(t *testing.T, o Options, script string) string {
	t.Helper()
	s, err := New(newEngine(), o)
	if err != nil {
		t.Fatal(err)
	}
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.Serve(t.Context(), fromClient, toClient); toClient.Close() }()
	answers := bufio.NewScanner(fromServer)
	answers.Buffer(nil, 1<<20)
	var log bytes.Buffer
	for line := range strings.Lines(script) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if _, err := io.WriteString(toServer, line+"\n"); err != nil {
			t.Fatal(err)
		}
		for strings.Contains(line, `"id"`) && answers.Scan() {
			log.WriteString(indent(t, answers.Bytes()) + "\n")
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

// Each file of testdata is a conversation: what the client writes, and what the
// server must answer to the letter. -update writes the latter.
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
			got := session(t, Options{Version: "0.0.0-test", Lean: strings.Contains(file, "lean")}, string(a.Files[0].Data))
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

func TestCancellationReachesTheProgram(t *testing.T) {
	e := newEngine()
	s, err := New(e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	fromClient, toServer := io.Pipe()
	go func() { _ = s.Serve(t.Context(), fromClient, discard{}) }()
	write := func(lines string) {
		if _, err := io.WriteString(toServer, lines+"\n"); err != nil {
			t.Error(err)
		}
	}
	within := func(what string, c chan struct{}) {
		select {
		case <-c:
		case <-time.After(10 * time.Second):
			t.Fatal("the program was not " + what)
		}
	}
	go write(hello + `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_code","arguments":{"code":"wait"}}}`)
	within("started", e.started)
	go write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	within("cancelled", e.cancelled)
	toServer.Close()
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }

func (e *engine) Sanitize(string, string) (string, map[string]int, error) { return "", nil, nil }

func (e *engine) Restore(context.Context, run.Request, string) run.Outcome { return run.Outcome{} }
