package demo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"retort/internal/base/jsonschema"
	"retort/internal/devel/testenv"
	upstream "retort/internal/mcp/client"
)

// sendLines sends lines to a new server and returns all lines that the server writes.
func sendLines(t *testing.T, name string, lines ...string) []string {
	t.Helper()
	var out bytes.Buffer
	if err := ServeByName(t.Context(), name, strings.NewReader(strings.Join(lines, "\n")), &out); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func TestProtocol(t *testing.T) {
	for _, test := range []struct{ name, line, want string }{
		{"newest legacy version", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`, `"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"nordlys-drive"`},
		{"oldest version", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05"}}`, `"protocolVersion":"2024-11-05"`},
		{"initialize asks for the stateless version", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2026-07-28"}}`, `"protocolVersion":"2025-11-25"`},
		{"initialize without version", `{"jsonrpc":"2.0","id":1,"method":"initialize"}`, `"code":-32602`},
		{"ping", `{"jsonrpc":"2.0","id":"a","method":"ping"}`, `{"jsonrpc":"2.0","id":"a","result":{}}`},
		{"discover", `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + modernMeta + `}}`, `"supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]`},
		{"stateless results say who answers", `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + modernMeta + `}}`, `"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"nordlys-drive"`},
		{"discover belongs to the stateless era", `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, `"code":-32601`},
		{"ping belongs to the legacy era", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{` + modernMeta + `}}`, `"code":-32601`},
		{"stateless call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"trash_file","arguments":{"fileId":"abc123"},` + modernMeta + `}}`, `"content":[{"type":"text","text":"'Quarterly`},
		{"stateless list", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + modernMeta + `}}`, `"ttlMs":300000,"cacheScope":"public"`},
		{"a version to come", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2031-01-01"}}}`, `"code":-32022,"message":"unsupported protocol version","data":{"requested":"2031-01-01","supported":["2026-07-28"`},
		{"no client capabilities", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, `"code":-32602`},
		{"unknown method", `{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`, `method \"prompts/list\" is not supported`},
		{"unknown tool", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nope"}}`, `"code":-32602,"message":"unknown tool \"nope\""`},
		{"params of the wrong type", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[1]}`, `"code":-32602`},
		{"invalid cursor", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}`, `invalid cursor`},
		{"not JSON", `{"jsonrpc":`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700`},
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`, `[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{}}]`},
		{"empty batch", `[]`, `"code":-32600`},
		{"arguments left out", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_document"}}`, `missing property 'documentId'`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := sendLines(t, "drive", test.line)
			if len(got) != 1 || !strings.Contains(got[0], test.want) {
				t.Errorf("got %.500s, want %s", got, test.want)
			}
		})
	}
}

func TestNothingToAnswer(t *testing.T) {
	got := sendLines(t, "drive", ``, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":7,"result":{}}`,
		`[{"jsonrpc":"2.0","method":"notifications/initialized"}]`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`)
	if len(got) != 1 || got[0] != "" {
		t.Errorf("got %q", got)
	}
}

// TestEveryVersion checks that every server lists all its tools, page by page, in every protocol version.
func TestEveryVersion(t *testing.T) {
	for _, version := range allVersions() {
		for _, name := range ServerNames() {
			t.Run(version+"/"+name, func(t *testing.T) {
				c, _ := open(t, name)
				params := map[string]any{}
				if version == modernVersion {
					params["_meta"] = json.RawMessage(`{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`)
				} else if r := c.request("initialize", map[string]any{"protocolVersion": version}); !strings.Contains(string(r.Result), version) {
					t.Fatalf("negotiated %s", r.Result)
				}
				var names []string
				for more := true; more; more = params["cursor"] != "" {
					var page struct {
						Tools      []struct{ Name string }
						NextCursor string
					}
					if err := json.Unmarshal(c.request("tools/list", params).Result, &page); err != nil {
						t.Fatal(err)
					}
					for _, tool := range page.Tools {
						names = append(names, tool.Name)
					}
					params["cursor"] = page.NextCursor
				}
				if want := everyTool(t)[name]; !slices.Equal(names, want) {
					t.Errorf("listed %v, want %v", names, want)
				}
			})
		}
	}
}

// TestClientOfOthers checks that Retort's own client, which shares no code with this package, can list and call the
// tools of every server.
func TestClientOfOthers(t *testing.T) {
	var servers []upstream.ServerSpec
	for _, name := range ServerNames() {
		servers = append(servers, upstream.ServerSpec{Name: name, Dial: DialFunc(name)})
	}
	pool := upstream.New(servers, upstream.Options{})
	defer pool.Close()
	for _, name := range ServerNames() {
		l, err := pool.List(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if len(l.Tools) != len(everyTool(t)[name]) || l.Protocol != modernVersion || l.Instructions == "" {
			t.Errorf("%s: %d tools, protocol %s, instructions %q", name, len(l.Tools), l.Protocol, l.Instructions)
		}
	}
	r, err := pool.Call(t.Context(), "database", "query", json.RawMessage(`{"sql":"SELECT MAX(id) AS id FROM events"}`))
	if err != nil || !strings.Contains(string(r), "9007199254780991") {
		t.Errorf("%s, %v", r, err)
	}
}

func TestDefinitionsLeaveAsTheyAre(t *testing.T) {
	s, _ := Open("crm")
	c := connect(t, s)
	var list struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(c.request("tools/list", map[string]any{}).Result, &list); err != nil {
		t.Fatal(err)
	}
	file, _ := definitionFiles.ReadFile("tools/crm.json")
	var compact bytes.Buffer
	if err := json.Compact(&compact, file); err != nil {
		t.Fatal(err)
	}
	for _, raw := range list.Tools {
		if !bytes.Contains(compact.Bytes(), raw) {
			t.Errorf("not the bytes of the file: %.100s", raw)
		}
	}
	if len(list.Tools) != toolsPerPage {
		t.Errorf("%d tools on the first page", len(list.Tools))
	}
}

// waitingServer returns a server with one tool. A call of the tool ends only after the given number of calls are
// running at the same time.
func waitingServer(calls int) *DemoServer {
	s, _ := Open("drive")
	var together sync.WaitGroup
	together.Add(calls)
	object, _ := jsonschema.Compile([]byte(`{"type":"object"}`))
	s.definitions = []*toolDefinition{{name: "meet", schema: func() (*jsonschema.Schema, error) { return object, nil }}}
	s.tools = func() map[string]toolFunc {
		return map[string]toolFunc{"meet": readTool(func(struct{}) (toolResult, error) {
			together.Done()
			together.Wait()
			return textResult("met")
		})}
	}
	return s
}

func TestCallsAreServedConcurrently(t *testing.T) {
	const calls = 50
	c := connect(t, waitingServer(calls))
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			if got := c.call("meet", `{}`).text(); got != "met" {
				t.Errorf("got %q", got)
			}
		})
	}
	all.Wait()
}

func TestCancelledCallIsNotAnswered(t *testing.T) {
	s := waitingServer(1)
	entered, release := make(chan bool), make(chan bool)
	s.tools = func() map[string]toolFunc {
		return map[string]toolFunc{"meet": readTool(func(struct{}) (toolResult, error) {
			entered <- true
			<-release
			return textResult("met")
		})}
	}
	in, feed := io.Pipe()
	answers, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- errors.Join(s.Serve(t.Context(), in, out), out.Close()) }()
	fmt.Fprintln(feed, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"meet","arguments":{}}}`)
	<-entered
	fmt.Fprintln(feed, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"test"}}`)
	fmt.Fprintln(feed, `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	lines := bufio.NewScanner(answers)
	if !lines.Scan() || lines.Text() != `{"jsonrpc":"2.0","id":2,"result":{}}` { // so the cancellation was handled
		t.Errorf("got %s", lines.Text())
	}
	feed.Close()
	release <- true
	if lines.Scan() {
		t.Errorf("got %s", lines.Text())
	}
	if err := testenv.Receive(t, done, "the end of Serve"); err != nil {
		t.Error(err)
	}
}

func TestServeEnds(t *testing.T) {
	t.Run("with its context, though nobody reads or writes", func(t *testing.T) {
		in, _ := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- ServeByName(ctx, "drive", in, io.Discard) }()
		cancel()
		if err := testenv.Receive(t, done, "the end of Serve"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		in.Close()
	})
	t.Run("when its output fails", func(t *testing.T) {
		in, feed := io.Pipe()
		broken, w := io.Pipe()
		broken.Close()
		done := make(chan error, 1)
		go func() { done <- ServeByName(t.Context(), "drive", in, w) }()
		fmt.Fprintln(feed, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		if err := testenv.Receive(t, done, "the end of Serve"); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("got %v", err)
		}
		feed.Close()
	})
	t.Run("on a message beyond all bounds", func(t *testing.T) {
		err := ServeByName(t.Context(), "drive", io.LimitReader(endless{}, maxMessage+1), io.Discard)
		if !errors.Is(err, bufio.ErrTooLong) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("after all that was asked is answered", func(t *testing.T) {
		var lines []string
		for i := range 40 {
			lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"list_folder"}}`, i))
		}
		if got := sendLines(t, "drive", lines...); len(got) != 40 {
			t.Errorf("%d answers", len(got))
		}
	})
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestOpenNamesTheServers(t *testing.T) {
	_, err := Open("gdrive")
	if err == nil || !strings.Contains(err.Error(), "drive, crm, chat, calendar, mail, sheets, issues, database, files") {
		t.Error(err)
	}
	if _, err := DialFunc("gdrive")(t.Context()); err == nil {
		t.Error("dialled a server that does not exist")
	}
}
