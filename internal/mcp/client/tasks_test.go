//go:build unix

package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
)

// taskServer is a server whose function answers returns the answer for each method. It records the requested methods
// in asked.
type taskServer struct {
	modern bool
	// answers returns the answer to a request: a result, or an error as {"code":…}.
	answers func(method string, params json.RawMessage) string

	mu    sync.Mutex
	asked []string
}

func (s *taskServer) dial(context.Context) (io.ReadWriteCloser, error) {
	ours, theirs := net.Pipe()
	go s.serve(theirs)
	return ours, nil
}

func (s *taskServer) serve(conn net.Conn) {
	defer conn.Close()
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		s.mu.Lock()
		s.asked = append(s.asked, m.Method)
		s.mu.Unlock()
		answer := s.answers(m.Method, m.Params)
		switch {
		case answer != "":
		case m.Method == methodDiscover && s.modern:
			answer = `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete"}`
		case m.Method == methodDiscover:
			answer = `{"code":-32601,"message":"no"}`
		case m.Method == methodInitialize:
			answer = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"s","version":"1"}}`
		case m.Method == methodList:
			answer = `{"tools":[{"name":"t","execution":{"taskSupport":"optional"},"inputSchema":{"type":"object"}}]}`
		default:
			answer = `{"resultType":"complete"}`
		}
		member := "result"
		if strings.HasPrefix(answer, `{"code"`) {
			member = "error"
		}
		fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":%s,%q:%s}`+"\n", m.ID, member, answer)
	}
}

func (s *taskServer) count(method string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.asked {
		if m == method {
			n++
		}
	}
	return n
}

const made, madeModern = `{"task":{"taskId":"a","status":"working","pollInterval":1}}`, `{"resultType":"task","taskId":"a","status":"working","pollIntervalMs":1}`

func taskPool(t *testing.T, s *taskServer) *Pool {
	t.Helper()
	p := newPool(t, Options{ClientVersion: "test"}, ServerSpec{Name: "s", Dial: s.dial, Client: ClientFeatures{Elicit: true}})
	if _, err := p.List(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestTaskIsCancelled checks in both forms of tasks that a task is cancelled at the server when its caller stops
// waiting.
func TestTaskIsCancelled(t *testing.T) {
	for era, first := range map[string]string{"legacy": made, "modern": madeModern} {
		t.Run(era, func(t *testing.T) {
			s := &taskServer{modern: era == "modern"}
			s.answers = func(method string, _ json.RawMessage) string {
				switch method {
				case methodCall:
					return first
				case methodTask:
					return `{"resultType":"complete","taskId":"a","status":"working","pollIntervalMs":1,"pollInterval":1}`
				}
				return ""
			}
			p := taskPool(t, s)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { _, err := p.Call(ctx, "s", "t", nil); done <- err }()
			testenv.WaitUntil(t, "the task is polled", func() bool { return s.count(methodTask) > 2 })
			cancel()
			wantError(t, <-done, core.KindInternal, "cancelled")
			testenv.WaitUntil(t, "the task is cancelled", func() bool { return s.count(methodTaskCancel) == 1 })
			if s.count(methodCall) != 1 {
				t.Errorf("%v", s.asked)
			}
		})
	}
}

// TestTaskIsLost checks that a call whose task can no longer be read fails with ErrOutcomeUnknown and is not
// repeated.
func TestTaskIsLost(t *testing.T) {
	for era, first := range map[string]string{"legacy": made, "modern": madeModern} {
		for what, answer := range map[string]string{"unknown": `{"code":-32602,"message":"Task not found"}`, "other": `{"taskId":"b","status":"completed"}`, "none": `{"resultType":"complete"}`} {
			t.Run(era+" "+what, func(t *testing.T) {
				s := &taskServer{modern: era == "modern"}
				s.answers = func(method string, _ json.RawMessage) string {
					return map[string]string{methodCall: first, methodTask: answer}[method]
				}
				_, err := taskPool(t, s).Call(t.Context(), "s", "t", nil)
				if !errors.Is(err, ErrOutcomeUnknown) || s.count(methodCall) != 1 {
					t.Errorf("%v, %v", err, s.asked)
				}
			})
		}
	}
}

// TestTaskFails checks that a failed task, or one with an invalid result, fails the call with the same error that a
// direct answer would cause.
func TestTaskFails(t *testing.T) {
	legacy := &taskServer{}
	legacy.answers = func(method string, _ json.RawMessage) string {
		return map[string]string{methodCall: made, methodTask: `{"taskId":"a","status":"failed"}`, methodTaskResult: `{"code":-32099,"message":"the disk is full"}`}[method]
	}
	modern := &taskServer{modern: true}
	modern.answers = func(method string, _ json.RawMessage) string {
		return map[string]string{methodCall: madeModern, methodTask: `{"resultType":"complete","taskId":"a","status":"failed","error":{"code":-32099,"message":"the disk is full"}}`}[method]
	}
	bad := &taskServer{modern: true}
	bad.answers = func(method string, _ json.RawMessage) string {
		return map[string]string{methodCall: madeModern, methodTask: `{"resultType":"complete","taskId":"a","status":"completed","result":[1]}`}[method]
	}
	for want, s := range map[string]*taskServer{"the disk is full": legacy, "full": modern, "not a tool result": bad} {
		t.Run(want, func(t *testing.T) {
			_, err := taskPool(t, s).Call(t.Context(), "s", "t", nil)
			wantError(t, err, core.KindToolError, want)
		})
	}
}

// TestTaskAsks checks that the client answers a question of a task once, although the server repeats it until it has
// the answer.
func TestTaskAsks(t *testing.T) {
	s := &taskServer{modern: true}
	updates := make(chan string, 8)
	told := false
	s.answers = func(method string, params json.RawMessage) string {
		switch method {
		case methodCall:
			return madeModern
		case methodTask:
			if told && s.count(methodTask) > 4 {
				return `{"resultType":"complete","taskId":"a","status":"completed","result":{"content":[]}}`
			}
			return `{"resultType":"complete","taskId":"a","status":"input_required","pollIntervalMs":1,"inputRequests":{"q":{"method":"elicitation/create","params":{"message":"m"}}}}`
		case methodTaskUpdate:
			told = true
			updates <- string(params)
		}
		return ""
	}
	p := taskPool(t, s)
	asked := 0
	ctx := core.WithPeer(t.Context(), &core.ClientPeer{ID: "c", Forms: true, Ask: func(context.Context, core.ServerRequest) (json.RawMessage, *core.Error) {
		asked++
		return json.RawMessage(`{"action":"accept","content":{"x":1}}`), nil
	}})
	if _, err := p.Call(ctx, "s", "t", nil); err != nil || asked != 1 || len(updates) != 1 {
		t.Fatalf("%v, asked %d times, %d updates", err, asked, len(updates))
	}
	if got := <-updates; !strings.Contains(got, `"inputResponses":{"q":{"action":"accept","content":{"x":1}}}`) {
		t.Error(got)
	}
}

// TestNoTasksOffered checks that a call mentions no task if the server does not support tasks, and that its result is
// not mistaken for a task.
func TestNoTasksOffered(t *testing.T) {
	s := &taskServer{}
	s.answers = func(method string, params json.RawMessage) string {
		switch method {
		case methodInitialize:
			return `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
		case methodCall:
			if strings.Contains(string(params), "task") {
				t.Errorf("called as a task: %s", params)
			}
			return `{"content":[],"taskId":"x","task":{"taskId":"a"}}`
		}
		return ""
	}
	if r, err := taskPool(t, s).Call(t.Context(), "s", "t", nil); err != nil || !strings.Contains(string(r), `"taskId":"x"`) {
		t.Errorf("%s, %v", r, err)
	}
}
