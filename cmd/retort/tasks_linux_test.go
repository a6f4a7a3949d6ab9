package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"retort"
	"retort/internal/run"
)

// After kill -9 of the engine that works the line goes on, and what ran is not run again; what
// had left of it is told.
func TestKillKeepsTheLine(t *testing.T) {
	dir := t.TempDir()
	config := `{"mcpServers": {"crm": {"command": "retort", "args": ["demo-server", "crm"]}}, "mcpCodeExecution": {"maxConcurrentTasks": 1, "maxExecutionTime": 120000}}`
	if err := os.WriteFile(filepath.Join(dir, ".mcp.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "HOME="+filepath.Join(dir, ".user"))
	said := func(args ...string) string {
		t.Helper()
		cmd := retortIn(t, dir, args...)
		cmd.Env = append(env, "PATH="+filepath.Dir(cmd.Path)+":"+os.Getenv("PATH"))
		out, err := cmd.Output()
		if err != nil {
			t.Logf("%v: %v", args, err) // the exit code is that of the program
		}
		return strings.TrimSpace(string(out))
	}
	serve := retortIn(t, dir, "serve")
	serve.Env = append(env, "PATH="+filepath.Dir(serve.Path)+":"+os.Getenv("PATH"))
	if _, err := serve.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = serve.Process.Kill() }()
	runs := said("run", "--queue", "-e", "await crm.createRecord({objectType: 'Lead', data: {LastName: 'A', Company: 'C'}}); await sleep(100000)")
	var waits []string
	for _, code := range []string{"return 'first'", "return 'second'"} {
		waits = append(waits, said("run", "--queue", "-e", code))
	}
	noted := filepath.Join(dir, ".retort", "pending", runs+".jsonl")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if text, _ := os.ReadFile(noted); strings.Contains(string(text), "create_record") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it does not run: %s", said("tasks", "show", runs))
		}
	}
	if err := serve.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = serve.Wait()
	for i, want := range []string{`"first"`, `"second"`} {
		var o retort.Outcome
		if err := json.Unmarshal([]byte(said("tasks", "wait", "--json", waits[i])), &o); err != nil || o.Status != run.StatusOK || string(o.Result) != want {
			t.Errorf("%+v, %v", o, err)
		}
	}
	var lost retort.JobState
	if err := json.Unmarshal([]byte(said("tasks", "show", "--json", runs)), &lost); err != nil || lost.Status != "outcome_unknown" {
		t.Fatalf("%+v, %v", lost, err)
	}
	if calls := lost.Outcome.Calls; len(calls) != 1 || calls[0].Tool != "create_record" {
		t.Errorf("%+v", lost.Outcome)
	}
}
