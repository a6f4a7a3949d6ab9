package guest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"retort/internal/run"
	"retort/internal/wire"
)

// pipeEnd is the host's end of the connection to a guest in this process.
type pipeEnd struct {
	io.ReadCloser
	io.WriteCloser
}

func (p pipeEnd) Close() error { return p.WriteCloser.Close() }

// newGuestConn starts a guest in this process.
func newGuestConn(t testing.TB) *wire.Conn {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = outW.CloseWithError(Main(inR, outW))
	}()
	t.Cleanup(func() {
		_ = inW.Close()
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Error("the guest does not end with its input")
		}
	})
	conn := wire.NewConn(pipeEnd{outR, inW})
	if _, err := wire.Greet(conn); err != nil {
		t.Fatal(err)
	}
	return conn
}

func runProgram(t testing.TB, p run.Program, h wire.Host) wire.End {
	t.Helper()
	p.Limits = p.Limits.Or(run.Limits{Timeout: 20 * time.Second}).Or(run.DefaultLimits())
	end, err := wire.Serve(context.Background(), newGuestConn(t), p, h)
	if err != nil {
		t.Fatal(err)
	}
	return end
}

// fakeHost has one server, and files in memory.
type fakeHost struct {
	mu    sync.Mutex
	files map[string]string
	calls int
}

var demoNamespaces = []run.Namespace{
	{Server: "demo-server", Global: "demo", Modules: []string{"demo-server", "demo"}, Functions: []run.Function{
		{Name: "echo", Tool: "echo", Params: []string{"text", "times"}},
		{Name: "fail", Tool: "fail", Params: []string{"message"}},
		{Name: "listBig", Tool: "list_big"},
		{Name: "slow", Tool: "slow", Params: []string{"ms"}},
	}},
	{Server: "console", Modules: []string{"console"}, Functions: []run.Function{{Name: "beep", Tool: "beep"}}},
}

func (h *fakeHost) Call(ctx context.Context, c run.Call) (run.Result, error) {
	h.mu.Lock()
	h.calls++
	h.mu.Unlock()
	if c.Server == "" {
		return h.own(c)
	}
	switch c.Tool {
	case "fail":
		return run.Result{}, (&run.Error{Kind: run.KindToolError, Message: "it broke: " + string(c.Arguments), Hint: "mend it"}).At(c.Server, c.Tool)
	case "list_big":
		return run.Result{Value: json.RawMessage(`{"z":12345678901234567890,"a":[9007199254740993,9007199254740991,1.2345678901234567,-9223372036854775808],"__proto__":{"polluted":true},"t":"1234567890123456789"}`)}, nil
	case "slow":
		var a struct{ MS int }
		_ = json.Unmarshal(c.Arguments, &a)
		select {
		case <-time.After(time.Duration(a.MS) * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return run.Result{Value: c.Arguments}, nil
}

// own answers the engine's own functions.
func (h *fakeHost) own(c run.Call) (run.Result, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var a struct {
		Path, From, To, Data string
		Append               bool
		Offset, Length       int
	}
	_ = json.Unmarshal(c.Arguments, &a)
	name := strings.TrimPrefix(path.Clean("/"+a.Path), "/")
	content, exists := h.files[name]
	missing := &run.Error{Kind: run.KindRuntime, Message: "ENOENT: " + a.Path + ": no such file or folder"}
	var answer any = map[string]any{}
	switch c.Tool {
	case "read_file":
		if !exists {
			return run.Result{}, missing
		}
		part := content[min(a.Offset, len(content)):min(a.Offset+min(a.Length, 4), len(content))] // at most four bytes at a time
		answer = map[string]any{"data": base64.StdEncoding.EncodeToString([]byte(part)), "bytes": len(content), "eof": a.Offset+len(part) >= len(content)}
	case "write_file":
		data, _ := base64.StdEncoding.DecodeString(a.Data)
		if a.Append {
			data = append([]byte(content), data...)
		}
		h.files[name] = string(data)
	case "list_files":
		return run.Result{Value: h.list(name)}, nil
	case "stat_file":
		isDir := strings.Contains(string(h.list(name)), "name")
		if !exists && !isDir {
			return run.Result{}, missing
		}
		answer = map[string]any{"dir": isDir, "bytes": len(content), "modified": "2024-05-06T07:08:09Z"}
	case "remove_file":
		if !exists {
			return run.Result{}, missing
		}
		delete(h.files, name)
	case "rename_file":
		h.files[strings.TrimPrefix(a.To, "/")] = h.files[strings.TrimPrefix(a.From, "/")]
		delete(h.files, strings.TrimPrefix(a.From, "/"))
	case "make_dir":
	case "call", "search_tools":
		return run.Result{Value: c.Arguments}, nil
	default:
		return run.Result{}, run.Errorf(run.KindInternal, "", "%s is not there", c.Tool)
	}
	value, _ := json.Marshal(answer)
	return run.Result{Value: value}, nil
}

func (h *fakeHost) list(dir string) json.RawMessage {
	type entry struct {
		Name string `json:"name"`
		Dir  bool   `json:"dir"`
	}
	entries := []entry{}
	for _, file := range slices.Sorted(maps.Keys(h.files)) {
		rest := strings.TrimPrefix(file, dir+"/")
		if dir == "" {
			rest = file
		} else if rest == file {
			continue
		}
		first, _, nested := strings.Cut(rest, "/")
		if e := (entry{first, nested}); !slices.Contains(entries, e) {
			entries = append(entries, e)
		}
	}
	value, _ := json.Marshal(map[string]any{"entries": entries})
	return value
}
