package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"retort/internal/agent/model/modeltest"
	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/engine"
)

// killable represents a folder with a job queue, and a "retort serve" process that runs the jobs. Tests kill the
// process.
type killable struct {
	t     *testing.T
	dir   string
	env   []string
	serve *exec.Cmd
}

func newKillable(t *testing.T, settings string) *killable {
	k := &killable{t: t, dir: t.TempDir()}
	config := `{"mcpServers": {"crm": {"command": "retort", "args": ["demo-server", "crm"]}}, "mcpCodeExecution": {"maxConcurrentTasks": 1, "maxExecutionTime": 120000` + settings + `}}`
	if err := os.WriteFile(filepath.Join(k.dir, ".mcp.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	k.env = append(os.Environ(), "HOME="+filepath.Join(k.dir, ".user"))
	k.serve = k.command("serve")
	if _, err := k.serve.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := k.serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.serve.Process.Kill() })
	return k
}

func (k *killable) command(args ...string) *exec.Cmd {
	cmd := retortIn(k.t, k.dir, args...)
	cmd.Env = append(k.env, "PATH="+filepath.Dir(cmd.Path)+":"+os.Getenv("PATH"))
	return cmd
}

func (k *killable) said(args ...string) string {
	k.t.Helper()
	out, err := k.command(args...).Output()
	if err != nil {
		k.t.Logf("%v: %v", args, err) // the exit code is that of the program
	}
	return strings.TrimSpace(string(out))
}

// kill waits until the given execution has called create_record. It then kills the engine.
func (k *killable) kill(execution, task string) {
	k.t.Helper()
	noted := filepath.Join(k.dir, ".retort", "pending", execution+".jsonl")
	runs := func() bool {
		text, _ := os.ReadFile(noted)
		return strings.Contains(string(text), "create_record")
	}
	if !testenv.Poll(runs) {
		k.t.Fatalf("it does not run: %s", k.said("tasks", "show", task))
	}
	if err := k.serve.Process.Kill(); err != nil {
		k.t.Fatal(err)
	}
	_ = k.serve.Wait()
}

// gives waits for the end of a task and checks that it ended with the given result.
func (k *killable) gives(task, want string) {
	k.t.Helper()
	var o engine.Outcome
	if err := json.Unmarshal([]byte(k.said("tasks", "wait", "--json", task)), &o); err != nil || o.Status != core.StatusOK || string(o.Result) != want {
		k.t.Errorf("%+v, %v", o, err)
	}
}

// lost checks that a task ended with status outcome_unknown because its engine was killed. The task's Outcome must
// list the call that the task had made.
func (k *killable) lost(task string) {
	k.t.Helper()
	var lost engine.JobState
	if err := json.Unmarshal([]byte(k.said("tasks", "show", "--json", task)), &lost); err != nil || lost.Status != "outcome_unknown" {
		k.t.Fatalf("%+v, %v", lost, err)
	}
	if calls := lost.Outcome.Calls; len(calls) != 1 || calls[0].Tool != "create_record" {
		k.t.Errorf("%+v", lost.Outcome)
	}
}

const createsAndStays = "await crm.createRecord({objectType: 'Lead', data: {LastName: 'A', Company: 'C'}}); await sleep(100000)"

// TestKillKeepsTheLine kills an engine with SIGKILL. It checks that the queued programs still run. The program that
// was running must not run a second time, and its Outcome must list the call that it had made.
func TestKillKeepsTheLine(t *testing.T) {
	k := newKillable(t, "")
	runs := k.said("run", "--queue", "-e", createsAndStays)
	first, second := k.said("run", "--queue", "-e", "return 'first'"), k.said("run", "--queue", "-e", "return 'second'")
	k.kill(runs, runs)
	k.gives(first, `"first"`)
	k.gives(second, `"second"`)
	k.lost(runs)
}

// TestKillKeepsTasksInWords kills an engine with SIGKILL. It checks that the queued agent tasks still run. For the
// task that was running, the model must not be asked a second time, and the Outcome must list the call that the task
// had made.
func TestKillKeepsTasksInWords(t *testing.T) {
	m := modeltest.New(func(_ int, a modeltest.ReceivedRequest) modeltest.ScriptedStep {
		if strings.Contains(a.Last, "create a lead") {
			return modeltest.ScriptedStep{Text: "```ts\n" + createsAndStays + "\n```"}
		}
		return modeltest.ScriptedStep{Text: "```ts\nreturn 'later';\n```"}
	})
	t.Cleanup(m.Close)
	k := newKillable(t, `, "model": {"url": "`+m.URL+`", "model": "m", "key": "k"}`)
	runs := k.said("ask", "--queue", "create a lead record in the crm")
	waits := k.said("ask", "--queue", "count the records of the crm")
	k.kill(runs+"01", runs)
	k.gives(waits, `"later"`)
	k.lost(runs)
	if n := len(m.Requests()); n != 2 {
		t.Errorf("the model was asked %d times", n)
	}
}
