package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"retort/internal/core"
)

// taskEngine is an engine with a queue of jobs, whose times are fixed. The program "ask" becomes the job x9, which
// waits for a person. For the program "full", Submit fails because the queue is full.
type taskEngine struct {
	*engine
	mu    sync.Mutex
	tasks []*core.JobState
	news  chan struct{}
}

func newTaskEngine() *taskEngine {
	e := &taskEngine{engine: newEngine(), news: make(chan struct{})}
	e.tasks = []*core.JobState{{ID: "anna", Principal: "anna", Status: core.TaskRunning}}
	return e
}

var began = time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)

func (e *taskEngine) Submit(_ context.Context, j core.Job) (core.JobState, error) {
	var r core.ExecutionRequest
	if err := json.Unmarshal(j.Payload, &r); err != nil {
		return core.JobState{}, err
	}
	if r.Code == "full" {
		return core.JobState{}, core.Errorf(core.KindLimit, "test", "the line is full").WithHint("submit it again in about 10s")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	keep := time.Hour
	if j.Keep > 0 {
		keep = j.Keep
	}
	t := &core.JobState{ID: fmt.Sprintf("t%d", len(e.tasks)), Kind: j.Kind, Status: core.TaskRunning, Submitted: began, Expires: began.Add(keep)}
	e.tasks = append(e.tasks, t)
	switch r.Code {
	case "wait":
	case "ask":
		t.ID, t.Status = "x9", core.TaskPending
	default:
		e.end(t, e.Execute(context.Background(), r))
	}
	return *t, nil
}

func (e *taskEngine) end(t *core.JobState, o core.Outcome) {
	t.Status, t.Outcome, t.Ended = core.TaskStatus(o.Status), &o, began.Add(time.Second)
	e.tell()
}

// tell wakes all goroutines that wait for a change of a job's state. The caller must hold mu.
func (e *taskEngine) tell() {
	close(e.news)
	e.news = make(chan struct{})
}

func (e *taskEngine) Decide(id, digest string, a core.ApprovalAnswer) error {
	if err := e.engine.Decide(id, digest, a); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range e.tasks {
		if t.ID == "x9" {
			e.end(t, e.Resume(context.Background(), "x9", 0))
		}
	}
	return nil
}

func (e *taskEngine) find(id string) (*core.JobState, error) {
	for _, t := range e.tasks {
		if t.ID == id {
			return t, nil
		}
	}
	return nil, core.Errorf(core.KindInvalidArguments, "test", "there is no job %q", id)
}

func (e *taskEngine) Task(id string) (core.JobState, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t, err := e.find(id)
	if err != nil {
		return core.JobState{}, err
	}
	return *t, nil
}

func (e *taskEngine) Tasks() (all []core.JobState, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range e.tasks {
		all = append(all, *t)
	}
	return all, nil
}

func (e *taskEngine) CancelTask(_ context.Context, id string) (core.JobState, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t, err := e.find(id)
	if err == nil && t.Status.HasEnded() {
		err = core.Errorf(core.KindInvalidArguments, "test", "the job has already ended: %s", t.Status)
	}
	if err != nil {
		return core.JobState{}, err
	}
	e.end(t, core.Outcome{ExecutionID: id, Status: core.StatusCancelled})
	return *t, nil
}

func (e *taskEngine) WaitTask(ctx context.Context, id string) (core.JobState, error) {
	for {
		e.mu.Lock()
		t, err := e.find(id)
		if err != nil || t.Outcome != nil || ctx.Err() != nil {
			defer e.mu.Unlock()
			if err != nil {
				return core.JobState{}, err
			}
			return *t, nil
		}
		news := e.news
		e.mu.Unlock()
		select {
		case <-news:
		case <-ctx.Done():
		}
	}
}

func (e *taskEngine) WatchTask(ctx context.Context, id string, seen core.JobState) (core.JobState, error) {
	for {
		e.mu.Lock()
		news := e.news
		t, err := e.find(id)
		if err != nil || t.Status != seen.Status || !t.LastUpdate().Equal(seen.LastUpdate()) {
			defer e.mu.Unlock()
			if err != nil {
				return core.JobState{}, err
			}
			return *t, nil
		}
		e.mu.Unlock()
		select {
		case <-news:
		case <-ctx.Done():
			return seen, nil
		}
	}
}

// talk is a client connection over which a test writes and reads single lines.
type talk struct {
	t   *testing.T
	to  io.Writer
	all *bufio.Scanner
}

func talkTo(t *testing.T, e Engine) *talk {
	t.Helper()
	s, err := New(e, Options{Grace: time.Millisecond}) // calls in these tests either answer at once or never
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	go func() { _ = s.ServeLines(context.Background(), fromClient, toClient); toClient.Close() }()
	t.Cleanup(func() { toServer.Close(); _, _ = io.Copy(io.Discard, fromServer) })
	answers := bufio.NewScanner(fromServer)
	answers.Buffer(nil, 1<<20)
	return &talk{t, toServer, answers}
}

func (k *talk) say(line string) {
	if _, err := io.WriteString(k.to, line+"\n"); err != nil {
		k.t.Error(err)
	}
}

// hear returns the next line from the server that contains text.
func (k *talk) hear(text string) string {
	k.t.Helper()
	for k.all.Scan() {
		if strings.Contains(k.all.Text(), text) {
			return k.all.Text()
		}
	}
	k.t.Fatalf("nothing has %s", text)
	return ""
}

const asksPerson = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}`

// TestLegacyTaskAsks checks that a client of 2025-11-25 is asked for the approval of a task while it waits in
// tasks/result.
func TestLegacyTaskAsks(t *testing.T) {
	k := talkTo(t, newTaskEngine())
	k.say(asksPerson)
	k.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_code","arguments":{"code":"ask"},"task":{}}}`)
	if got := k.hear(`"id":2`); !strings.Contains(got, `"input_required"`) {
		t.Error(got)
	}
	k.say(`{"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":"x9"}}`)
	asked := k.hear("elicitation/create")
	var m struct{ ID json.RawMessage }
	if err := json.Unmarshal([]byte(asked), &m); err != nil || !strings.Contains(asked, `"io.modelcontextprotocol/related-task":{"taskId":"x9"}`) {
		t.Error(asked, err)
	}
	k.say(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"action":"accept","content":{"decision":"once"}}}`)
	if got := k.hear(`"id":3`); !strings.Contains(got, `"result":"done"`) || !strings.Contains(got, `"io.modelcontextprotocol/related-task":{"taskId":"x9"}`) {
		t.Error(got)
	}
}

// TestLegacyTaskProgress checks that a client of 2025-11-25 gets the progress of a task, with the progress token of
// its call.
func TestLegacyTaskProgress(t *testing.T) {
	e := newTaskEngine()
	k := talkTo(t, e)
	k.say(asksPerson)
	k.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_code","arguments":{"code":"wait"},"task":{},"_meta":{"progressToken":"p"}}}`)
	k.hear(`"id":2`)
	e.mu.Lock()
	e.tasks[1].Progress = &core.TaskProgress{Done: 7, Message: "7 tool calls", At: began.Add(time.Minute)}
	e.tell()
	e.mu.Unlock()
	if got := k.hear("notifications/progress"); !strings.Contains(got, `"progressToken":"p"`) || !strings.Contains(got, `"progress":7`) || !strings.Contains(got, `"taskId":"t1"`) {
		t.Error(got)
	}
}

// TestServersAskInTasks checks that a server's question during a task waits until the client asks for the task's
// result (legacy) or state (modern).
func TestServersAskInTasks(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			e := &askingEngine{taskEngine: newTaskEngine(), said: make(chan string, 1)}
			k := talkTo(t, e)
			meta := ""
			if era == "modern" {
				meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
			} else {
				k.say(asksPerson)
			}
			k.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_code","arguments":{"code":"wait"},"task":{}` + meta + `}}`)
			k.hear(`"id":2`)
			if era == "legacy" {
				k.say(`{"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":"t1"}}`)
				var m struct{ ID json.RawMessage }
				if err := json.Unmarshal([]byte(k.hear("which one")), &m); err != nil {
					t.Fatal(err)
				}
				k.say(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"action":"accept","content":{"name":"blue"}}}`)
			} else {
				k.say(`{"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"t1"` + meta + `}}`)
				if got := k.hear("which one"); !strings.Contains(got, `"input_required"`) {
					t.Error(got)
				}
				k.say(`{"jsonrpc":"2.0","id":4,"method":"tasks/update","params":{"taskId":"t1","inputResponses":{"ask-1":{"action":"accept","content":{"name":"blue"}}}` + meta + `}}`)
				k.hear(`"id":4`)
			}
			if said := <-e.said; !strings.Contains(said, "blue") {
				t.Error(said)
			}
		})
	}
}

// askingEngine asks the client a question during each job, and sends the answer to the channel said.
type askingEngine struct {
	*taskEngine
	said chan string
}

func (e *askingEngine) Submit(ctx context.Context, j core.Job) (core.JobState, error) {
	t, err := e.taskEngine.Submit(ctx, j)
	peer := core.PeerOf(ctx)
	go func() {
		answer, refused := peer.Ask(context.Background(), core.ServerRequest{Server: "s", Tool: "t", Method: core.MethodElicit, Params: json.RawMessage(`{"message":"which one","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`)})
		e.said <- fmt.Sprint(string(answer), refused)
	}()
	return t, err
}

// TestTaskSupport checks that the list of tools marks the tools that can be called as tasks, for clients of
// 2025-11-25 only.
func TestTaskSupport(t *testing.T) {
	k := talkTo(t, newTaskEngine())
	k.say(asksPerson)
	k.say(`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`)
	got := k.hear(`"id":2`)
	if strings.Count(got, `"execution":{"taskSupport":"optional"}`) != 2 || !strings.Contains(got, `{"execution":{"taskSupport":"optional"},"description"`) && !strings.Contains(got, `"name":"execute_code"`) {
		t.Error(got)
	}
	if strings.Contains(session(t, Options{}, `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`), "taskSupport") {
		t.Error("it says so to who decides nothing")
	}
}

// TestLegacyTaskOverHTTP checks that a client of 2025-11-25 can also request a task over HTTP.
func TestLegacyTaskOverHTTP(t *testing.T) {
	s, err := New(newTaskEngine(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	served := httptest.NewServer(s.NewHTTPHandlers().Sessions)
	defer served.Close()
	session := ""
	post := func(body string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, served.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			req.Header.Set(SessionHeader, session)
			req.Header.Set(VersionHeader, tasksVersion)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if id := resp.Header.Get(SessionHeader); id != "" {
			session = id
		}
		text, _ := io.ReadAll(resp.Body)
		return string(text)
	}
	post(strings.SplitN(asksPerson, "\n", 2)[0])
	post(strings.SplitN(asksPerson, "\n", 2)[1])
	if got := post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_code","arguments":{"code":"wait"},"task":{"ttl":5000}}}`); !strings.Contains(got, `"task":{`) || !strings.Contains(got, `"ttl":5000`) {
		t.Error(got)
	}
	if got := post(`{"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"t1"}}`); !strings.Contains(got, `"status":"working"`) {
		t.Error(got)
	}
}
