package guesttest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"retort/internal/core"
)

// TestHost is the host of a test program. It implements the servers that test programs call, and files in memory.
type TestHost struct {
	Files map[string]string
	Part  int  // maximum number of bytes of a file that one call reads; 0 means 4 MB
	Loose bool // files can be written everywhere, not only in ./workspace/

	mu       sync.Mutex
	calls    int
	largest  int // largest number of bytes that one call has read
	meeting  int // number of calls of the tool meet that are in progress
	met, let onceEvent
}

// onceEvent represents an event that happens at most once. Goroutines can wait for it.
type onceEvent struct {
	mu       sync.Mutex
	happened chan struct{}
}

// done returns a channel that is closed when the event has happened.
func (e *onceEvent) done() chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.happened == nil {
		e.happened = make(chan struct{})
	}
	return e.happened
}

// markHappened marks the event as happened. Later calls do nothing.
func (e *onceEvent) markHappened() {
	done := e.done()
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-done:
	default:
		close(done)
	}
}

// waitFor waits for the event or the end of ctx, and reports whether the event has happened.
func (e *onceEvent) waitFor(ctx context.Context) bool {
	select {
	case <-e.done():
	case <-ctx.Done():
	}
	select {
	case <-e.done():
		return true
	default:
		return false
	}
}

// newHost returns a new TestHost for one program.
func newHost(runtime string) *TestHost {
	if runtime == python {
		return &TestHost{Files: map[string]string{
			"workspace/a.txt": "grün", "workspace/sub/b.json": `{"b":1}`, "servers/demo/__init__.py": "# demo",
		}}
	}
	return &TestHost{Files: map[string]string{"data/a.txt": "grün", "data/sub/b.json": `{"b":1}`}, Part: 4, Loose: true}
}

// HostNamespaces returns the namespaces of TestHost's servers for programs of a runtime.
func HostNamespaces(runtime string) []core.ServerNamespace {
	if runtime == python {
		return inPython
	}
	return inJavaScript
}

var (
	inJavaScript = []core.ServerNamespace{
		{Server: "demo-server", Global: "demo", Modules: []string{"demo-server", "demo"}, Functions: []core.ToolFunction{
			{Name: "echo", Tool: "echo", Params: []string{"text", "times"}},
			{Name: "fail", Tool: "fail", Params: []string{"message"}},
			{Name: "listBig", Tool: "list_big"},
			{Name: "slow", Tool: "slow", Params: []string{"ms"}},
		}},
		{Server: "console", Modules: []string{"console"}, Functions: []core.ToolFunction{{Name: "beep", Tool: "beep"}}},
	}
	inPython = []core.ServerNamespace{
		{Server: "demo-server", Global: "demo", Modules: []string{"demo-server", "demo", "demo_server"}, Functions: []core.ToolFunction{
			{Name: "echo", Tool: "echo", Params: []string{"text", "times"}},
			{Name: "fail", Tool: "fail", Params: []string{"message"}},
			{Name: "list_big", Tool: "listBig"},
			{Name: "slow", Tool: "slow", Params: []string{"ms", "n"}},
			{Name: "issue", Tool: "issue", Params: []string{"number"}},
			{Name: "meet", Tool: "meet", Params: []string{"count", "n"}},
			{Name: "page", Tool: "page", Params: []string{"cursor"}},
			{
				Name: "odd", Tool: "odd", Params: []string{"from", "to-date", "limit"},
				Keywords: []string{"from_", "to_date", "limit"}, Also: map[string]string{"from_date": "from"},
				Nulls: []string{"limit"},
			},
			{Name: "put", Tool: "put", Params: []string{"record", "force"}, Object: true},
		}},
		{Server: "math", Modules: []string{"math"}, Functions: []core.ToolFunction{{Name: "add", Tool: "add", Params: []string{"a", "b"}}}},
	}
)

// CallCount returns the number of calls that programs have made.
func (h *TestHost) CallCount() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls
}

// LargestRead returns the largest number of bytes that a single call has read from a file.
func (h *TestHost) LargestRead() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.largest
}

// Call answers a tool call that a program made.
func (h *TestHost) Call(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
	h.mu.Lock()
	h.calls++
	h.mu.Unlock()
	if c.Server == "" {
		return h.answerOwnCall(c)
	}
	var a struct {
		MS, Number, Count, N int
		Cursor               string
		Text                 any
	}
	_ = json.Unmarshal(c.Arguments, &a)
	const big = `{"z":12345678901234567890,"a":[9007199254740993,9007199254740991,1.2345678901234567,-9223372036854775808],"__%s__":{"polluted":true},"t":"1234567890123456789"}`
	switch c.Tool {
	case "fail":
		return core.CallResult{}, (&core.Error{
			Kind: core.KindToolError, Message: "it broke: " + string(c.Arguments), Hint: "mend it",
		}).AtTool(c.Server, c.Tool)
	case "list_big":
		return core.CallResult{Value: json.RawMessage(strings.Replace(big, "%s", "proto", 1))}, nil
	case "listBig":
		return core.CallResult{Value: json.RawMessage(strings.Replace(big, "%s", "class", 1))}, nil
	case "echo":
		if a.Text == "go" {
			h.let.markHappened()
		}
	case "slow":
		h.answerSlowly(ctx, a.MS)
	case "issue":
		yieldProcessor()
		return jsonResult(map[string]any{
			"number": a.Number, "title": "issue " + string(rune('a'+a.Number%26)),
			"state":   []string{"open", "closed"}[a.Number%2],
			"created": "2024-03-0" + string(rune('1'+a.Number%9)) + "T10:00:00Z",
		}), nil
	case "meet":
		return jsonResult(map[string]any{"met": h.waitForMeeting(ctx, a.Count), "n": a.N}), nil
	case "page":
		next := map[string]string{"": "b", "b": "c"}[a.Cursor]
		return jsonResult(map[string]any{"items": []string{"item " + a.Cursor}, "next": next}), nil
	}
	return core.CallResult{Value: c.Arguments}, nil
}

// answerSlowly blocks for a call that a program expects to take ms milliseconds. If ms is below 10, it only yields
// the processor. If it is below 1000, answerSlowly returns when the program calls echo with the text "go". Otherwise
// it returns when the program has ended.
func (h *TestHost) answerSlowly(ctx context.Context, ms int) {
	switch {
	case ms < 10:
		yieldProcessor()
	case ms < 1000:
		h.let.waitFor(ctx)
	default:
		<-ctx.Done()
	}
}

// yieldProcessor yields the processor, so that several calls are in progress at the same time.
func yieldProcessor() {
	for range 100 {
		runtime.Gosched()
	}
}

// waitForMeeting waits until count calls of the tool meet are in progress at the same time. It reports whether that
// happened before the program ended.
func (h *TestHost) waitForMeeting(ctx context.Context, count int) bool {
	h.mu.Lock()
	h.meeting++
	if h.meeting >= count {
		h.met.markHappened()
	}
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		h.meeting--
		h.mu.Unlock()
	}()
	return h.met.waitFor(ctx)
}

func jsonResult(v any) core.CallResult {
	data, _ := json.Marshal(v)
	return core.CallResult{Value: data}
}

// answerOwnCall answers a call of one of the engine's own functions, such as read_file.
func (h *TestHost) answerOwnCall(c core.ToolCall) (core.CallResult, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var a fileArguments
	_ = json.Unmarshal(c.Arguments, &a)
	name := cleanName(a.Path)
	content, exists := h.Files[name]
	isDir := h.isDir(name)
	missing := &core.Error{Kind: core.KindRuntime, Message: "ENOENT: " + a.Path + ": no such file or folder"}
	switch c.Tool {
	case "read_file":
		if !exists {
			return core.CallResult{}, missing
		}
		return h.readFile(content, a), nil
	case "write_file":
		return h.writeFile(name, content, a)
	case "list_files":
		if !isDir {
			return core.CallResult{}, missing
		}
		return h.listFiles(name), nil
	case "stat_file":
		if !exists && !isDir {
			return core.CallResult{}, missing
		}
		return jsonResult(map[string]any{"dir": isDir, "bytes": len(content), "modified": "2024-05-06T07:08:09Z"}), nil
	case "remove_file":
		if !exists && !isDir {
			return core.CallResult{}, missing
		}
		delete(h.Files, name)
		delete(h.Files, name+"/.keep")
	case "rename_file":
		h.Files[cleanName(a.To)] = h.Files[cleanName(a.From)]
		delete(h.Files, cleanName(a.From))
	case "make_dir":
		h.Files[name+"/.keep"] = ""
	case "call", "search_tools":
		return core.CallResult{Value: c.Arguments}, nil
	case "page":
		return answerPage(c.Arguments)
	default:
		return core.CallResult{}, core.Errorf(core.KindInternal, "", "%s is not there", c.Tool)
	}
	return jsonResult(map[string]any{}), nil
}

// answerPage answers a request for one page of a list that has three pages. The first page contains the request
// itself, and the second is empty. The third contains two items, or is an error if the tool is fail.
func answerPage(request json.RawMessage) (core.CallResult, error) {
	var q struct {
		Server, Tool string
		List         int
	}
	_ = json.Unmarshal(request, &q)
	switch {
	case q.List == 0:
		return jsonResult(map[string]any{"items": []json.RawMessage{request}, "list": 5}), nil
	case q.List == 5:
		return jsonResult(map[string]any{"items": []int{}, "list": 6}), nil
	case q.Tool == "fail":
		return core.CallResult{}, (&core.Error{Kind: core.KindToolError, Message: "page 3 repeats", Hint: "read it by hand"}).AtTool(q.Server, q.Tool)
	}
	return core.CallResult{Value: json.RawMessage(`{"items":[9007199254740993,{"__proto__":{"polluted":true}}]}`)}, nil
}

// fileArguments holds the arguments of the file functions.
type fileArguments struct {
	Path, From, To, Data string
	Append               bool
	Offset, Length       int
}

func cleanName(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

func (h *TestHost) isDir(name string) bool {
	_, kept := h.Files[name+"/.keep"]
	return kept || name == "" || name == "workspace" || strings.Contains(string(h.listFiles(name).Value), "name")
}

func (h *TestHost) readFile(content string, a fileArguments) core.CallResult {
	most := h.Part
	if most == 0 {
		most = 4 << 20
	}
	part := content[min(a.Offset, len(content)):min(a.Offset+min(a.Length, most), len(content))]
	h.largest = max(h.largest, len(part))
	return jsonResult(map[string]any{
		"data": base64.StdEncoding.EncodeToString([]byte(part)), "bytes": len(content),
		"eof": a.Offset+len(part) >= len(content),
	})
}

func (h *TestHost) writeFile(name, content string, a fileArguments) (core.CallResult, error) {
	if !h.Loose && !strings.HasPrefix(name, "workspace/") {
		return core.CallResult{}, (&core.Error{
			Kind: core.KindRuntime, Message: "EROFS: " + a.Path + ": only ./workspace/ can be written",
		}).WithHint("write to ./workspace/%s", path.Base(name))
	}
	data, _ := base64.StdEncoding.DecodeString(a.Data)
	if a.Append {
		data = append([]byte(content), data...)
	}
	h.Files[name] = string(data)
	return jsonResult(map[string]any{}), nil
}

func (h *TestHost) listFiles(dir string) core.CallResult {
	type entry struct {
		Name  string `json:"name"`
		Dir   bool   `json:"dir"`
		Bytes int    `json:"bytes"`
	}
	entries := []entry{}
	for _, file := range slices.Sorted(maps.Keys(h.Files)) {
		rest := strings.TrimPrefix(file, dir+"/")
		if dir == "" {
			rest = file
		} else if rest == file {
			continue
		}
		first, _, nested := strings.Cut(rest, "/")
		e := entry{first, nested, len(h.Files[file])}
		if nested {
			e.Bytes = 0
		}
		if first != ".keep" && !slices.Contains(entries, e) {
			entries = append(entries, e)
		}
	}
	return jsonResult(map[string]any{"entries": entries})
}
