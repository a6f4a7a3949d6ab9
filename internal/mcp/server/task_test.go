package server_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
	"retort/internal/devel/demo"
	"retort/internal/devel/testenv"
	"retort/internal/engine"
)

//lint:file-ignore SA1019 sampling is how a client lends its model; only 2026-07-28 gives it up

// samplingClient is a client that offers its model to the server (MCP sampling). The model answers the first request
// with the first of programs, the second request with the second, and so on.
type samplingClient struct {
	programs []string
	decision string // answer of the client's person to a form; "" declines

	mu      sync.Mutex
	sampled []string
	asked   []string
	told    []string
}

func (l *samplingClient) options() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		CreateMessageHandler: func(_ context.Context, req *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.sampled = append(l.sampled, show(req.Params.Messages)+req.Params.SystemPrompt)
			text := "```\n" + l.programs[min(len(l.sampled), len(l.programs))-1] + "\n```"
			return &mcp.CreateMessageResult{Role: "assistant", Model: "lent", Content: &mcp.TextContent{Text: text}}, nil
		},
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.asked = append(l.asked, req.Params.Message)
			if l.decision == "" {
				return &mcp.ElicitResult{Action: "decline"}, nil
			}
			return accept(l.decision), nil
		},
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.told = append(l.told, req.Params.Message)
		},
	}
}

// TestTaskBySampling checks that agent tasks use the model of a client with sampling and need no other model. A
// program that failed after an effect is tried again only if the person approves. By default each case runs in only
// one protocol version, because its outcome does not depend on the version.
func TestTaskBySampling(t *testing.T) {
	t.Parallel()
	const make1 = "await crm.createRecord({ objectType: 'Lead', data: { LastName: 'A', Company: 'C' } });"
	for name, c := range map[string]struct {
		samplingClient *samplingClient
		status         core.OutcomeStatus
		attempts       int
		effects        int
		asked          int
		era            string // protocol version to test; all versions if testenv.Full is set
	}{
		"right at first":           {&samplingClient{programs: []string{make1 + "return 1"}}, core.StatusOK, 1, 1, 0, eras[1]},
		"wrong name, then a type":  {&samplingClient{programs: []string{"return crm.creat()", "return crm.createRecord({})", make1 + "return 1"}}, core.StatusOK, 3, 1, 0, eras[0]},
		"fails after an effect":    {&samplingClient{programs: []string{make1 + "throw 1", "return 2"}}, core.StatusOK, 2, 1, 0, eras[1]},
		"again, and they decline":  {&samplingClient{programs: []string{make1 + "throw new Error('x')", make1 + "return 2"}}, core.StatusDenied, 2, 1, 1, eras[0]},
		"again, and they want it":  {&samplingClient{programs: []string{make1 + "throw new Error('x')", make1 + "return 2"}, decision: "once"}, core.StatusOK, 2, 2, 1, eras[1]},
		"again, mended after that": {&samplingClient{programs: []string{make1 + "throw new Error('x')", make1 + "throw new Error('y')", "return 3"}, decision: "once"}, core.StatusOK, 3, 2, 1, eras[0]},
		"never a program":          {&samplingClient{programs: []string{"no no no"}}, core.StatusRejected, 3, 0, 0, eras[1]},
	} {
		for _, era := range eras {
			if era != c.era && !testenv.Full() {
				continue
			}
			t.Run(name+" "+era, func(t *testing.T) {
				crm, err := demo.Open("crm")
				if err != nil {
					t.Fatal(err)
				}
				l := &samplingClient{programs: c.samplingClient.programs, decision: c.samplingClient.decision}
				s := connectEngine(t, "", era, l.options(), engine.Server{Name: "crm", Dial: crm.Dial})
				params := &mcp.CallToolParams{Name: "execute_task", Arguments: map[string]any{"task": "create a lead record for C, ask ada@example.org"}}
				params.SetProgressToken("p")
				r, err := s.CallTool(t.Context(), params)
				o := outcomeOf(t, r, err)
				if o.Status != c.status || o.Attempts != c.attempts || len(crm.RecordedEffects()) != c.effects {
					t.Errorf("%s %+v after %d attempts, %d effects", o.Status, o.Error, o.Attempts, len(crm.RecordedEffects()))
				}
				l.mu.Lock()
				defer l.mu.Unlock()
				if len(l.asked) != c.asked || len(l.sampled) != c.attempts {
					t.Errorf("asked %q, sampled %d times", l.asked, len(l.sampled))
				}
				if c.asked > 0 && !strings.Contains(l.asked[0], "an earlier attempt at the same task already called it") {
					t.Errorf("the person was shown %s", l.asked[0])
				}
				if all := strings.Join(l.sampled, ""); strings.Contains(all, "ada@") || !strings.Contains(all, "[EMAIL_1]") {
					t.Errorf("the model was told %s", all)
				}
				if m := o.Stats.Model; m != nil {
					t.Errorf("the client is told about its own model: %+v", m)
				}
				if len(l.told) == 0 {
					t.Error("nothing was told meanwhile")
				}
			})
		}
	}
}

// TestTaskWithoutSampling checks that a client without sampling gets the tools and a skeleton of the program, so that
// its own model can write the program. This result is not marked as an error.
func TestTaskWithoutSampling(t *testing.T) {
	t.Parallel()
	for _, era := range eras {
		s := connectEngine(t, "", era, nil, engine.Server{Name: "crm", Dial: demo.DialFunc("crm")})
		r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_task", Arguments: map[string]any{"task": "create a lead", "inputs": map[string]any{"n": json.Number("9007199254740993")}}})
		o := outcomeOf(t, r, err)
		if r.IsError || o.TaskContext == nil || len(o.Tools) == 0 || o.Error.Message != "no model configured" || !strings.Contains(o.Skeleton, "9007199254740993") {
			t.Errorf("%s: %+v %s", era, r.IsError, show(o))
		}
	}
}

// TestTaskObject checks that execute_task accepts a task object with description, requiredTools and status, and
// refuses one that gives an argument twice or whose status is not "pending".
func TestTaskObject(t *testing.T) {
	t.Parallel()
	s := connectEngine(t, "", eras[0], nil, engine.Server{Name: "crm", Dial: demo.DialFunc("crm")})
	call := func(more map[string]any) *mcp.CallToolResult {
		object := map[string]any{"id": "my-task", "description": "count leads", "code": "return typeof crm.searchRecords", "requiredTools": []string{"crm"}, "status": "pending"}
		for name, value := range more {
			object[name] = value
		}
		r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_task", Arguments: object})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if o := outcomeOf(t, call(nil), nil); o.Status != core.StatusOK || o.Task != "my-task" || string(o.Result) != `"function"` {
		t.Errorf("%s %+v %s", o.Status, o.Error, o.Result)
	}
	if o := outcomeOf(t, call(map[string]any{"requiredTools": []string{"nothing"}}), nil); o.Error == nil || !strings.Contains(o.Error.Message, `"nothing"`) {
		t.Errorf("the list of tools did not count: %+v", o.Error)
	}
	for name, value := range map[string]any{"task": "x", "required_tools": []string{"crm"}, "status": "completed"} {
		if r := call(map[string]any{name: value}); !r.IsError || !strings.Contains(show(r), "invalid_arguments") {
			t.Errorf("%s: %s", name, show(r))
		}
	}
}
