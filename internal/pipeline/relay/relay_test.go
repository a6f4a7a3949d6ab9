package relay

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"retort/internal/core"
	"retort/internal/policy"
)

// recorder implements an upstream that always returns the same bytes and records the calls.
type recorder struct {
	mu     sync.Mutex
	answer string
	err    error
	calls  []string
}

func (r *recorder) Call(_ context.Context, server, tool string, arguments json.RawMessage) (json.RawMessage, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, fmt.Sprintf("%s %s %s", server, tool, arguments))
	return json.RawMessage(r.answer), r.err
}

// drawer implements a FileStore in memory.
type drawer map[string][]byte

func (d drawer) Save(_ context.Context, suffix string, data []byte) (string, error) {
	name := fmt.Sprintf("files/%d%s", len(d), suffix)
	d[name] = data
	return name, nil
}

func (d drawer) Create(_ context.Context, suffix string) (IncomingFile, error) {
	return &slip{drawer: d, suffix: suffix}, nil
}

type slip struct {
	bytes.Buffer
	drawer drawer
	suffix string
}

func (s *slip) Commit() (string, int64, error) {
	name, err := s.drawer.Save(context.Background(), s.suffix, s.Bytes())
	return name, int64(s.Len()), err
}

func (s *slip) Abort() {}

const issueSchema = `{"type":"object","properties":{
	"owner":{"type":"string"},"repo":{"type":"string"},
	"state":{"enum":["open","closed","all"]},
	"labels":{"type":"array","items":{"type":"string"}},
	"page":{"type":"integer","minimum":1},
	"odd":{"type":"string","pattern":"^(?!x)y"}},
	"required":["owner","repo"],"additionalProperties":false}`

func toolset() *core.Toolset {
	tool := func(name, ts, schema string) *core.Tool {
		return &core.Tool{Server: "git-hub", Name: name, TypeScript: ts, Python: name, InputSchema: json.RawMessage(schema), Pin: name}
	}
	return core.NewToolset([]*core.ToolServer{{Name: "git-hub", TypeScript: "gitHub", Python: "git_hub", Tools: []*core.Tool{
		tool("list_issues", "listIssues", issueSchema),
		tool("anything", "anything", `{"type":`),
		tool("remote", "remote", `{"$ref":"http://192.0.2.1/schema.json"}`),
	}}})
}

// reports implements a Reporter with the functions in its fields.
type reports struct {
	silentReporter
	progress func(int)
	note     func(string)
}

func (r reports) ReportProgress(calls int) {
	if r.progress != nil {
		r.progress(calls)
	}
}

func (r reports) AddNote(text string) {
	if r.note != nil {
		r.note(text)
	}
}

func execution(progress func(int)) (ExecutionContext, drawer) {
	told := reports{progress: progress}
	files := drawer{}
	rules, err := policy.New(policy.Rules{})
	if err != nil {
		panic(err)
	}
	return ExecutionContext{
		ID: "x", Tools: toolset(), Policy: rules.ViewFor(""), Limits: core.DefaultLimits(), Files: files, Reporter: told,
		Functions: map[string]EngineFunction{"double": func(_ context.Context, a json.RawMessage) (any, error) { return []json.RawMessage{a, a}, nil }},
	}, files
}

func TestValues(t *testing.T) {
	png := base64.StdEncoding.EncodeToString([]byte("PNG"))
	for _, c := range []struct{ name, answer, want string }{
		{"structured content as sent", `{"content":[{"type":"text","text":"x"}],"structuredContent":{"z":9007199254740993,"a":1.0}}`, `{"z":9007199254740993,"a":1.0}`},
		{"text", `{"content":[{"type":"text","text":"plain <b>"}]}`, `"plain <b>"`},
		{"text that is JSON", `{"content":[{"type":"text","text":" {\"b\":12345678901234567890,\"a\":[]} "}]}`, `{"b":12345678901234567890,"a":[]}`},
		{"text that only begins like JSON", `{"content":[{"type":"text","text":"{not json"}]}`, `"{not json"`},
		{"empty text", `{"content":[{"type":"text","text":""}]}`, `""`},
		{"no content", `{"content":[]}`, `null`},
		{"null structured content", `{"content":[{"type":"text","text":"x"}],"structuredContent":null}`, `"x"`},
		{"several parts", `{"content":[{"type":"text","text":"a"},{"type":"text","text":"1"}]}`, `["a",1]`},
		{"image", `{"content":[{"type":"image","data":"` + png + `","mimeType":"image/png"}]}`, `{"path":"files/0.png","mimeType":"image/png","bytes":3}`},
		{"embedded text", `{"content":[{"type":"resource","resource":{"uri":"u:1","mimeType":"text/plain","text":"t"}}]}`, `{"mimeType":"text/plain","text":"t","uri":"u:1"}`},
		{"embedded blob", `{"content":[{"type":"resource","resource":{"uri":"u:1","mimeType":"application/pdf; x=y","blob":"` + png + `"}}]}`, `{"path":"files/0.pdf","mimeType":"application/pdf; x=y","bytes":3}`},
		{"link", `{"content":[{"type":"resource_link","uri":"u:2","name":"n"}]}`, `{"type":"resource_link","uri":"u:2","name":"n"}`},
		{"bad base64", `{"content":[{"type":"image","data":"%%%","mimeType":"image/png"}]}`, `error tool_error: the server sent bytes that are not base64: illegal base64 data at input byte 0`},
		{"error", `{"content":[{"type":"text","text":"not found"},{"type":"text","text":"really"}],"isError":true}`, "error tool_error: not found\nreally"},
		{"error without text", `{"content":[],"isError":true}`, `error tool_error: the tool reported an error without a message`},
		{"not a result", `[1]`, `error tool_error: the server's answer is not a tool result: it is not a JSON object`},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, _ := execution(nil)
			host, _ := New(&recorder{answer: c.answer}, nil).Open(x)
			if got := outcome(host.Call(t.Context(), core.ToolCall{Server: "git-hub", Tool: "anything"})); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func outcome(r core.CallResult, err error) string {
	if err != nil {
		e := core.AsError(err)
		text := fmt.Sprintf("error %s: %s", e.Kind, e.Message)
		if e.Hint != "" {
			text += " | " + e.Hint
		}
		return text
	}
	return string(r.Value)
}

func TestArguments(t *testing.T) {
	for _, c := range []struct{ arguments, want string }{
		{`{"owner":"o","repo":"r","state":"open"}`, `"ok"`},
		{`{"owner":"o"}`, `error invalid_arguments: missing "repo"`},
		{`{"owner":"o","rep":"r"}`, `error invalid_arguments: missing "repo" | "rep" was given, but the argument is called "repo"`},
		{`{"owner":"o","repo":"r","stat":"open"}`, `error invalid_arguments: there is no argument "stat" | did you mean "state"?`},
		{`{"owner":"o","repo":"r","state":"opne"}`, `error invalid_arguments: argument "state": expected one of "open", "closed", "all", got "opne" | did you mean "open"?`},
		{`{"owner":7,"repo":"r"}`, `error invalid_arguments: argument "owner": expected string, got number`},
		{`{"owner":"o","repo":"r","labels":["a",{"b":1}]}`, `error invalid_arguments: argument "labels[1]": expected string, got object`},
		{`{"owner":"o","repo":"r","page":0}`, `error invalid_arguments: argument "page": minimum: got 0, want 1`},
		{`{"owner":"o","repo":"r","odd":"whatever Go cannot match"}`, `"ok"`},
		{`["o","r"]`, `error invalid_arguments: the arguments must be one object, not array`},
		{`{"owner":`, `error invalid_arguments: the arguments are not JSON: unexpected EOF`},
		{``, `error invalid_arguments: missing "owner", "repo"`},
	} {
		t.Run(c.arguments, func(t *testing.T) {
			x, _ := execution(nil)
			up := &recorder{answer: `{"content":[{"type":"text","text":"ok"}]}`}
			host, _ := New(up, nil).Open(x)
			if got := outcome(host.Call(t.Context(), core.ToolCall{Server: "git-hub", Tool: "list_issues", Arguments: json.RawMessage(c.arguments)})); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if refused := strings.HasPrefix(c.want, "error"); refused != (len(up.calls) == 0) {
				t.Errorf("calls that left: %v", up.calls)
			}
		})
	}
}

// TestSchemasLoadNothing checks that a schema with a reference to another host is not loaded and does not prevent
// calls.
func TestSchemasLoadNothing(t *testing.T) {
	x, _ := execution(nil)
	host, _ := New(&recorder{answer: `{"content":[]}`}, nil).Open(x)
	if got := outcome(host.Call(t.Context(), core.ToolCall{Server: "git-hub", Tool: "remote", Arguments: json.RawMessage(`{"a":1}`)})); got != "null" {
		t.Error(got)
	}
}

func TestNames(t *testing.T) {
	const args = `{"owner":"o","repo":"r"}`
	for _, c := range []struct {
		call core.ToolCall
		want string
		left string // what left for the upstream
	}{
		{core.ToolCall{Server: "git-hub", Tool: "list_issues", Arguments: json.RawMessage(args)}, `"ok"`, "git-hub list_issues " + args},
		{core.ToolCall{Server: "gitHub", Tool: "listIssues", Arguments: json.RawMessage(args)}, `"ok"`, "git-hub list_issues " + args},
		{core.ToolCall{Tool: "call", Arguments: json.RawMessage(`{"name":"git-hub__list_issues","arguments":` + args + `}`)}, `"ok"`, "git-hub list_issues " + args},
		{core.ToolCall{Tool: "call", Arguments: json.RawMessage(`{"name":"gitHub.anything"}`)}, `"ok"`, "git-hub anything {}"},
		{core.ToolCall{Tool: "call", Arguments: json.RawMessage(`{"name":"gitHub.listIssue"}`)}, `error tool_not_found: there is no tool "gitHub.listIssue" | did you mean gitHub.listIssues?`, ""},
		{core.ToolCall{Server: "nowhere", Tool: "x"}, `error tool_not_found: there is no tool "nowhere.x" | use search_tools to find tools`, ""},
		{core.ToolCall{Tool: "double", Arguments: json.RawMessage(`1`)}, `[1,1]`, ""},
		{core.ToolCall{Tool: "state_get"}, `error runtime: state_get is not available in this version of Retort | programs can use: double`, ""},
	} {
		x, _ := execution(nil)
		up := &recorder{answer: `{"content":[{"type":"text","text":"ok"}]}`}
		host, _ := New(up, nil).Open(x)
		if got := outcome(host.Call(t.Context(), c.call)); got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.call, got, c.want)
		}
		if got := strings.Join(up.calls, "; "); got != c.left {
			t.Errorf("%+v: left for the upstream: %q, want %q", c.call, got, c.left)
		}
	}
}

func TestBudgetAndTally(t *testing.T) {
	var told []int
	x, _ := execution(func(n int) { told = append(told, n) })
	x.Limits.ToolCalls = 2
	up := &recorder{answer: `{"content":[]}`}
	host, tally := New(up, nil).Open(x)
	for range 3 {
		_, err := host.Call(t.Context(), core.ToolCall{Server: "git-hub", Tool: "anything"})
		if e := core.AsError(err); e != nil && e.Kind != core.KindLimit {
			t.Fatal(err)
		}
	}
	if total, by := tally.CallCounts(); total != 2 || by["gitHub.anything"] != 2 || len(up.calls) != 2 {
		t.Errorf("total %d, by tool %v, left %v", total, by, up.calls)
	}
	if fmt.Sprint(told) != "[1 2]" {
		t.Errorf("progress: %v", told)
	}
}

func TestErrorsNameTheTool(t *testing.T) {
	x, _ := execution(nil)
	host, _ := New(&recorder{err: core.Errorf(core.KindUpstreamGone, "test", "it died")}, nil).Open(x)
	_, err := host.Call(t.Context(), core.ToolCall{Server: "git-hub", Tool: "anything"})
	if e := core.AsError(err); e.Server != "git-hub" || e.Tool != "anything" || e.Kind != core.KindUpstreamGone {
		t.Errorf("%+v", e)
	}
}

func FuzzValue(f *testing.F) {
	f.Add(`{"content":[{"type":"text","text":"x"}],"structuredContent":{"a":1}}`)
	f.Add(`{"content":[{"type":"resource","resource":{"blob":"AA=="}}],"isError":true}`)
	f.Fuzz(func(t *testing.T, answer string) {
		x, _ := execution(nil)
		v, err := toValue(t.Context(), json.RawMessage(answer), x)
		if err == nil && !json.Valid(v) {
			t.Errorf("%q became %q, which is not JSON", answer, v)
		}
	})
}

func BenchmarkCall(b *testing.B) {
	x, _ := execution(nil)
	x.Limits.ToolCalls = 1 << 60
	host, _ := New(&recorder{answer: `{"content":[{"type":"text","text":"{\"a\":1}"}]}`}, nil).Open(x)
	for b.Loop() {
		_, _ = host.Call(b.Context(), core.ToolCall{Server: "git-hub", Tool: "list_issues", Arguments: json.RawMessage(`{"owner":"o","repo":"r","state":"open"}`)})
	}
}

// TestArgumentsMustBeUTF8 checks that arguments with invalid UTF-8 are refused, even for a tool without a usable
// schema.
func TestArgumentsMustBeUTF8(t *testing.T) {
	up := &recorder{answer: `{"content":[]}`}
	x, _ := execution(nil)
	host, _ := New(up, nil).Open(x)
	for _, c := range []core.ToolCall{
		{Server: "git-hub", Tool: "anything", Arguments: json.RawMessage("{\"a\":\"\xff\"}")},
		{Tool: "call", Arguments: json.RawMessage("{\"name\":\"git-hub.anything\",\"arguments\":{\"a\":\"\xff\"}}")},
	} {
		if _, err := host.Call(t.Context(), c); core.AsError(err) == nil || core.AsError(err).Kind != core.KindInvalidArguments {
			t.Errorf("%s: %v", c.Arguments, err)
		}
	}
	if len(up.calls) != 0 {
		t.Errorf("calls have left: %q", up.calls)
	}
	if _, err := host.Call(t.Context(), core.ToolCall{Server: "git-hub", Tool: "anything", Arguments: json.RawMessage(`{"a":"grün"}`)}); err != nil || len(up.calls) != 1 {
		t.Errorf("valid UTF-8: %v", err)
	}
}

// TestErrorsNameKnownTools checks that errors of calls name only servers and tools of the catalogue. A program could
// put any other text in the place of these names.
func TestErrorsNameKnownTools(t *testing.T) {
	for _, c := range []struct {
		call         core.ToolCall
		server, tool string
	}{
		{core.ToolCall{Server: "Hanne", Tool: "Zandstra"}, "", ""},
		{core.ToolCall{Server: "git-hub", Tool: "Zandstra"}, "git-hub", ""},
		{core.ToolCall{Server: "Hanne", Tool: "Zandstra", Arguments: json.RawMessage("\"\xff\"")}, "", ""},
		{core.ToolCall{Server: "gitHub", Tool: "Zandstra", Arguments: json.RawMessage("\"\xff\"")}, "git-hub", ""},
		{core.ToolCall{Server: "gitHub", Tool: "listIssues", Arguments: json.RawMessage("\"\xff\"")}, "git-hub", "list_issues"},
		{core.ToolCall{Server: "git-hub", Tool: "list_issues"}, "git-hub", "list_issues"},
		{core.ToolCall{Tool: "call", Arguments: json.RawMessage(`{"name":"Hanne.Zandstra"}`)}, "", ""},
		{core.ToolCall{Tool: "Zandstra"}, "", ""},
	} {
		x, _ := execution(nil)
		host, _ := New(&recorder{answer: `{"content":[]}`}, nil).Open(x)
		_, err := host.Call(t.Context(), c.call)
		if e := core.AsError(err); e == nil || e.Server != c.server || e.Tool != c.tool {
			t.Errorf("%s.%s: %#v", c.call.Server, c.call.Tool, e)
		}
	}
}
