package retort_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"retort"
	"retort/internal/run"
)

// library is an upstream in this process with resources, which can be made to say anything.
type library struct {
	mu      sync.Mutex
	out     io.Writer
	tools   string
	sent    []string // methods
	answers []string // to what it asks
	during  []string // lines that it writes in the midst of a call
}

func (l *library) write(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.out, format+"\n", args...)
}

func (l *library) dial(context.Context) (io.ReadWriteCloser, error) {
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	l.out = fromServer
	go func() {
		lines := bufio.NewScanner(toServer)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			l.take(lines.Bytes())
		}
	}()
	return duplex{toClient, fromClient}, nil
}

func (l *library) take(line []byte) {
	var m struct {
		ID     json.RawMessage
		Method string
		Result json.RawMessage
		Error  json.RawMessage
		Params struct{ Name, URI string }
	}
	if json.Unmarshal(line, &m) != nil {
		return
	}
	l.mu.Lock()
	if m.Method == "" {
		l.answers = append(l.answers, string(m.Result)+string(m.Error))
	}
	l.sent = append(l.sent, m.Method+" "+m.Params.Name+m.Params.URI)
	l.mu.Unlock()
	if m.ID == nil || m.Method == "" {
		return
	}
	result := "{}"
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"library","version":"1"}}`
	case "tools/list":
		result = `{"tools":[` + l.tools + `]}`
	case "resources/list":
		result = `{"resources":[{"uri":"doc://1","name":"of ada@example.com"},{"uri":"doc://2","name":"two"}]}`
	case "resources/templates/list":
		result = `{"resourceTemplates":[{"uriTemplate":"doc://{n}","name":"t"}]}`
	case "resources/read":
		result = map[string]string{
			"doc://1": `{"contents":[{"uri":"doc://1","text":"123"}]}`,
			"doc://2": `{"contents":[{"uri":"doc://2","mimeType":"image/png","blob":"iVBORw=="}]}`,
			"doc://3": `{"contents":[{"uri":"doc://3","text":"mail ada@example.com"},{"uri":"doc://4","text":"x"}]}`,
		}[m.Params.URI]
		if result == "" {
			l.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"Resource not found"}}`, m.ID)
			return
		}
	case "tools/call":
		for _, during := range l.during {
			l.write("%s", during)
			time.Sleep(20 * time.Millisecond)
		}
		result = `{"content":[{"type":"text","text":"done"}]}`
	}
	l.write(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

func (l *library) open(t *testing.T, settings string) *retort.Engine {
	t.Helper()
	e, err := retort.Open(t.Context(), retort.Config{NoFiles: true, Home: t.TempDir(), Keys: t.TempDir(), Settings: settings,
		Servers: []retort.Server{{Name: "lib", Dial: l.dial}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	e.Settle(t.Context())
	return e
}

func TestProgramsReadResources(t *testing.T) {
	l := &library{}
	e := l.open(t, "")
	for _, c := range []struct {
		lang       run.Language
		code, want string
	}{
		{run.TypeScript, "return await lib.readResource('doc://1')", `"123"`},
		{run.TypeScript, "const b = await lib.readResource({uri: 'doc://2'}); return [b.mimeType, b.bytes]", `["image/png",4]`},
		{run.TypeScript, "return await lib.readResource('doc://3')", `[EMAIL_1]`},
		{run.TypeScript, "const all = await lib.listResources(); return [all.resources.length, all.templates[0].uriTemplate]", `[2,"doc://{n}"]`},
		{run.TypeScript, "import { readResource } from './servers/lib'; return await readResource('doc://1')", `"123"`},
		{run.TypeScript, "return await callMCPTool('lib__read_resource', {uri: 'doc://1'})", `"123"`},
		{run.TypeScript, "try { await lib.readResource('doc://9') } catch (e) { return e.message }", `Resource not found`},
		{run.Python, "result = lib.read_resource('doc://1') + lib.list_resources()['resources'][1]['name']", `"123two"`},
	} {
		o := e.Execute(t.Context(), retort.Request{Language: c.lang, Code: c.code})
		if !strings.Contains(string(o.Result), c.want) {
			t.Errorf("%s: %s %v, want %s", c.code, o.Result, o.Error, c.want)
		}
	}
	if found, err := e.Search(t.Context(), retort.Query{Text: "read a resource by its URI"}); err != nil || len(found.Tools) == 0 || found.Tools[0].Name != "lib.readResource" {
		t.Error(found, err)
	}
}

// The policy judges reading by the name of the tool, as any call.
func TestPolicyOfResources(t *testing.T) {
	l := &library{tools: `{"name":"listResources","inputSchema":{"type":"object"}}`}
	e := l.open(t, "servers: {lib: {deny: [read_*], expose: direct}}")
	if o := e.Execute(t.Context(), retort.Request{Code: "return await lib.readResource('doc://1')"}); o.Status == retort.Status("ok") {
		t.Errorf("%s %s", o.Status, o.Result)
	}
	if o := e.Pass(t.Context(), retort.Request{}, run.Passed{Server: "lib", Method: "resources/read", Tool: "read_resource", Arguments: json.RawMessage(`{"uri":"doc://1"}`)}); o.Status != "denied" && o.Status != "rejected" {
		t.Errorf("%s %s", o.Status, o.Result)
	}
	// A tool of the server's own stands in the place of ours.
	if o := e.Execute(t.Context(), retort.Request{Code: "return await lib.listResources()"}); string(o.Result) != `"done"` {
		t.Errorf("%s %v", o.Result, o.Error)
	}
	for _, sent := range l.sent {
		if strings.HasPrefix(sent, "resources/read") {
			t.Error("it was read")
		}
	}
}
