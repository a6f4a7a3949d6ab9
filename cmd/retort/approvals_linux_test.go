package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retort/internal/core"
)

// speaker represents a running "retort serve" process. A test exchanges JSON-RPC lines with the process over pipes.
type speaker struct {
	t    *testing.T
	in   io.Writer
	out  *bufio.Scanner
	kill func()
}

func speakTo(t *testing.T, dir string) *speaker {
	t.Helper()
	cmd := retortIn(t, dir, "serve")
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(cmd.Path)+":"+os.Getenv("PATH"), "HOME="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	s := &speaker{t, in, lines, func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }}
	t.Cleanup(s.kill)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s
}

func (s *speaker) call(tool string, arguments any) (o core.Outcome) {
	s.t.Helper()
	text, _ := json.Marshal(arguments)
	fmt.Fprintf(s.in, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":%q,"arguments":%s}}`+"\n", tool, text)
	for s.out.Scan() {
		var m struct {
			ID     int
			Result struct{ StructuredContent core.Outcome }
		}
		if json.Unmarshal(s.out.Bytes(), &m) == nil && m.ID == 7 {
			return m.Result.StructuredContent
		}
	}
	s.t.Fatal("the output ended")
	return o
}

// TestKilledWhilePending kills an engine while a program waits for an approval. It checks that another engine then
// reports the execution as outcome_unknown, and lists the call that the program had already made. That engine must
// repeat this for every request, because a client may not have received the first answer.
func TestKilledWhilePending(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".mcp.json"), []byte(`{"mcpServers": {"files": {"command": "retort", "args": ["demo-server", "files"]}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "retort.yaml"), []byte("approval: {askFirst: false}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	first := speakTo(t, dir)
	o := first.call("execute_code", map[string]any{"code": `
		await files.createDirectory({path: '/srv/nordlys/a'});
		await files.writeFile({path: '/srv/nordlys/a/x.txt', content: 'one'});
		return 1`})
	if o.Status != core.StatusPendingApproval || len(o.Approvals) != 1 {
		t.Fatalf("%+v %+v", o, o.Error)
	}
	other := speakTo(t, dir)
	if o := other.call("resume_execution", map[string]any{"execution_id": o.ExecutionID}); o.Status != core.StatusRejected || !strings.Contains(o.Error.Message, "another engine") {
		t.Errorf("while it lives: %+v %+v", o, o.Error)
	}
	first.kill()
	for range 2 { // an answer can be lost on its way too
		lost := other.call("resume_execution", map[string]any{"execution_id": o.ExecutionID})
		if lost.Status != core.StatusOutcomeUnknown || len(lost.Calls) != 1 || lost.Calls[0].Tool != "create_directory" || !strings.Contains(string(lost.Calls[0].Arguments), "/srv/nordlys/a") {
			t.Fatalf("%+v %+v", lost, lost.Error)
		}
	}
}
