package server

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
)

//lint:file-ignore SA1019 roots, sampling and logging are passed on between those who have them; only 2026-07-28 gives them up

// handleLegacy handles the methods about tasks for clients of protocol version 2025-11-25.
func (k *clientTasks) handleLegacy(ctx context.Context, method string, req mcp.Request, p *taskParams) (mcp.Result, error) {
	if method == "tasks/list" {
		page, next, err := k.listTasks(p.Cursor)
		if err != nil {
			return nil, err
		}
		list := make([]any, len(page))
		for i, t := range page {
			list[i] = taskOf(k.clientState(t), true)
		}
		raw := jsonObject("tasks", list)
		if next != "" {
			raw = orMember(raw, "nextCursor", next)
		}
		return &exactResult{raw: raw}, nil
	}
	t, err := k.findTask(p.TaskID)
	if err != nil {
		return nil, err
	}
	switch method {
	case "tasks/get":
		return k.taskAnswer(taskOf(t, true), false)
	case "tasks/cancel":
		if t, err = k.CancelTask(ctx, t.ID); err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: core.AsError(err).Message}
		}
		if !t.Status.HasEnded() {
			t.Status = core.TaskStatus(core.StatusCancelled) // it ends elsewhere
		}
		return k.taskAnswer(taskOf(t, true), false)
	case "tasks/result":
		return k.awaitResult(ctx, req, t)
	}
	return nil, noMethod(method)
}

func (k *clientTasks) taskAnswer(members map[string]any, modern bool) (mcp.Result, error) {
	raw, err := marshalPlain(members)
	if err != nil {
		return nil, err
	}
	return &exactResult{raw: raw, modern: modern}, nil
}

// awaitResult waits for the end of a task. Meanwhile it asks the client all questions that arise in the task.
func (k *clientTasks) awaitResult(ctx context.Context, req mcp.Request, t core.JobState) (mcp.Result, error) {
	asking, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.relayQuestions(asking, asCall(req), t.ID)
	}()
	t, err := k.WaitTask(ctx, t.ID)
	stop()
	<-done
	if err != nil || t.Outcome == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the task has not ended, or is no longer stored"}
	}
	raw, _, err := resultOfTask(t)
	if err != nil {
		return nil, err
	}
	return &exactResult{raw: withMeta(raw, relatedTask, map[string]any{"taskId": t.ID})}, nil
}

// withMeta adds a member to the _meta of a result.
func withMeta(raw json.RawMessage, name string, value any) json.RawMessage {
	meta := json.RawMessage("{}")
	if from, to := findMember(raw, "_meta"); to > 0 {
		meta = raw[from:to]
	}
	return withMember(raw, "_meta", withMember(meta, name, value))
}

// relayQuestions sends the open questions of a task to the client until ctx ends. It sends each question only once.
func (k *clientTasks) relayQuestions(ctx context.Context, call *mcp.CallToolRequest, id string) {
	const every = 100 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	asked := map[string]bool{}
	for {
		requests, waiting := k.openQuestions(id, call)
		dangers := dangersOf(requests, waiting)
		for _, name := range byDanger(dangers) {
			if asked[name] {
				continue
			}
			leave, ok := k.server.forms.awaitTurn(ctx, call.Session, dangers[name])
			if !ok {
				return
			}
			asked[name] = true
			response := askOver(ctx, call.Session, id, requests[name])
			leave()
			if response != nil {
				k.takeAnswers(id, call, mcp.InputResponseMap{name: response})
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// dangersOf returns a map from the names of requests to a client to their dangers; the most dangerous request is sent
// first. A request that does not belong to a waiting approval comes from an upstream server and has the danger
// serverForm.
func dangersOf(requests mcp.InputRequestMap, waiting []core.Approval) map[string]int {
	dangers := map[string]int{}
	for name := range requests {
		dangers[name] = serverForm
	}
	for _, a := range formsOfRound(waiting) {
		dangers[nameOf(a)] = a.Danger()
	}
	return dangers
}

// byDanger returns the keys of dangers, which are the names of requests to a client. The most dangerous request comes
// first.
func byDanger(dangers map[string]int) []string {
	return slices.SortedFunc(maps.Keys(dangers), func(a, b string) int {
		return cmp.Or(dangers[b]-dangers[a], strings.Compare(a, b))
	})
}

// askOver sends one request, such as a form, to the client over its session. The request says that it belongs to the
// task with the given id. askOver returns the client's answer, or nil if the client does not answer.
func askOver(ctx context.Context, session *mcp.ServerSession, id string, request mcp.InputRequest) mcp.InputResponse {
	meta := map[string]any{relatedTask: map[string]any{"taskId": id}}
	switch p := request.(type) {
	case *mcp.ElicitParams:
		p.Meta = meta
		if result, err := session.Elicit(ctx, p); err == nil {
			return result
		}
	case *mcp.CreateMessageWithToolsParams:
		p.Meta = meta
		if result, err := session.CreateMessageWithTools(ctx, p); err == nil {
			return result
		}
	}
	return nil
}

// relayProgress forwards the progress of a task to a client that has asked for it, until the task ends.
func (k *clientTasks) relayProgress(req *mcp.CallToolRequest, t core.JobState) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	context.AfterFunc(k.server.ctx, stop)
	go func() {
		defer stop()
		for told := -1; !t.Status.HasEnded() && ctx.Err() == nil; {
			if p := t.Progress; p != nil && p.Done > told {
				told = p.Done
				params := &mcp.ProgressNotificationParams{
					Meta: map[string]any{relatedTask: map[string]any{"taskId": t.ID}}, ProgressToken: token,
					Progress: float64(p.Done), Total: float64(p.Total), Message: p.Message,
				}
				if req.Session.NotifyProgress(ctx, params) != nil {
					return
				}
			}
			time.Sleep(progressInterval)
			next, err := k.WatchTask(ctx, t.ID, t)
			if err != nil {
				return
			}
			t = next
		}
	}()
}

// awaitGrace waits for the end of a new task, at most for the grace period of a call. If the task ends in time,
// awaitGrace returns the task's result as the result of the call; otherwise it returns the task. It is for clients of
// protocol version 2026-07-28.
func (k *clientTasks) awaitGrace(ctx context.Context, t core.JobState) (mcp.Result, error) {
	waiting, done := context.WithTimeout(ctx, k.server.grace)
	defer done()
	now, err := k.WaitTask(waiting, t.ID)
	if err == nil && now.Outcome != nil {
		raw, _, err := resultOfTask(now)
		if err != nil {
			return nil, err
		}
		return &exactResult{raw: raw, modern: true}, nil
	}
	if ctx.Err() != nil { // nobody will know of it
		_, _ = k.CancelTask(context.WithoutCancel(ctx), t.ID)
		return nil, ctx.Err()
	}
	if err == nil {
		t = now
	}
	members := taskOf(k.clientState(t), false)
	members["resultType"] = "task"
	return k.taskAnswer(members, true)
}

// handleModern handles the methods about tasks for clients of protocol version 2026-07-28.
func (k *clientTasks) handleModern(ctx context.Context, method string, req mcp.Request, p *taskParams) (mcp.Result, error) {
	if method == "tasks/list" || method == "tasks/result" {
		return nil, noMethod(method)
	}
	if !knowsTasks(req) {
		return nil, lacksTasks()
	}
	t, err := k.findTask(p.TaskID)
	if err != nil {
		return nil, err
	}
	call := asCall(req)
	switch method {
	case "tasks/update":
		k.takeAnswers(t.ID, call, p.Responses)
		return k.taskAnswer(map[string]any{}, true)
	case "tasks/cancel":
		_, _ = k.CancelTask(ctx, t.ID) // one that has ended stays as it is
		return k.taskAnswer(map[string]any{}, true)
	}
	members := taskOf(t, false)
	switch requests, _ := k.openQuestions(t.ID, call); {
	case members["status"] == "input_required" && len(requests) == 0:
		members["status"], members["statusMessage"] = "working", "waits for a person; see retort approvals list"
	case members["status"] == "input_required":
		members["inputRequests"] = requests
	case members["status"] == "completed":
		raw, _, err := resultOfTask(t)
		if err != nil {
			return nil, err
		}
		members["result"] = orMember(raw, "resultType", "complete")
	}
	return k.taskAnswer(members, true)
}

func lacksTasks() error {
	data, err := json.Marshal(
		map[string]any{"requiredCapabilities": map[string]any{"extensions": map[string]any{tasksExtension: map[string]any{}}}},
	)
	if err != nil {
		return err
	}
	return &jsonrpc.Error{
		Code:    mcp.CodeMissingRequiredClientCapabilities,
		Message: "the client has not declared the extension " + tasksExtension, Data: data,
	}
}
