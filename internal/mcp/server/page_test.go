package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/devel/testenv"
)

const secretPage = "https://pages.example.com/connect?for=ada@example.com&state=geheim"

// openedPages holds the state of a server with two tools that need a web page to be opened. The tool get_first
// refuses calls until the page was opened. The tool get_midst asks the client to open it during the call.
type openedPages struct {
	mu        sync.Mutex
	url       string
	quiet     bool // the server does not report when the person has finished with a page
	opened    bool
	ids       []string
	closePage func()
	calls     int
}

func (p *openedPages) server(protocols ...string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "pages", Version: "1"}, &mcp.ServerOptions{SupportedProtocolVersions: protocols})
	tool := func(name string, h mcp.ToolHandler) {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, h)
	}
	text := func(format string, args ...any) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}
	}
	tool("get_first", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.calls++; p.opened {
			return text("let in"), nil
		}
		ask := p.asks()
		if !p.quiet {
			p.closePage = func() {
				_ = req.Session.NotifyElicitationComplete(context.WithoutCancel(ctx), &mcp.ElicitationCompleteParams{ElicitationID: ask.ElicitationID})
			}
		}
		return nil, mcp.URLElicitationRequiredError([]*mcp.ElicitParams{ask})
	})
	tool("get_midst", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		p.mu.Lock()
		ask := p.asks()
		p.mu.Unlock()
		answered := func(r *mcp.ElicitResult) *mcp.CallToolResult { return text("%s let in", r.Action) }
		if req.ProtocolVersion() < "2026-07-28" {
			r, err := req.Session.Elicit(ctx, ask)
			if err != nil {
				return nil, err
			}
			return answered(r), nil
		}
		if r, ok := req.Params.InputResponses["page"].(*mcp.ElicitResult); ok {
			return answered(r), nil
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"page": ask}}, nil
	})
	return s
}

// asks returns the request to open the page, with a new id. The caller must hold mu.
func (p *openedPages) asks() *mcp.ElicitParams {
	p.ids = append(p.ids, fmt.Sprintf("id-%d", len(p.ids)))
	return &mcp.ElicitParams{Mode: "url", URL: p.url, ElicitationID: p.ids[len(p.ids)-1], Message: "Connect ada@example.com"}
}

// reader returns the options of a client that answers every request to open a page with action. The client records
// these requests in asked. In completed, it records the ids of pages that are reported as completed.
func (p *openedPages) reader(t *testing.T, action string, asked, completed *[]string) *mcp.ClientOptions {
	return &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}, Form: &mcp.FormElicitationCapabilities{}}},
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			*asked = append(*asked, fmt.Sprintf("%s|%s|%s", req.Params.Mode, req.Params.URL, req.Params.Message))
			if strings.HasPrefix(req.Params.ElicitationID, "id-") {
				t.Errorf("the id %q is the server's own", req.Params.ElicitationID)
			}
			if p.opened = action == "accept"; p.opened && p.closePage != nil {
				go p.closePage()
			}
			return &mcp.ElicitResult{Action: action}, nil
		},
		ElicitationCompleteHandler: func(_ context.Context, req *mcp.ElicitationCompleteNotificationRequest) {
			p.mu.Lock()
			defer p.mu.Unlock()
			*completed = append(*completed, req.Params.ElicitationID)
		},
	}
}

func waysTo(t *testing.T, s *mcp.ClientSession) map[string]func(tool string) string {
	return map[string]func(tool string) string{
		"direct": func(tool string) string {
			r, err := s.CallTool(testenv.Context(t), &mcp.CallToolParams{Name: tool})
			return fmt.Sprint(show(r), err)
		},
		"program": func(tool string) string {
			return callOf(t, s, "execute_code", map[string]any{"language": "javascript", "timeout_ms": 600_000, "code": "return await callMCPTool('up__" + tool + "', {})"})
		},
	}
}

// TestPagesToOpen checks that the client is asked to open a server's page and gets the complete address. When the
// person has finished with the page, the call is repeated once. It covers all pairs of protocol versions.
func TestPagesToOpen(t *testing.T) {
	t.Parallel()
	for i := range 8 {
		era, theirs, quiet := eras[i&1], eras[i>>1&1], i>>2 == 1
		if quiet && era == theirs && !testenv.Full() {
			continue // waiting for a quiet server is slow, and does not depend on either era
		}
		t.Run(fmt.Sprint(era, " to ", theirs, " quiet ", quiet), func(t *testing.T) {
			t.Parallel()
			p := &openedPages{url: secretPage, quiet: quiet}
			var asked, completed []string
			s := connectEngine(t, exposedServers, era, p.reader(t, "accept", &asked, &completed), upstream("up", p.server(theirs)))
			for way, call := range waysTo(t, s) {
				p.mu.Lock()
				p.opened, p.calls = false, 0
				p.mu.Unlock()
				if got := call("get_first"); !strings.Contains(got, "let in") || p.calls != 2 {
					t.Errorf("%s, %d calls: %s", way, p.calls, got)
				}
				if got := call("get_midst"); !strings.Contains(got, "accept let in") {
					t.Errorf("%s: %s", way, got)
				}
			}
			if era == eras[0] && theirs == eras[0] && !quiet {
				testenv.WaitUntil(t, "the client is told twice that the person is done", func() bool {
					p.mu.Lock()
					defer p.mu.Unlock()
					return len(completed) == 2
				})
			}
			if len(asked) != 4 {
				t.Errorf("asked %d times: %q", len(asked), asked)
			}
			for _, a := range asked {
				mode, rest, _ := strings.Cut(a, "|")
				address, message, _ := strings.Cut(rest, "|")
				if mode != "url" || address != secretPage || !strings.Contains(message, `"up"`) || !strings.Contains(message, "https://pages.example.com") ||
					!strings.Contains(message, "Connect [EMAIL_1]") || strings.Contains(message, "geheim") {
					t.Errorf("asked %q", a)
				}
			}
		})
	}
}

// TestPagesThatNobodyOpens checks that a call fails if its page is not opened, and that the error names the host and
// a remedy, but not the rest of the address.
func TestPagesThatNobodyOpens(t *testing.T) {
	t.Parallel()
	forms := &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		t.Errorf("asked %s", show(req.Params))
		return &mcp.ElicitResult{Action: "accept"}, nil
	}}
	for _, era := range eras {
		for _, theirs := range eras {
			if era == theirs && !testenv.Full() {
				continue // TestPagesToOpen tests every pair of eras
			}
			p := &openedPages{url: secretPage}
			var asked, completed []string
			for name, s := range map[string]*mcp.ClientSession{
				"shows forms only": connectEngine(t, exposedServers, era, forms, upstream("up", p.server(theirs))),
				"shows nothing":    connectEngine(t, exposedServers, era, nil, upstream("up", p.server(theirs))),
				"may not be asked": connectEngine(t, "servers: {up: {expose: direct, elicitation: deny}}", era, p.reader(t, "accept", &asked, &completed), upstream("up", p.server(theirs))),
				"declines":         connectEngine(t, exposedServers, era, p.reader(t, "decline", &asked, &completed), upstream("up", p.server(theirs))),
			} {
				for way, call := range waysTo(t, s) {
					for _, tool := range []string{"get_first", "get_midst"} {
						got := call(tool)
						if name == "declines" && tool == "get_midst" {
							if !strings.Contains(got, "decline let in") { // the server knows, and says what it will
								t.Errorf("%s %s to %s: %s", name, way, theirs, got)
							}
							continue
						}
						if !strings.Contains(got, "pages.example.com") && !strings.Contains(got, "does not support") || strings.Contains(got, "geheim") || strings.Contains(got, "let in") {
							t.Errorf("%s, %s, %s %s to %s: %s", name, way, tool, era, theirs, got)
						}
						if way == "program" && tool == "get_first" && (!strings.Contains(got, `"kind":"tool_error"`) || !strings.Contains(got, "retort call")) {
							t.Errorf("%s: %s", name, got)
						}
					}
				}
			}
			if p.opened {
				t.Error("opened")
			}
		}
	}
}

// TestPagesThatAreRefused checks that unsafe addresses, such as scripts, files and disguised hosts, are never shown
// to the client.
func TestPagesThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]string{
		"a script": "javascript:alert(1)", "a file": "file:///etc/passwd", "no tls": "http://pages.example.com/", "another host": "https://bank.example.com@evil.example/",
		"no host": "https:///x", "hidden": "https://a.example/\u202egnp", "long": "https://a.example/" + strings.Repeat("x", 9000), "letters": "https://b\u0430nk.example/",
	} {
		t.Run(name, func(t *testing.T) {
			p := &openedPages{url: address}
			var asked, completed []string
			s := connectEngine(t, exposedServers, eras[0], p.reader(t, "accept", &asked, &completed), upstream("up", p.server()))
			for _, tool := range []string{"get_first", "get_midst"} {
				if got := waysTo(t, s)["program"](tool); strings.Contains(got, "let in") || !strings.Contains(got, `"status":"error"`) {
					t.Error(got)
				}
			}
			if len(asked) > 0 {
				t.Errorf("asked %q", asked)
			}
		})
	}
}
