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

// Host implements the servers that the programs call, and files in memory.
type Host struct {
	Files map[string]string
	Part  int  // most bytes of a file that one call reads; 4 MB if it is 0
	Loose bool // files can be written everywhere, and not in ./workspace/ alone

	mu       sync.Mutex
	calls    int
	largest  int // bytes of one read
	meeting  int // calls of meet under way
	met, let event
}

// event is something that happens once. Goroutines can wait for it.
type event struct {
	mu       sync.Mutex
	happened chan struct{}
}

// done returns a channel that is closed when the event has happened.
func (e *event) done() chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.happened == nil {
		e.happened = make(chan struct{})
	}
	return e.happened
}

// happen marks the event as happened. Later calls do nothing.
func (e *event) happen() {
	done := e.done()
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-done:
	default:
		close(done)
	}
}

// before waits for the event or the end of ctx, and reports whether the event has happened.
func (e *event) before(ctx context.Context) bool {
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

// newHost returns a new host for one program of a suite.
func newHost(runtime string) *Host {
	if runtime == python {
		return &Host{Files: map[string]string{"workspace/a.txt": "grün", "workspace/sub/b.json": `{"b":1}`, "servers/demo/__init__.py": "# demo"}}
	}
	return &Host{Files: map[string]string{"data/a.txt": "grün", "data/sub/b.json": `{"b":1}`}, Part: 4, Loose: true}
}

// Namespaces returns the host's servers as programs on a runtime see them.
func Namespaces(runtime string) []core.Namespace {
	if runtime == python {
		return inPython
	}
	return inJavaScript
}

var (
	inJavaScript = []core.Namespace{
		{Server: "demo-server", Global: "demo", Modules: []string{"demo-server", "demo"}, Functions: []core.Function{
			{Name: "echo", Tool: "echo", Params: []string{"text", "times"}},
			{Name: "fail", Tool: "fail", Params: []string{"message"}},
			{Name: "listBig", Tool: "list_big"},
			{Name: "slow", Tool: "slow", Params: []string{"ms"}},
		}},
		{Server: "console", Modules: []string{"console"}, Functions: []core.Function{{Name: "beep", Tool: "beep"}}},
	}
	inPython = []core.Namespace{
		{Server: "demo-server", Global: "demo", Modules: []string{"demo-server", "demo", "demo_server"}, Functions: []core.Function{
			{Name: "echo", Tool: "echo", Params: []string{"text", "times"}},
			{Name: "fail", Tool: "fail", Params: []string{"message"}},
			{Name: "list_big", Tool: "listBig"},
			{Name: "slow", Tool: "slow", Params: []string{"ms", "n"}},
			{Name: "issue", Tool: "issue", Params: []string{"number"}},
			{Name: "meet", Tool: "meet", Params: []string{"count", "n"}},
			{Name: "page", Tool: "page", Params: []string{"cursor"}},
			{Name: "odd", Tool: "odd", Params: []string{"from", "to-date", "limit"}, Keywords: []string{"from_", "to_date", "limit"}, Also: map[string]string{"from_date": "from"}, Nulls: []string{"limit"}},
			{Name: "put", Tool: "put", Params: []string{"record", "force"}, Object: true},
		}},
		{Server: "math", Modules: []string{"math"}, Functions: []core.Function{{Name: "add", Tool: "add", Params: []string{"a", "b"}}}},
	}
)

// Calls returns the number of calls that were made.
func (h *Host) Calls() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls
}

// Largest returns the most bytes of a file that one call has read.
func (h *Host) Largest() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.largest
}

// Call answers a call of a program.
func (h *Host) Call(ctx context.Context, c core.Call) (core.Result, error) {
	h.mu.Lock()
	h.calls++
	h.mu.Unlock()
	if c.Server == "" {
		return h.own(c)
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
		return core.Result{}, (&core.Error{Kind: core.KindToolError, Message: "it broke: " + string(c.Arguments), Hint: "mend it"}).At(c.Server, c.Tool)
	case "list_big":
		return core.Result{Value: json.RawMessage(strings.Replace(big, "%s", "proto", 1))}, nil
	case "listBig":
		return core.Result{Value: json.RawMessage(strings.Replace(big, "%s", "class", 1))}, nil
	case "echo":
		if a.Text == "go" {
			h.let.happen()
		}
	case "slow":
		h.slow(ctx, a.MS)
	case "issue":
		moment()
		return value(map[string]any{"number": a.Number, "title": "issue " + string(rune('a'+a.Number%26)), "state": []string{"open", "closed"}[a.Number%2], "created": "2024-03-0" + string(rune('1'+a.Number%9)) + "T10:00:00Z"}), nil
	case "meet":
		return value(map[string]any{"met": h.meet(ctx, a.Count), "n": a.N}), nil
	case "page":
		next := map[string]string{"": "b", "b": "c"}[a.Cursor]
		return value(map[string]any{"items": []string{"item " + a.Cursor}, "next": next}), nil
	}
	return core.Result{Value: c.Arguments}, nil
}

// slow answers a call that a program expects to take ms milliseconds. Below 10, slow only yields the
// processor. Below 1000, it returns when the program calls echo with the text "go". Otherwise it
// returns when the program has ended.
func (h *Host) slow(ctx context.Context, ms int) {
	switch {
	case ms < 10:
		moment()
	case ms < 1000:
		h.let.before(ctx)
	default:
		<-ctx.Done()
	}
}

// moment yields the processor, so that several calls are in progress at the same time.
func moment() {
	for range 100 {
		runtime.Gosched()
	}
}

// meet waits until count calls of meet are in progress at the same time. It reports whether that happened before the
// program ended.
func (h *Host) meet(ctx context.Context, count int) bool {
	h.mu.Lock()
	h.meeting++
	if h.meeting >= count {
		h.met.happen()
	}
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		h.meeting--
		h.mu.Unlock()
	}()
	return h.met.before(ctx)
}

func value(v any) core.Result {
	data, _ := json.Marshal(v)
	return core.Result{Value: data}
}

// own answers calls of the engine's own functions.
func (h *Host) own(c core.Call) (core.Result, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var a arguments
	_ = json.Unmarshal(c.Arguments, &a)
	name := clean(a.Path)
	content, exists := h.Files[name]
	isDir := h.isDir(name)
	missing := &core.Error{Kind: core.KindRuntime, Message: "ENOENT: " + a.Path + ": no such file or folder"}
	switch c.Tool {
	case "read_file":
		if !exists {
			return core.Result{}, missing
		}
		return h.read(content, a), nil
	case "write_file":
		return h.write(name, content, a)
	case "list_files":
		if !isDir {
			return core.Result{}, missing
		}
		return h.list(name), nil
	case "stat_file":
		if !exists && !isDir {
			return core.Result{}, missing
		}
		return value(map[string]any{"dir": isDir, "bytes": len(content), "modified": "2024-05-06T07:08:09Z"}), nil
	case "remove_file":
		if !exists && !isDir {
			return core.Result{}, missing
		}
		delete(h.Files, name)
		delete(h.Files, name+"/.keep")
	case "rename_file":
		h.Files[clean(a.To)] = h.Files[clean(a.From)]
		delete(h.Files, clean(a.From))
	case "make_dir":
		h.Files[name+"/.keep"] = ""
	case "call", "search_tools":
		return core.Result{Value: c.Arguments}, nil
	default:
		return core.Result{}, core.Errorf(core.KindInternal, "", "%s is not there", c.Tool)
	}
	return value(map[string]any{}), nil
}

// arguments holds the arguments of the file functions.
type arguments struct {
	Path, From, To, Data string
	Append               bool
	Offset, Length       int
}

func clean(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

func (h *Host) isDir(name string) bool {
	_, kept := h.Files[name+"/.keep"]
	return kept || name == "" || name == "workspace" || strings.Contains(string(h.list(name).Value), "name")
}

func (h *Host) read(content string, a arguments) core.Result {
	most := h.Part
	if most == 0 {
		most = 4 << 20
	}
	part := content[min(a.Offset, len(content)):min(a.Offset+min(a.Length, most), len(content))]
	h.largest = max(h.largest, len(part))
	return value(map[string]any{"data": base64.StdEncoding.EncodeToString([]byte(part)), "bytes": len(content), "eof": a.Offset+len(part) >= len(content)})
}

func (h *Host) write(name, content string, a arguments) (core.Result, error) {
	if !h.Loose && !strings.HasPrefix(name, "workspace/") {
		return core.Result{}, (&core.Error{Kind: core.KindRuntime, Message: "EROFS: " + a.Path + ": only ./workspace/ can be written"}).WithHint("write to ./workspace/%s", path.Base(name))
	}
	data, _ := base64.StdEncoding.DecodeString(a.Data)
	if a.Append {
		data = append([]byte(content), data...)
	}
	h.Files[name] = string(data)
	return value(map[string]any{}), nil
}

func (h *Host) list(dir string) core.Result {
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
	return value(map[string]any{"entries": entries})
}
