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

// Methods of tasks. In 2025-11-25 who calls says that a call is one, since 2026-07-28 who
// answers. Whoever calls a tool here sees nothing of either: it is awaited.
const (
	methodTask       = "tasks/get"
	methodTaskResult = "tasks/result"
	methodTaskUpdate = "tasks/update"
	methodTaskCancel = "tasks/cancel"

	tasksExtension = "io.modelcontextprotocol/tasks"
)

// How often a server is asked for a task, where it says nothing or what makes no sense.
const (
	pollLeast = 50 * time.Millisecond
	pollUsual = 500 * time.Millisecond
	pollMost  = 5 * time.Second
)

// taskTools holds the tools of a server that can be called as tasks. It is safe for concurrent use.
type taskTools struct {
	mu    sync.Mutex
	names map[string]bool
}

// learn takes in what a server lists.
func (t *taskTools) learn(tools []json.RawMessage) {
	names := map[string]bool{}
	for _, raw := range tools {
		var d struct {
			Name      string `json:"name"`
			Execution struct {
				TaskSupport string `json:"taskSupport"`
			} `json:"execution"`
		}
		if bytes.Contains(raw, []byte(`"taskSupport"`)) && unmarshal(raw, &d) == nil {
			names[d.Name] = d.Execution.TaskSupport == "required" || d.Execution.TaskSupport == "optional"
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.names = names
}

// clone returns a copy that learns apart from t.
func (t *taskTools) clone() *taskTools {
	t.mu.Lock()
	defer t.mu.Unlock()
	return &taskTools{names: t.names} // learn replaces the map and never changes it
}

func (t *taskTools) has(tool string) bool {
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
	return unmarshal(result, &r) == nil && r.Capabilities.Tasks.Requests.Tools.Call != nil
}

// task represents one of a server, of either era.
type task struct {
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

func (t *task) ended() bool {
	return t.Status == "completed" || t.Status == "failed" || t.Status == "cancelled"
}

// pause returns how long to wait before the server is asked again.
func (t *task) pause() time.Duration {
	ms := max(t.Poll, t.PollMS)
	if !(ms > 0) {
		return pollUsual
	}
	return max(pollLeast, time.Duration(min(ms, float64(pollMost/time.Millisecond)))*time.Millisecond)
}

// wait waits until the server may be asked again.
func (t *task) wait(ctx context.Context) error {
	core.ClaimOf(ctx).Release()
	timer := time.NewTimer(t.pause())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// maxTaskID exceeds any sensible id.
const maxTaskID = 1024

// taskAnswered returns the task in the answer to a call; nil if it has none.
func taskAnswered(result json.RawMessage, era era) *task {
	if !bytes.Contains(result, []byte(`"taskId"`)) {
		return nil
	}
	var made struct {
		task
		Task *task `json:"task"`
	}
	if unmarshal(result, &made) != nil {
		return nil
	}
	t := made.Task
	if era.protocol >= protocolModern {
		t = &made.task
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
func (s *session) callTask(ctx context.Context, x *exchange, tool string, args json.RawMessage) (json.RawMessage, error) {
	if len(args) == 0 {
		args = json.RawMessage(`{}`)
	}
	spools := x.spools
	x.spools = false
	result, err := s.ask(ctx, x, methodCall, func(meta json.RawMessage) json.RawMessage {
		return with(callParams(meta, tool, args), json.RawMessage(`{"task":{}}`))
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
		for !t.ended() && t.Status != "input_required" { // the server asks on the way of the result
			if err := t.wait(ctx); err != nil {
				return nil, err
			}
			if t, err = s.taskNow(ctx, x, t.ID); err != nil {
				return nil, err
			}
		}
		y := s.beside(ctx, x)
		y.spools = x.spools
		result, err := s.link.call(ctx, y, methodTaskResult, s.taskParams(x, t.ID))
		if err != nil && t.ended() {
			return nil, err // what the call would have been answered with
		}
		if err != nil {
			return nil, lostTask(err)
		}
		if _, err := checkResult(result); err != nil {
			s.link.drop(y)
			return nil, err
		}
		x.spooled = y.spooled
		return result, nil
	})
}

// awaitTask waits for the result of a task that a server of 2026-07-28 has made of a call.
func (s *session) awaitTask(ctx context.Context, x *exchange, t *task) (json.RawMessage, error) {
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
				return nil, core.Errorf(core.KindToolError, "upstream.call", "the server's task ended: %s: %s", t.Status, beginning(t.Message, 200))
			case "input_required":
				asked, err := s.answerTask(ctx, x, t, answered)
				if err != nil {
					return nil, err
				}
				if rounds += asked; rounds > maxRounds {
					return nil, core.Errorf(core.KindToolError, "upstream.call", "the server asked for input %d times and has not answered", rounds)
				}
			}
			if err := t.wait(ctx); err != nil {
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

// answerTask has the client answer the open questions of a task, and returns 1 if there were any.
func (s *session) answerTask(ctx context.Context, x *exchange, t *task, answered map[string]bool) (int, error) {
	var need needed
	if len(t.Questions) > 0 && unmarshal(t.Questions, &need.Requests) != nil {
		return 0, core.Errorf(core.KindToolError, "upstream.call", "the server's task asks for what can't be read")
	}
	maps.DeleteFunc(need.Requests, func(key string, _ serverAsks) bool { return answered[key] })
	if len(need.Requests) == 0 {
		return 0, nil
	}
	given, err := s.input(ctx, x.peer, &need)
	if err != nil {
		return 0, err
	}
	if _, err := s.link.call(ctx, s.beside(ctx, x), methodTaskUpdate, with(s.taskParams(x, t.ID), given)); err != nil {
		return 0, lostTask(err)
	}
	for _, key := range slices.Collect(maps.Keys(need.Requests)) {
		answered[key] = true
	}
	return 1, nil
}

// beside returns another exchange for the same client.
func (s *session) beside(ctx context.Context, x *exchange) *exchange {
	return &exchange{ctx: ctx, peer: x.peer}
}

func (s *session) taskParams(x *exchange, id string) json.RawMessage {
	b := []byte(`{`)
	if s.era.protocol >= protocolModern {
		b = append(append(append(b, `"_meta":`...), requestMeta(s.self, s.era.protocol, s.client.offered(x.peer), "")...), ',')
	}
	return append(append(append(b, `"taskId":`...), quoted(id)...), '}')
}

// taskNow returns the current state of a task.
func (s *session) taskNow(ctx context.Context, x *exchange, id string) (*task, error) {
	result, err := s.link.call(ctx, s.beside(ctx, x), methodTask, s.taskParams(x, id))
	if err != nil {
		return nil, lostTask(err)
	}
	t := &task{}
	if err := unmarshal(result, t); err != nil || t.ID != id || t.Status == "" {
		return nil, unknownTask("its answer about the task is none")
	}
	return t, nil
}

// orCancel waits for a task, and cancels it at the server when the caller gives up.
func (s *session) orCancel(x *exchange, id string, wait func() (json.RawMessage, error)) (json.RawMessage, error) {
	result, err := wait()
	if err == nil || s.link.isDown() {
		return result, err
	}
	go func() {
		own, stop := context.WithTimeout(s.link.ctx, cancelTimeout)
		defer stop()
		_, _ = s.link.call(own, s.beside(own, x), methodTaskCancel, s.taskParams(x, id))
	}()
	return nil, err
}

// lostTask returns the error for a task that began and can no longer be followed.
func lostTask(err error) error {
	if !isAnswer(err) {
		return err
	}
	return unknownTask(beginning(err.Error(), 200))
}

func unknownTask(why string) *core.Error {
	return core.Errorf(core.KindUpstreamGone, "upstream.call", "the server has begun a task and says no more of it, so %w: %s", ErrOutcomeUnknown, why)
}
