package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/devel/testenv"
	"retort/internal/engine"
)

//lint:file-ignore SA1019 roots, sampling and logging are passed on between those who have them; only 2026-07-28 gives them up

// upstream returns an engine.Server for an SDK server that runs in this process and is connected by pipes.
func upstream(name string, s *mcp.Server) engine.Server {
	return engine.Server{Name: name, Dial: func(context.Context) (io.ReadWriteCloser, error) {
		toServer, fromClient := io.Pipe()
		toClient, fromServer := io.Pipe()
		go func() { _ = s.Run(context.Background(), &mcp.IOTransport{Reader: toServer, Writer: fromServer}) }()
		return stream{toClient, fromClient}, nil
	}}
}

// serverOverHTTP returns an engine.Server for an SDK server that is reached over Streamable HTTP.
func serverOverHTTP(t *testing.T, name string, s *mcp.Server, stateless bool) engine.Server {
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: stateless})
	listener := httptest.NewServer(handler)
	t.Cleanup(listener.Close)
	return engine.Server{Name: name, URL: listener.URL}
}

type stream struct {
	io.ReadCloser
	io.WriteCloser
}

func (s stream) Close() error {
	_ = s.ReadCloser.Close()
	return s.WriteCloser.Close()
}

// connectEngine opens an engine with servers and connects an SDK client to it with a protocol version.
func connectEngine(t *testing.T, settings, protocol string, o *mcp.ClientOptions, servers ...engine.Server) *mcp.ClientSession {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Limits: unreachedLimits, Home: t.TempDir(), Keys: t.TempDir(), Settings: settings, Servers: servers})
	if err != nil {
		t.Fatal(err)
	}
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	done := make(chan struct{})
	go func() { defer close(done); _ = e.Serve(context.Background(), toServer, fromServer, false) }()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: toClient, Writer: fromClient}, &mcp.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close(); <-done; _ = e.Close() })
	return session
}

var eras = []string{"2025-11-25", "2026-07-28"}

// fullServer returns a server with tools, resources, a resource template, a prompt and completions.
func fullServer(protocols ...string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "everything", Version: "1"}, &mcp.ServerOptions{
		SupportedProtocolVersions: protocols,
		SubscribeHandler:          func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler:        func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		Capabilities:              &mcp.ServerCapabilities{Logging: &mcp.LoggingCapabilities{}},
		CompletionHandler: func(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{req.Params.Argument.Value + "ris"}}}, nil
		},
	})
	add := func(name string, h mcp.ToolHandler) {
		s.AddTool(&mcp.Tool{Name: name, Description: "Get " + name, InputSchema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"}}}`),
			Icons: []mcp.Icon{{Source: "https://example.com/i.png"}}, Meta: mcp.Meta{"example.com/k": "v"}}, h)
	}
	add("get_parts", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{
			Content: []mcp.Content{
				&mcp.TextContent{Text: "write to ada@example.com"}, &mcp.ImageContent{Data: []byte("\x89PNG\xff\xfe"), MIMEType: "image/png"},
				&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "x:y", Text: "embedded"}}, &mcp.ResourceLink{URI: "a:b", Name: "link"},
			},
			StructuredContent: json.RawMessage(`{"z":9007199254740993,"a":1}`), Meta: mcp.Meta{"example.com/m": "kept"},
		}, nil
	})
	add("get_error", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "went wrong"}}}, nil
	})
	add("search_tools", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "theirs"}}}, nil
	})
	add("delete_all", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "gone"}}}, nil
	})
	read := func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		c := &mcp.ResourceContents{URI: req.Params.URI, MIMEType: "text/plain", Text: "the text of " + req.Params.URI}
		if strings.HasSuffix(req.Params.URI, ".png") {
			c = &mcp.ResourceContents{URI: req.Params.URI, MIMEType: "image/png", Blob: []byte("\x89PNG\xff")}
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{c}}, nil
	}
	s.AddResource(&mcp.Resource{URI: "test://a.txt", Name: "a"}, read)
	s.AddResource(&mcp.Resource{URI: "test://b.png", Name: "b"}, read)
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "test://t/{id}", Name: "t"}, read)
	s.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "who", Required: true}}}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "Hello " + req.Params.Arguments["who"]}}}}, nil
	})
	return s
}

func show(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

const exposedServers = "servers: {up: {expose: direct}}"

func TestExposedToolsAreAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, era := range eras {
		for _, theirs := range [][]string{nil, eras[:1]} {
			t.Run(fmt.Sprint(era, theirs), func(t *testing.T) {
				s := connectEngine(t, exposedServers, era, nil, upstream("up", fullServer(theirs...)))
				tools, err := s.ListTools(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				found := map[string]*mcp.Tool{}
				for _, tool := range tools.Tools {
					found[tool.Name] = tool
				}
				parts := found["get_parts"]
				if parts == nil || found["up__search_tools"] == nil || found["read_resource"] != nil || len(found) != 16+4 {
					t.Fatalf("%d tools: %s", len(found), show(tools.Tools))
				}
				if len(parts.Icons) != 1 || parts.Meta["example.com/k"] != "v" {
					t.Errorf("icons and _meta: %s", show(parts))
				}
				got := callOf(t, s, "get_parts", nil)
				for _, want := range []string{`"text":"write to [EMAIL_1]"`, `"data":"iVBORw==`, `"uri":"x:y"`, `"resource_link"`, `"example.com/m":"kept"`} {
					if want == `"data":"iVBORw==` {
						want = `"data":"iVBOR//+"`
					}
					if !strings.Contains(got, want) {
						t.Errorf("no %s in %s", want, got)
					}
				}
				if got := callOf(t, s, "get_error", nil); !strings.Contains(got, `"isError":true`) || !strings.Contains(got, "went wrong") {
					t.Error(got)
				}
				if got := callOf(t, s, "up__search_tools", nil); !strings.Contains(got, "theirs") {
					t.Error(got)
				}
				if got := callOf(t, s, "search_tools", map[string]any{"query": "parts"}); !strings.Contains(got, "up.getParts") {
					t.Error(got)
				}
			})
		}
	}
}

func callOf(t *testing.T, s *mcp.ClientSession, name string, arguments any) string {
	t.Helper()
	result, err := s.CallTool(testenv.Context(t), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return show(result)
}

// callForText calls a tool and returns the result as text. If the call fails with a protocol error, it returns the
// error's text and the test continues.
func callForText(t *testing.T, s *mcp.ClientSession, name string) string {
	t.Helper()
	result, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name})
	if err != nil {
		return err.Error()
	}
	return show(result)
}

func TestExposedResourcesAndPrompts(t *testing.T) {
	t.Parallel()
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			s := connectEngine(t, exposedServers, era, nil, upstream("up", fullServer()))
			var got []string
			note := func(v any, err error) {
				if err != nil {
					t.Error(err)
				}
				got = append(got, show(v))
			}
			resources, err := s.ListResources(t.Context(), nil)
			note(resources.Resources, err)
			templates, err := s.ListResourceTemplates(t.Context(), nil)
			note(templates.ResourceTemplates, err)
			text, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://a.txt"})
			note(text.Contents, err)
			blob, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://b.png"})
			note(blob.Contents, err)
			made, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://t/7"})
			note(made.Contents, err)
			prompts, err := s.ListPrompts(t.Context(), nil)
			note(prompts.Prompts, err)
			prompt, err := s.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "greet", Arguments: map[string]string{"who": "World"}})
			note(prompt.Messages, err)
			completed, err := s.Complete(t.Context(), &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "greet"}, Argument: mcp.CompleteParamsArgument{Name: "who", Value: "pa"}})
			note(completed.Completion.Values, err)
			want := []string{`"test://a.txt"`, `"test://t/{id}"`, "the text of test://a.txt", `"blob":"iVBOR/8="`, "the text of test://t/7", `"greet"`, "Hello World", `["paris"]`}
			for i, w := range want {
				if !strings.Contains(got[i], w) {
					t.Errorf("no %s in %s", w, got[i])
				}
			}
			if _, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://none"}); err == nil {
				t.Error("read what is not there")
			}
		})
	}
}

// withApprovalChannel returns a server that needs a channel to the client, because its tools ask the client a
// question during a call. In protocol versions with a handshake, they send the client a request; in later versions,
// the result of the call contains the question.
func withApprovalChannel(protocols ...string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "asking", Version: "1"}, &mcp.ServerOptions{SupportedProtocolVersions: protocols})
	form := &mcp.ElicitParams{Message: "Which colour?\u202e", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"colour":{"type":"string"}},"required":["colour"]}`)}
	sample := &mcp.CreateMessageParams{MaxTokens: 10, IncludeContext: "allServers", Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "Say hi to ada@example.com"}}}}
	tool := func(name string, h mcp.ToolHandler) {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, h)
	}
	text := func(format string, args ...any) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}
	}
	chosen := func(r *mcp.ElicitResult, err error) (*mcp.CallToolResult, error) {
		if err != nil {
			return text("not asked: %v", err), nil
		}
		return text("%s %v", r.Action, r.Content["colour"]), nil
	}
	tool("get_colour", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if req.ProtocolVersion() < "2026-07-28" {
			return chosen(req.Session.Elicit(ctx, form))
		}
		if r, ok := req.Params.InputResponses["colour"].(*mcp.ElicitResult); ok && req.Params.RequestState == "half" {
			return chosen(r, nil)
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"colour": form}, RequestState: "half"}, nil
	})
	tool("get_said", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		said := func(c mcp.Content) *mcp.CallToolResult { return text("said %s", show(c)) }
		if req.ProtocolVersion() < "2026-07-28" {
			r, err := req.Session.CreateMessage(ctx, sample)
			if err != nil {
				return text("not said: %v", err), nil
			}
			return said(r.Content), nil
		}
		switch r := req.Params.InputResponses["said"].(type) {
		case *mcp.CreateMessageResult:
			return said(r.Content), nil
		case *mcp.CreateMessageWithToolsResult:
			return said(r.Content[0]), nil
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"said": sample}}, nil
	})
	tool("get_roots", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if req.ProtocolVersion() < "2026-07-28" {
			r, err := req.Session.ListRoots(ctx, nil)
			if err != nil {
				return text("no roots: %v", err), nil
			}
			return text("roots %s", show(r.Roots)), nil
		}
		if r, ok := req.Params.InputResponses["roots"].(*mcp.ListRootsResult); ok {
			return text("roots %s", show(r.Roots)), nil
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"roots": &mcp.ListRootsParams{}}}, nil
	})
	tool("get_told", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range 3 {
			_ = req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Logger: "up", Data: fmt.Sprintf("line %d of ada@example.com", i)})
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: float64(i + 1), Total: 3, Message: "step"})
		}
		return text("told"), nil
	})
	return s
}

// person is a client that answers all questions. It records the questions in asked, and log and progress messages in
// told.
type person struct {
	mu    sync.Mutex
	asked []string
	told  []string
}

func (p *person) note(list *[]string, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*list = append(*list, fmt.Sprintf(format, args...))
}

func (p *person) options() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			p.note(&p.asked, "%s", req.Params.Message)
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"colour": "blue"}}, nil
		},
		CreateMessageHandler: func(_ context.Context, req *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			p.note(&p.asked, "%s %s", req.Params.IncludeContext, show(req.Params.Messages))
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "hi [EMAIL_1]"}}, nil
		},
		LoggingMessageHandler: func(_ context.Context, req *mcp.LoggingMessageRequest) { p.note(&p.told, "%v", req.Params.Data) },
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			p.note(&p.told, "%v/%v %s %v", req.Params.Progress, req.Params.Total, req.Params.Message, req.Params.ProgressToken)
		},
	}
}

// TestQuestionsCrossEras checks that a server's question reaches the person and the answer reaches the server, for all
// pairs of protocol versions. The server's tool is called directly, by call_tool and by a program.
func TestQuestionsCrossEras(t *testing.T) {
	t.Parallel()
	wires := map[string]func(theirs string) engine.Server{
		"pipe": func(theirs string) engine.Server { return upstream("up", withApprovalChannel(theirs)) },
		"http": func(theirs string) engine.Server {
			return serverOverHTTP(t, "up", withApprovalChannel(theirs), theirs == eras[1])
		},
	}
	for i := range 8 {
		era, theirs, wire := eras[i&1], eras[i>>1&1], []string{"pipe", "http"}[i>>2]
		t.Run(era+" to "+theirs+" by "+wire, func(t *testing.T) {
			p := &person{}
			s := connectEngine(t, "servers: {up: {expose: direct, sampling: allow, roots: [/srv/x]}}", era, p.options(), wires[wire](theirs))
			ways := map[string]func(tool string) string{
				"direct": func(tool string) string { return callOf(t, s, tool, nil) },
				"call_tool": func(tool string) string {
					return callOf(t, s, "call_tool", map[string]any{"name": "up__" + tool, "arguments": map[string]any{}})
				},
				"program": func(tool string) string {
					return callOf(t, s, "execute_code", map[string]any{"language": "javascript", "code": "return await callMCPTool('up__" + tool + "', {})"})
				},
			}
			for way, call := range ways {
				if got := call("get_colour"); !strings.Contains(got, "accept blue") {
					t.Errorf("%s: %s", way, got)
				}
				if got := call("get_said"); !strings.Contains(got, "hi [EMAIL_1]") {
					t.Errorf("%s: %s", way, got)
				}
				if got := call("get_roots"); !strings.Contains(got, "file:///srv/x") {
					t.Errorf("%s: %s", way, got)
				}
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if len(p.asked) != 6 {
				t.Errorf("asked %d times: %q", len(p.asked), p.asked)
			}
			for _, q := range p.asked {
				form := strings.Contains(q, `The server "up" asks`) && strings.Contains(q, `Which colour?\u202e`)
				sample := strings.HasPrefix(q, "none") && strings.Contains(q, "[EMAIL_1]")
				if !form && !sample {
					t.Errorf("asked %q", q)
				}
			}
		})
	}
}

// TestNobodyToAsk checks that a server's question fails with an explanation if the client cannot ask a person, and
// that servers cannot use the client's model or roots by default.
func TestNobodyToAsk(t *testing.T) {
	t.Parallel()
	for _, era := range eras {
		for _, theirs := range eras {
			if era == theirs && !testenv.Full() {
				continue // TestQuestionsCrossEras tests every pair of eras
			}
			p := &person{}
			some := p.options()
			none := connectEngine(t, exposedServers, era, nil, upstream("up", withApprovalChannel(theirs)))
			with := connectEngine(t, exposedServers, era, some, upstream("up", withApprovalChannel(theirs)))
			for want, got := range map[string]string{
				"nobody can be asked":    callForText(t, none, "get_colour"),
				"not offered":            callForText(t, with, "get_said"),
				"roots/list is not offe": callForText(t, with, "get_roots"),
			} {
				if !strings.Contains(got, want) && !strings.Contains(got, "does not support") && !strings.Contains(got, "method not found") {
					t.Errorf("%s to %s: no %q in %s", era, theirs, want, got)
				}
			}
			if len(p.asked) > 0 {
				t.Errorf("asked %q", p.asked)
			}
		}
	}
}

func TestServersTellHowFarTheyAre(t *testing.T) {
	t.Parallel()
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			p := &person{}
			s := connectEngine(t, exposedServers, era, p.options(), upstream("up", withApprovalChannel("2025-11-25")))
			params := &mcp.CallToolParams{Name: "get_told", Meta: mcp.Meta{"progressToken": "mine"}}
			if era == eras[0] {
				if err := s.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "info"}); err != nil {
					t.Fatal(err)
				}
			} else {
				params.Meta[mcp.MetaKeyLogLevel] = "info"
			}
			if _, err := s.CallTool(t.Context(), params); err != nil {
				t.Fatal(err)
			}
			want := []string{"line 0 of [EMAIL_1]", "1/3 step mine", "line 1 of [EMAIL_1]", "2/3 step mine", "line 2 of [EMAIL_1]", "3/3 step mine"}
			var got []string
			testenv.WaitUntil(t, "the client receives all progress notifications", func() bool {
				p.mu.Lock()
				defer p.mu.Unlock()
				got = slices.Clone(p.told)
				return len(got) >= len(want)
			})
			if !slices.Equal(got, want) {
				t.Errorf("told %q, want %q", got, want)
			}
		})
	}
}

// TestExposedCallsAreApproved checks that a destructive call of an exposed tool waits for approval. An approved call
// returns the server's own result; a denied or pending one returns a result marked as an error.
func TestExposedCallsAreApproved(t *testing.T) {
	t.Parallel()
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			said := "once"
			o := &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				if !strings.Contains(req.Params.Message, "call up.delete_all (irreversible)") {
					t.Error(req.Params.Message)
				}
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": said}}, nil
			}}
			s := connectEngine(t, exposedServers, era, o, upstream("up", fullServer()))
			if got := callOf(t, s, "delete_all", nil); !strings.Contains(got, `"text":"gone"`) || strings.Contains(got, "execution_id") {
				t.Error(got)
			}
			said = "no"
			if got := callOf(t, s, "delete_all", nil); strings.Contains(got, "gone") || !strings.Contains(got, `"isError":true`) {
				t.Error(got)
			}
			nobody := connectEngine(t, exposedServers, era, nil, upstream("up", fullServer()))
			if got := callOf(t, nobody, "delete_all", nil); !strings.Contains(got, "pending_approval") || !strings.Contains(got, `"isError":true`) {
				t.Error(got)
			}
		})
	}
}

// TestNamesOfSeveralServers checks that items with the same name on two servers get different names for clients, and
// that each name reaches its server.
func TestNamesOfSeveralServers(t *testing.T) {
	t.Parallel()
	s := connectEngine(t, "{piiTokenization: false, servers: {a: {expose: direct}, b: {expose: direct}}}", eras[0], nil, upstream("a", fullServer()), upstream("b", fullServer(eras[0])))
	tools, err := s.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) != 16+8 {
		t.Fatal(len(tools.Tools), err)
	}
	if got := callOf(t, s, "b__get_error", nil); !strings.Contains(got, "went wrong") {
		t.Error(got)
	}
	listed, err := s.ListResources(t.Context(), nil)
	if err != nil || len(listed.Resources) != 4 || !strings.HasPrefix(listed.Resources[0].URI, "retort://a/test://") {
		t.Fatal(show(listed), err)
	}
	for _, uri := range []string{"retort://b/test://a.txt", "retort://a/test://a.txt"} {
		read, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil || read.Contents[0].Text != "the text of test://a.txt" {
			t.Error(show(read), err)
		}
	}
	prompt, err := s.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "b__greet", Arguments: map[string]string{"who": "World"}})
	if err != nil || !strings.Contains(show(prompt), "Hello World") {
		t.Error(show(prompt), err)
	}
	completed, err := s.Complete(t.Context(), &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "a__greet"}, Argument: mcp.CompleteParamsArgument{Name: "who", Value: "pa"}})
	if err != nil || show(completed.Completion.Values) != `["paris"]` {
		t.Error(show(completed), err)
	}
}
