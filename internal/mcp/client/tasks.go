package client

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"retort/internal/core"
)

// methodTask and the following constants name the methods and the extension of MCP tasks. In protocol version
// 2025-11-25 the client decides that a call becomes a task, since 2026-07-28 the server does. In both cases the pool
// waits for the task, so that its callers get an ordinary result.
const (
	methodTask       = "tasks/get"
	methodTaskResult = "tasks/result"
	methodTaskUpdate = "tasks/update"
	methodTaskCancel = "tasks/cancel"

	tasksExtension = "io.modelcontextprotocol/tasks"
)

// pollLeast, pollUsual and pollMost determine how often the state of a task is polled. pollUsual applies if the server
// suggests no interval, and the others bound the interval that it suggests.
const (
	pollLeast = 50 * time.Millisecond
	pollUsual = 500 * time.Millisecond
	pollMost  = 5 * time.Second
)

// taskTools records which tools of a server can be called as tasks. It is safe for concurrent use.
type taskTools struct {
	mu    sync.Mutex
	names map[string]bool
}

// learnTools reads from a server's listing which tools can be called as tasks.
func (t *taskTools) learnTools(tools []json.RawMessage) {
	names := map[string]bool{}
	for _, raw := range tools {
		var d struct {
			Name      string `json:"name"`
			Execution struct {
				TaskSupport string `json:"taskSupport"`
			} `json:"execution"`
		}
		if bytes.Contains(raw, []byte(`"taskSupport"`)) && unmarshalExact(raw, &d) == nil {
			names[d.Name] = d.Execution.TaskSupport == "required" || d.Execution.TaskSupport == "optional"
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.names = names
}

// cloneTools returns a copy of t that later changes of t do not affect.
func (t *taskTools) cloneTools() *taskTools {
	t.mu.Lock()
	defer t.mu.Unlock()
	return &taskTools{names: t.names} // learn replaces the map and never changes it
}

func (t *taskTools) hasTool(tool string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.names[tool]
}

// offersTasks reports whether the answer to initialize says that calls can be tasks.
func offersTasks(result json.RawMessage) bool {
	var r struct {
		Capabilities struct {
			Tasks struct {
				Requests struct {
					Tools struct {
						Call *struct{} `json:"call"`
					} `json:"tools"`
				} `json:"requests"`
			} `json:"tasks"`
		} `json:"capabilities"`
	}
	return unmarshalExact(result, &r) == nil && r.Capabilities.Tasks.Requests.Tools.Call != nil
}

// serverTask is the state of an MCP task at a server, in any protocol version.
type serverTask struct {
	Type      string          `json:"resultType"`
	ID        string          `json:"taskId"`
	Status    string          `json:"status"`
	Message   string          `json:"statusMessage"`
	Poll      float64         `json:"pollInterval"`
	PollMS    float64         `json:"pollIntervalMs"`
	Result    json.RawMessage `json:"result"`
	Error     *jsonrpc.Error  `json:"error"`
	Questions json.RawMessage `json:"inputRequests"`
}

func (t *serverTask) hasEnded() bool {
	return t.Status == "completed" || t.Status == "failed" || t.Status == "cancelled"
}

// pollDelay returns how long to wait before polling the task again.
func (t *serverTask) pollDelay() time.Duration {
	ms := max(t.Poll, t.PollMS)
	if !(ms > 0) {
		return pollUsual
	}
	return max(pollLeast, time.Duration(min(ms, float64(pollMost/time.Millisecond)))*time.Millisecond)
}

// waitForPoll waits until the task may be polled again.
func (t *serverTask) waitForPoll(ctx context.Context) error {
	core.ClaimOf(ctx).Release()
	timer := time.NewTimer(t.pollDelay())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// maxTaskID bounds the length of a task's id, in bytes. It is far longer than reasonable ids.
const maxTaskID = 1024

// taskAnswered returns the MCP task that a server has started for a call, according to the answer to that call. It
// returns nil if the answer names no task.
func taskAnswered(result json.RawMessage, era protocolEra) *serverTask {
	if !bytes.Contains(result, []byte(`"taskId"`)) {
		return nil
	}
	var made struct {
		serverTask
		Task *serverTask `json:"task"`
	}
	if unmarshalExact(result, &made) != nil {
		return nil
	}
	t := made.Task
	if era.protocol >= protocolModern {
		t = &made.serverTask
		if t.Type != "task" {
			return nil
		}
	}
	if t == nil || t.ID == "" || len(t.ID) > maxTaskID {
		return nil
	}
	return t
}

// callTask calls a tool as a task of 2025-11-25, and waits for its result.
func (s *serverSession) callTask(ctx context.Context, x *pendingCall, tool string, args json.RawMessage) (json.RawMessage, error) {
	if len(args) == 0 {
		args = json.RawMessage(`{}`)
	}
	spools := x.spools
	x.spools = false
	result, err := s.askServer(ctx, x, methodCall, func(meta json.RawMessage) json.RawMessage {
		return mergeObjects(callParams(meta, tool, args), json.RawMessage(`{"task":{}}`))
	})
	if err != nil {
		return nil, err
	}
	t := taskAnswered(result, s.era)
	if t == nil {
		return result, nil // it has answered as if nobody had spoken of a task
	}
	x.spools = spools
	return s.orCancel(x, t.ID, func() (json.RawMessage, error) {
		for !t.hasEnded() && t.Status != "input_required" { // the server asks on the way of the result
			if err := t.waitForPoll(ctx); err != nil {
				return nil, err
			}
			if t, err = s.taskNow(ctx, x, t.ID); err != nil {
				return nil, err
			}
		}
		y := s.siblingCall(ctx, x)
		y.spools = x.spools
		result, err := s.link.callMethod(ctx, y, methodTaskResult, s.taskParams(x, t.ID))
		if err != nil && t.hasEnded() {
			return nil, err // what the call would have been answered with
		}
		if err != nil {
			return nil, lostTask(err)
		}
		if _, err := checkResult(result); err != nil {
			s.link.dropCall(y)
			return nil, err
		}
		x.spooled = y.spooled
		return result, nil
	})
}

// awaitTask waits for the result of a call that a server of protocol version 2026-07-28 has turned into a task.
func (s *serverSession) awaitTask(ctx context.Context, x *pendingCall, t *serverTask) (json.RawMessage, error) {
	id, answered := t.ID, map[string]bool{}
	return s.orCancel(x, id, func() (json.RawMessage, error) {
		for rounds := 0; ; {
			switch t.Status {
			case "completed":
				if _, err := checkResult(t.Result); err != nil {
					return nil, err
				}
				return t.Result, nil
			case "failed":
				if t.Error != nil {
					return nil, t.Error
				}
				fallthrough
			case "cancelled":
				return nil, core.Errorf(core.KindToolError, "upstream.call", "the server's task ended: %s: %s", t.Status, safePrefix(t.Message, 200))
			case "input_required":
				asked, err := s.answerTask(ctx, x, t, answered)
				if err != nil {
					return nil, err
				}
				if rounds += asked; rounds > maxRounds {
					return nil, core.Errorf(core.KindToolError, "upstream.call", "the server asked for input %d times without returning a result", rounds)
				}
			}
			if err := t.waitForPoll(ctx); err != nil {
				return nil, err
			}
			next, err := s.taskNow(ctx, x, id)
			if err != nil {
				return nil, err
			}
			t = next
		}
	})
}

// answerTask asks the client those open questions of a task that are not in answered, and sends the answers to the
// server. It returns 1 if it has asked any, otherwise 0.
func (s *serverSession) answerTask(ctx context.Context, x *pendingCall, t *serverTask, answered map[string]bool) (int, error) {
	var need inputRequired
	if len(t.Questions) > 0 && unmarshalExact(t.Questions, &need.Requests) != nil {
		return 0, core.Errorf(core.KindToolError, "upstream.call", "the server's task asks for input that cannot be read")
	}
	maps.DeleteFunc(need.Requests, func(key string, _ serverAsks) bool { return answered[key] })
	if len(need.Requests) == 0 {
		return 0, nil
	}
	given, err := s.provideInput(ctx, x.peer, &need)
	if err != nil {
		return 0, err
	}
	if _, err := s.link.callMethod(ctx, s.siblingCall(ctx, x), methodTaskUpdate, mergeObjects(s.taskParams(x, t.ID), given)); err != nil {
		return 0, lostTask(err)
	}
	for _, key := range slices.Collect(maps.Keys(need.Requests)) {
		answered[key] = true
	}
	return 1, nil
}

// siblingCall returns a new pendingCall, for a further request about the task that the call x has started. It is made
// for the same client as x.
func (s *serverSession) siblingCall(ctx context.Context, x *pendingCall) *pendingCall {
	return &pendingCall{ctx: ctx, peer: x.peer}
}

func (s *serverSession) taskParams(x *pendingCall, id string) json.RawMessage {
	b := []byte(`{`)
	if s.era.protocol >= protocolModern {
		b = append(append(append(b, `"_meta":`...), requestMeta(s.self, s.era.protocol, s.client.offeredTo(x.peer), "")...), ',')
	}
	return append(append(append(b, `"taskId":`...), quoteJSON(id)...), '}')
}

// taskNow requests the current state of a task.
func (s *serverSession) taskNow(ctx context.Context, x *pendingCall, id string) (*serverTask, error) {
	result, err := s.link.callMethod(ctx, s.siblingCall(ctx, x), methodTask, s.taskParams(x, id))
	if err != nil {
		return nil, lostTask(err)
	}
	t := &serverTask{}
	if err := unmarshalExact(result, t); err != nil || t.ID != id || t.Status == "" {
		return nil, unknownTask("its answer about the task is not valid")
	}
	return t, nil
}

// orCancel waits for the result of a task by calling wait. If wait fails, for example because the caller gives up,
// orCancel cancels the task at the server.
func (s *serverSession) orCancel(x *pendingCall, id string, wait func() (json.RawMessage, error)) (json.RawMessage, error) {
	result, err := wait()
	if err == nil || s.link.isDown() {
		return result, err
	}
	go func() {
		own, stop := context.WithTimeout(s.link.ctx, cancelTimeout)
		defer stop()
		_, _ = s.link.callMethod(own, s.siblingCall(own, x), methodTaskCancel, s.taskParams(x, id))
	}()
	return nil, err
}

// lostTask returns the error for a task that was started but whose state can no longer be read.
func lostTask(err error) error {
	if !isAnswer(err) {
		return err
	}
	return unknownTask(safePrefix(err.Error(), 200))
}

func unknownTask(why string) *core.Error {
	return core.Errorf(
		core.KindUpstreamGone, "upstream.call", "the server has started a task and no longer reports on it, so %w: %s",
		ErrOutcomeUnknown, why,
	)
}
