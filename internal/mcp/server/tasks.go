package server

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
)

// TaskEngine represents an Engine with a queue of jobs. Jobs of other principals are treated as unknown.
type TaskEngine interface {
	// Submit adds a job to the queue. When it returns, the job is stored durably. While the job runs, upstream
	// servers can send questions to the client in ctx (core.WithPeer).
	Submit(ctx context.Context, j core.Job) (core.JobState, error)
	Task(id string) (core.JobState, error)
	Tasks() ([]core.JobState, error)
	// CancelTask cancels a job that has not ended.
	CancelTask(ctx context.Context, id string) (core.JobState, error)
	// WaitTask waits until a job or ctx ends.
	WaitTask(ctx context.Context, id string) (core.JobState, error)
	// WatchTask waits until the state of a job differs from the given one, or ctx ends.
	WatchTask(ctx context.Context, id string, seen core.JobState) (core.JobState, error)
}

const (
	// tasksExtension is the name of the MCP extension for tasks since protocol version 2026-07-28, where the server
	// decides which calls become tasks.
	tasksExtension = "io.modelcontextprotocol/tasks"
	// tasksVersion is the only protocol version in which the client decides which calls become tasks.
	tasksVersion = "2025-11-25"
	// relatedTask is a key in the _meta of a message. Its value names the task that the message belongs to.
	relatedTask = "io.modelcontextprotocol/related-task"
	// taskAsked is the _meta key under which liftTask stores a client's request for a task, because the SDK keeps
	// _meta but no unknown members.
	taskAsked = "retort/task"
	// taskGrace is how long a call may run before a client that supports tasks gets a task instead of the result.
	taskGrace = 2 * time.Second
	// pollEvery is the polling interval that clients are asked to use.
	pollEvery = time.Second
	// maxTalks bounds how many tasks at a time have a conversation with their client, in which upstream servers can
	// ask the client questions.
	maxTalks = 256
	taskPage = 100
)

// clientTasks converts tool calls to jobs, which run in the background, and shows jobs as MCP tasks to the clients of
// a Server.
type clientTasks struct {
	TaskEngine
	server *Server

	mu    sync.Mutex
	talks map[string]*conversation // conversations of running tasks, in which upstream servers ask questions
}

// taskParams combines the parameters of all task methods.
type taskParams struct {
	mcp.ParamsBase
	TaskID    string               `json:"taskId"`
	Cursor    string               `json:"cursor"`
	Responses mcp.InputResponseMap `json:"inputResponses"`
}

// setUpTasks makes the server offer MCP tasks if its engine has a queue.
func (s *Server) setUpTasks() error {
	t, ok := s.engine.(TaskEngine)
	if !ok {
		return nil
	}
	k := &clientTasks{TaskEngine: t, server: s, talks: map[string]*conversation{}}
	for _, method := range []string{"tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update"} {
		err := mcp.AddReceivingCustomMethod(s.mcp, method, func(context.Context, *mcp.ServerSession, *taskParams) (*exactResult, error) {
			return nil, noMethod(method) // the middleware answers
		})
		if err != nil {
			return err
		}
	}
	s.mcp.AddReceivingMiddleware(k.handleMethods)
	return nil
}

func noMethod(method string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: method + " is not a method of this version of the protocol"}
}

func (k *clientTasks) handleMethods(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch method {
		case "initialize", "server/discover":
			result, err := next(ctx, method, req)
			if err == nil {
				result = withTasksOffered(result)
			}
			return result, err
		case "tools/list":
			result, err := next(ctx, method, req)
			if err == nil && legacyTasks(req) {
				result = k.markTaskTools(result)
			}
			return result, err
		case "tools/call":
			if call, ok := req.(*mcp.CallToolRequest); ok {
				if result, is, err := k.answerCall(ctx, call); is {
					return result, err
				}
			}
		}
		if r, ok := req.(*mcp.ServerRequest[*taskParams]); ok && r.Params == nil {
			r.Params = &taskParams{} // they are optional, and the SDK reads their _meta
		}
		p, ok := req.GetParams().(*taskParams)
		switch {
		case !ok:
			return next(ctx, method, req)
		case isModern(req):
			return k.handleModern(ctx, method, req, p)
		case legacyTasks(req):
			return k.handleLegacy(ctx, method, req, p)
		}
		return nil, noMethod(method)
	}
}

func legacyTasks(req mcp.Request) bool {
	r, ok := req.(interface{ ProtocolVersion() string })
	return ok && r.ProtocolVersion() == tasksVersion
}

// knowsTasks reports whether a client of protocol version 2026-07-28 or later accepts a task as the answer to a call.
func knowsTasks(req mcp.Request) bool {
	c := capabilitiesOf(req)
	if c == nil {
		return false
	}
	_, ok := c.Extensions[tasksExtension]
	return ok
}

// withTasksOffered adds the support of tasks to the capabilities in the result of initialize or server/discover.
func withTasksOffered(result mcp.Result) mcp.Result {
	switch r := result.(type) {
	case *mcp.DiscoverResult:
		if r.Capabilities != nil {
			r.Capabilities.AddExtension(tasksExtension, nil)
		}
	case *mcp.InitializeResult:
		text, err := json.Marshal(r)
		capabilities, bad := json.Marshal(r.Capabilities)
		if err != nil || bad != nil || r.ProtocolVersion != tasksVersion {
			return result
		}
		none := map[string]any{}
		capabilities = orMember(
			capabilities, "tasks",
			map[string]any{"list": none, "cancel": none, "requests": map[string]any{"tools": map[string]any{"call": none}}},
		)
		return &exactResult{raw: withMember(text, "capabilities", json.RawMessage(capabilities))}
	}
	return result
}

// markTaskTools marks those tools in a list that can be called as tasks.
func (k *clientTasks) markTaskTools(result mcp.Result) mcp.Result {
	text, err := json.Marshal(result)
	var list struct {
		Tools []json.RawMessage `json:"tools"`
	}
	if err != nil || json.Unmarshal(text, &list) != nil {
		return result
	}
	for i, raw := range list.Tools {
		var t struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(raw, &t) == nil && k.ownToolJob(t.Name) != nil {
			list.Tools[i] = orMember(raw, "execution", map[string]any{"taskSupport": "optional"})
		}
	}
	return &exactResult{raw: withMember(text, "tools", list.Tools)}
}

// ownToolJob returns the function that makes a job from a call of one of Retort's own tools, or nil if that tool
// cannot run as a job.
func (k *clientTasks) ownToolJob(tool string) func(*mcp.CallToolRequest) (core.Job, error) {
	switch tool {
	case "execute_code":
		return func(req *mcp.CallToolRequest) (core.Job, error) {
			r, err := programRequest(req)
			if err != nil {
				return core.Job{}, err
			}
			return core.ProgramJob(r)
		}
	case "execute_task":
		return func(req *mcp.CallToolRequest) (core.Job, error) {
			t, err := taskAskedFor(req)
			if err != nil {
				return core.Job{}, err
			}
			return core.TaskJob(t)
		}
	}
	return nil
}

// jobOfCall returns the function that makes a job from a call. ok is false if the call cannot become a task.
func (k *clientTasks) jobOfCall(ctx context.Context, req *mcp.CallToolRequest) (func(*mcp.CallToolRequest) (core.Job, error), bool) {
	if build := k.ownToolJob(req.Params.Name); build != nil {
		return build, true
	}
	d := k.server.direct
	if d == nil {
		return nil, false
	}
	d.awaitTool(ctx, req.Params.Name)
	n, ok := d.lookupTool(req.Params.Name)
	if !ok || !supportsTasks(n.definition) {
		return nil, false
	}
	return func(req *mcp.CallToolRequest) (core.Job, error) {
		arguments := req.Params.Arguments
		if len(arguments) == 0 {
			arguments = json.RawMessage("{}")
		}
		return core.PassJob(core.ExecutionRequest{Client: clientName(req)}, core.PassthroughRequest{
			Server: n.tool.Server, Tool: n.tool.Name, Arguments: arguments,
		})
	}, true
}

func supportsTasks(definition json.RawMessage) bool {
	var d struct {
		Execution struct {
			TaskSupport string `json:"taskSupport"`
		} `json:"execution"`
	}
	return json.Unmarshal(definition, &d) == nil && (d.Execution.TaskSupport == "optional" || d.Execution.TaskSupport == "required")
}

// answerCall answers a call with a task if the call must become one. In protocol version 2025-11-25 the client
// requests a task; in later versions the server decides. The second result is false if answerCall has not answered
// the call, which must then be handled without a task.
func (k *clientTasks) answerCall(ctx context.Context, req *mcp.CallToolRequest) (result mcp.Result, is bool, err error) {
	asked, wanted := req.Params.Meta[taskAsked]
	delete(req.Params.Meta, taskAsked)
	wanted = wanted && legacyTasks(req)
	if !wanted && (!isModern(req) || !knowsTasks(req) || req.Params.RequestState != "") {
		return nil, false, nil
	}
	build, able := k.jobOfCall(ctx, req)
	switch {
	case wanted && !able:
		return nil, true, noMethod("tools/call of " + req.Params.Name + " as a task")
	case !able:
		return nil, false, nil
	}
	j, err := build(req)
	if err != nil {
		result, err = refuseTask(err)
		return result, true, err
	}
	j.Keep = timeToLive(asked)
	ctx, talk := withOwnConversation(withTrace(ctx, req), req)
	t, err := k.Submit(ctx, j)
	if err != nil {
		result, err = refuseTask(err)
		return result, true, err
	}
	k.rememberConversation(t.ID, talk)
	if isModern(req) {
		result, err = k.awaitGrace(ctx, t)
		return result, true, err
	}
	k.relayProgress(req, t)
	return &exactResult{raw: jsonObject("task", taskOf(k.clientState(t), true))}, true, nil
}

// timeToLive returns how long a client wants a task to be kept, or 0 if it does not say.
func timeToLive(asked any) time.Duration {
	wanted, _ := asked.(map[string]any)
	if ms, ok := wanted["ttl"].(float64); ok && ms > 0 && ms < 1e12 {
		return time.Duration(ms) * time.Millisecond
	}
	return 0
}

// refuseTask returns the answer to a call that should have become a task but could not.
func refuseTask(err error) (mcp.Result, error) {
	return resultOf(map[string]any{"error": core.AsError(err)}, true)
}

func jsonObject(name string, value any) json.RawMessage {
	return orMember(json.RawMessage("{}"), name, value)
}

// withOwnConversation returns a context in which questions of upstream servers wait until the client asks for the
// task's state or result.
func withOwnConversation(ctx context.Context, req mcp.Request) (context.Context, *conversation) {
	talk := &conversation{req: req, told: &core.ClientPeer{}, questions: map[string]*serverQuestion{}, news: make(chan struct{}, 1)}
	was := core.PeerOf(ctx)
	return core.WithPeer(ctx, &core.ClientPeer{
		ID: was.ID, Forms: was.Forms, Pages: was.Pages, Samples: was.Samples, Log: was.Log, Ask: talk.askClient,
	}), talk
}

// rememberConversation stores the conversation of a task until the task ends.
func (k *clientTasks) rememberConversation(id string, talk *conversation) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.talks) >= maxTalks {
		for old := range k.talks {
			if t, err := k.Task(old); err != nil || t.Status.HasEnded() {
				delete(k.talks, old)
			}
		}
	}
	if len(k.talks) < maxTalks {
		k.talks[id] = talk
	}
}

func (k *clientTasks) conversationOf(id string) *conversation {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.talks[id]
}

// openQuestions returns the open questions of a task that its client can answer: questions of upstream servers, and
// approvals that wait for a person.
func (k *clientTasks) openQuestions(id string, call *mcp.CallToolRequest) (mcp.InputRequestMap, []core.Approval) {
	all := mcp.InputRequestMap{}
	if talk := k.conversationOf(id); talk != nil {
		talk.mu.Lock()
		for name, q := range talk.questions {
			all[name] = q.request
		}
		talk.mu.Unlock()
	}
	waiting := slices.DeleteFunc(k.server.engine.Waiting(id), func(a core.Approval) bool { return !canShow(call, a) })
	for _, a := range formsOfRound(waiting) {
		all[nameOf(a)] = approvalForm(a)
	}
	return all, waiting
}

// takeAnswers passes a client's answers on to the approvals and upstream servers that wait for them.
func (k *clientTasks) takeAnswers(id string, call *mcp.CallToolRequest, responses mcp.InputResponseMap) {
	_, waiting := k.openQuestions(id, call)
	for a, answer := range answersTo(waiting, responses) {
		_ = k.server.engine.Decide(a.ID, a.Digest, answer) // another answer was faster
	}
	talk := k.conversationOf(id)
	if talk == nil {
		return
	}
	talk.mu.Lock()
	defer talk.mu.Unlock()
	for name, q := range talk.questions {
		if text, err := marshalPlain(responses[name]); responses[name] != nil && err == nil {
			delete(talk.questions, name)
			q.answer <- text
		}
	}
}

// asCall returns a tool call that has the session and the _meta of req, a request about a task. The tool call is
// passed to functions that need the session or the _meta but accept only tool calls.
func asCall(req mcp.Request) *mcp.CallToolRequest {
	session, _ := req.GetSession().(*mcp.ServerSession)
	return &mcp.CallToolRequest{Session: session, Params: &mcp.CallToolParamsRaw{Meta: req.GetParams().GetMeta()}, Extra: req.GetExtra()}
}

// findTask returns the task if it belongs to the principal of this Server. The check is needed because the local
// user's queue contains the tasks of all principals.
func (k *clientTasks) findTask(id string) (core.JobState, error) {
	t, err := k.Task(id)
	if err != nil || t.ID != id || t.Principal != k.server.principal { // nor one that was given this id by a caller
		return t, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "there is no task with this id; ended tasks are kept only for a limited time"}
	}
	return k.clientState(t), nil
}

// clientState returns the state of a task for its client. The state is "input required" while a question is open.
func (k *clientTasks) clientState(t core.JobState) core.JobState {
	talk := k.conversationOf(t.ID)
	if talk == nil || t.Status != core.TaskRunning {
		return t
	}
	talk.mu.Lock()
	defer talk.mu.Unlock()
	if len(talk.questions) > 0 {
		t.Status = core.TaskPending
	}
	return t
}

// resultOfTask returns the result that the call would have had without a task, and whether it failed.
func resultOfTask(t core.JobState) (json.RawMessage, bool, error) {
	o := *t.Outcome
	failed := o.Status != core.StatusOK
	if t.Kind == core.JobPass && !failed {
		var r struct {
			IsError bool `json:"isError"`
		}
		_ = json.Unmarshal(o.Result, &r)
		return o.Result, r.IsError, nil
	}
	result, err := resultOf(o, failed)
	if err != nil {
		return nil, failed, err
	}
	text, err := json.Marshal(result)
	return text, failed, err
}

// taskOf converts the state of a job to an MCP task. Before protocol version 2026-07-28, a failed call is a failed
// task.
func taskOf(t core.JobState, legacy bool) map[string]any {
	status, message := "working", ""
	switch {
	case t.Status == core.TaskQueued:
		message = "waits for its turn"
	case t.Status == core.TaskPending:
		status, message = "input_required", "waits for a person"
	case t.Status == core.TaskStatus(core.StatusCancelled):
		status, message = "cancelled", "was cancelled"
	case t.Status.HasEnded():
		status, message = "completed", ""
		if _, failed, err := resultOfTask(t); legacy && (failed || err != nil) {
			status, message = "failed", string(t.Status)
		}
	case t.Progress != nil:
		message = t.Progress.Message
	}
	m := map[string]any{"taskId": t.ID, "status": status, "createdAt": formatTime(t.Submitted), "lastUpdatedAt": formatTime(t.LastUpdate())}
	if message != "" {
		m["statusMessage"] = message
	}
	ttl, poll := "ttlMs", "pollIntervalMs"
	if legacy {
		ttl, poll = "ttl", "pollInterval"
	}
	m[ttl], m[poll] = t.Expires.Sub(t.Submitted).Milliseconds(), pollEvery.Milliseconds()
	return m
}

func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// listTasks returns one page of the tasks of the Server's principal.
func (k *clientTasks) listTasks(cursor string) (page []core.JobState, next string, err error) {
	all, err := k.Tasks()
	if err != nil {
		return nil, "", err
	}
	all = slices.DeleteFunc(all, func(t core.JobState) bool { return t.Principal != k.server.principal })
	if cursor != "" {
		id, bad := base64.RawURLEncoding.DecodeString(cursor)
		at := slices.IndexFunc(all, func(t core.JobState) bool { return t.ID == string(id) })
		if bad != nil || at < 0 {
			return nil, "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the cursor does not belong to this list, or its task no longer exists"}
		}
		all = all[at+1:]
	}
	if len(all) > taskPage {
		all = all[:taskPage]
		next = base64.RawURLEncoding.EncodeToString([]byte(all[taskPage-1].ID))
	}
	return all, next, nil
}

// liftTask moves a client's request for a task (protocol version 2025-11-25) in a tools/call message into _meta,
// because the SDK drops unknown members in other places.
func liftTask(message []byte) []byte {
	if !strings.Contains(string(message), `"task"`) || !strings.Contains(string(message), `"tools/call"`) {
		return message
	}
	var m struct {
		Method string `json:"method"`
		Params struct {
			Task json.RawMessage            `json:"task"`
			Meta map[string]json.RawMessage `json:"_meta"`
		} `json:"params"`
	}
	if json.Unmarshal(message, &m) != nil || m.Method != "tools/call" || m.Params.Task == nil {
		return message
	}
	if m.Params.Meta == nil {
		m.Params.Meta = map[string]json.RawMessage{}
	}
	m.Params.Meta[taskAsked] = m.Params.Task
	from, to := findMember(message, "params")
	params := withMember(message[from:to], "_meta", m.Params.Meta)
	return withMember(message, "params", params)
}
