package engine_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"retort/internal/admin"
	"retort/internal/core"
	"retort/internal/devel/demo"
	"retort/internal/devel/testenv"
	"retort/internal/engine"
	"retort/internal/mcp/server"
)

func submit(t *testing.T, e *engine.Engine, r engine.Request) engine.JobState {
	t.Helper()
	j, err := engine.ProgramJob(r)
	if err != nil {
		t.Fatal(err)
	}
	task, err := e.Submit(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func finished(t *testing.T, e *engine.Engine, id string) engine.JobState {
	t.Helper()
	task, err := e.WaitTask(testenv.Context(t), id)
	if err != nil || task.Outcome == nil {
		t.Fatalf("%+v, %v", task, err)
	}
	return task
}

func TestTasks(t *testing.T) {
	e := openWith(t, "maxConcurrentTasks: 2\nprincipals: {anna: {}, berta: {}}\n", "crm")
	anna := e.As("anna")
	var ids []string
	for i := range 8 {
		ids = append(ids, submit(t, anna, engine.Request{Code: fmt.Sprintf("return %d", i)}).ID)
	}
	for i, id := range ids {
		if task := finished(t, anna, id); task.Status != "ok" || string(task.Outcome.Result) != fmt.Sprint(i) || task.Outcome.ExecutionID != id {
			t.Errorf("%+v", task)
		}
	}
	if _, err := e.As("berta").Task(ids[0]); err == nil || !strings.Contains(err.Error(), "there is no job") {
		t.Error(err)
	}
	if mine, err := e.As("berta").Tasks(); err != nil || len(mine) != 0 {
		t.Error(mine, err)
	}
	if _, err := e.Submit(t.Context(), engine.Job{Kind: "other"}); err == nil {
		t.Error("a job of an unknown kind is taken")
	}
	stats, ok := e.Stats(t.Context(), "").(engine.Stats)
	if !ok || stats.Tasks == nil || stats.Tasks.Ended != 8 {
		t.Errorf("%+v", stats.Tasks)
	}
	if hers := e.As("berta").Stats(t.Context(), "").(engine.Stats); hers.Tasks.Ended != 0 {
		t.Errorf("%+v", hers.Tasks)
	}
}

// TestTaskThatWaitsForAPerson checks that a job that waits for a person continues after the answer, and ends when it
// is cancelled.
func TestTaskThatWaitsForAPerson(t *testing.T) {
	server, err := demo.Open("crm")
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(t.Context(), engine.Config{
		NoFiles: true, Reserve: engine.ReserveNone, Home: t.TempDir(), Limits: unlimitedTime, Settings: "maxConcurrentTasks: 1\napproval: {autoApproveLow: false, autoApproveMedium: false}\n",
		Servers: []engine.Server{{Name: "crm", Dial: server.Dial}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	const code = "return (await crm.createRecord({objectType: 'Lead', data: {LastName: 'L', Company: 'C'}})) !== undefined"
	asked := func(id string) engine.Approval {
		t.Helper()
		var waiting []engine.Approval
		testenv.WaitUntil(t, "somebody is asked", func() bool {
			waiting = e.Waiting(id)
			task, _ := e.Task(id)
			return len(waiting) > 0 && task.Status == core.TaskPending
		})
		return waiting[0]
	}
	first, second := submit(t, e, engine.Request{Code: code}), submit(t, e, engine.Request{Code: code})
	a := asked(first.ID)
	asked(second.ID) // it has the place of the first one meanwhile
	if task, err := e.CancelTask(t.Context(), second.ID); err != nil || task.Status != "cancelled" || len(e.Waiting(second.ID)) != 0 {
		t.Errorf("%+v, %v", task, err)
	}
	if err := e.Decide(a.ID, a.Digest, engine.Answer{Approve: true}); err != nil {
		t.Fatal(err)
	}
	testenv.WaitUntil(t, "the task has ended", func() bool {
		for _, next := range e.Waiting(first.ID) { // the call, after the program
			_ = e.Decide(next.ID, next.Digest, engine.Answer{Approve: true})
		}
		task, err := e.Task(first.ID)
		return err != nil || task.Status.HasEnded()
	})
	if task := finished(t, e, first.ID); task.Status != "ok" || len(server.RecordedEffects()) != 1 {
		t.Errorf("%+v %+v, %d effects", task, task.Outcome.Error, len(server.RecordedEffects()))
	}
}

// TestTasksAreKept checks that a job that ran when the engine died is not run again, and that its Outcome lists the
// calls that were sent.
func TestTasksAreKept(t *testing.T) {
	home := t.TempDir()
	c := engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: home, Settings: "maxConcurrentTasks: 1\n", Limits: unlimitedTime}
	e, err := engine.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	slow := submit(t, e, engine.Request{Code: sleepProgram})
	next := submit(t, e, engine.Request{Code: "return 'next'"})
	testenv.WaitUntil(t, "a program runs", func() bool { return e.CountRunning() > 0 })
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Submit(t.Context(), engine.Job{Kind: core.JobProgram}); err == nil {
		t.Error("a closed engine takes tasks")
	}
	if e, err = engine.Open(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.Work(); err != nil {
		t.Fatal(err)
	}
	if task := finished(t, e, next.ID); string(task.Outcome.Result) != `"next"` {
		t.Errorf("%+v", task)
	}
	if task, err := e.Task(slow.ID); err != nil || task.Status != "cancelled" {
		t.Errorf("%+v, %v", task, err)
	}
}

// startServing starts an MCP server for an engine, and returns a function that sends a line and returns the
// answer. grace is how long the server waits for a result before it returns a task to a client that
// supports tasks.
func startServing(t *testing.T, e *engine.Engine, grace time.Duration) (ask func(line string) string) {
	t.Helper()
	s, err := server.New(e, server.Options{Version: engine.Version, Grace: grace})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Work(); err != nil {
		t.Fatal(err)
	}
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer s.Close()
		_ = s.ServeLines(context.Background(), fromClient, toClient)
	}()
	t.Cleanup(func() { toServer.Close(); go func() { _, _ = io.Copy(io.Discard, fromServer) }(); <-done })
	lines := bufio.NewScanner(fromServer)
	lines.Buffer(nil, 1<<20)
	return func(line string) string {
		t.Helper()
		if _, err := io.WriteString(toServer, line+"\n"); err != nil {
			t.Fatal(err)
		}
		for strings.Contains(line, `"id"`) && lines.Scan() {
			if strings.Contains(lines.Text(), `"id"`) {
				return lines.Text()
			}
		}
		return ""
	}
}

// openHolding opens an engine with a tool lib.get_x that does not answer until release is called.
func openHolding(t *testing.T) (e *engine.Engine, release func()) {
	t.Helper()
	l := &resourceServer{tools: `{"name":"get_x","inputSchema":{"type":"object"}}`, hold: make(chan struct{})}
	release = sync.OnceFunc(func() { close(l.hold) })
	e = l.open(t, "")
	t.Cleanup(release)
	return e, release
}

const callsHeld = "await callMCPTool('lib__get_x', {}); return 6 * 7"

var taskID = regexp.MustCompile(`"taskId":"([^"]+)"`)

// TestTaskOfLegacyClient checks that a client of protocol version 2025-11-25 can run a program as an MCP task and
// gets the result when it has ended.
func TestTaskOfLegacyClient(t *testing.T) {
	e, release := openHolding(t)
	ask := startServing(t, e, 0)
	ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	ask(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	made := ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_code","arguments":{"code":"` + callsHeld + `"},"task":{"ttl":60000}}}`)
	id := taskID.FindStringSubmatch(made)
	if id == nil || !strings.Contains(made, `"status":"working"`) || !strings.Contains(made, `"ttl":60000`) {
		t.Fatal(made)
	}
	release()
	got := ask(`{"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":"` + id[1] + `"}}`)
	if !strings.Contains(got, `"result":42`) || !strings.Contains(got, `related-task":{"taskId":"`+id[1]) {
		t.Error(got)
	}
	if got := ask(`{"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"` + id[1] + `"}}`); !strings.Contains(got, `"status":"completed"`) {
		t.Error(got)
	}
}

// modernMeta is the _meta member of requests from a client of protocol version 2026-07-28 that supports tasks.
const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`

func callOfModern(code string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_code","arguments":{"code":"` + code + `"},` + modernMeta + `}}`
}

// TestAnswerOfModernClient checks that a client of 2026-07-28 gets the result itself, and no task, if
// it is ready soon.
func TestAnswerOfModernClient(t *testing.T) {
	ask := startServing(t, open(t), testenv.Patience)
	if got := ask(callOfModern("return 6 * 7")); !strings.Contains(got, `"result":42`) || strings.Contains(got, "taskId") {
		t.Error(got)
	}
}

// TestTaskOfModernClient checks that a client of 2026-07-28 gets a task that it can cancel if the
// result is not ready soon.
func TestTaskOfModernClient(t *testing.T) {
	e, release := openHolding(t)
	ask := startServing(t, e, time.Millisecond)
	after := func(made, method string) string {
		id := taskID.FindStringSubmatch(made)
		if id == nil || !strings.Contains(made, `"resultType":"task"`) {
			t.Fatal(made)
		}
		return ask(`{"jsonrpc":"2.0","id":2,"method":"` + method + `","params":{"taskId":"` + id[1] + `",` + modernMeta + `}}`)
	}
	endless := ask(callOfModern(callsHeld))
	after(endless, "tasks/cancel")
	if got := after(endless, "tasks/get"); !strings.Contains(got, `"status":"cancelled"`) {
		t.Error(got)
	}
	slow := ask(callOfModern(callsHeld))
	if got := after(slow, "tasks/get"); !strings.Contains(got, `"status":"working"`) {
		t.Error(got)
	}
	release()
	got := ""
	testenv.WaitUntil(t, "the task does not work any more", func() bool {
		got = after(slow, "tasks/get")
		return !strings.Contains(got, `"status":"working"`)
	})
	if !strings.Contains(got, `"status":"completed"`) || !strings.Contains(got, `"result":42`) {
		t.Error(got)
	}
}

// TestRevokedTasks checks that after a token is revoked no engine runs a job that was submitted with this token.
func TestRevokedTasks(t *testing.T) {
	c := engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: t.TempDir(), Keys: t.TempDir()}
	made, err := admin.CreateToken(c, "anna", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.CreateToken(c, "berta", 0); err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{}
	for name, credential := range map[string]core.Credential{
		"ok": {Token: made.ID}, "also ok": {}, "revoked": {Token: "0123456789ab"}, "lasts": {Expires: time.Now().Add(time.Hour)}, "expired": {Expires: time.Now().Add(-time.Hour)},
	} {
		j, err := engine.ProgramJob(engine.Request{Code: "return 7"})
		if err != nil {
			t.Fatal(err)
		}
		j.Credential = credential
		task, _, err := admin.SubmitJob(c, j)
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = task.ID
	}
	e, err := engine.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.Work(); err != nil {
		t.Fatal(err)
	}
	for name, id := range ids {
		want := core.TaskStatus(core.StatusOK)
		if name == "revoked" || name == "expired" {
			want = core.TaskStatus(core.StatusCancelled)
		}
		if task := finished(t, e, id); task.Status != want {
			t.Errorf("%s: %s: %+v", name, task.Status, task.Outcome.Error)
		}
	}
}
