package python

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"retort/internal/run"
	"retort/internal/testenv"
	"retort/internal/wire"
)

// guestProcess is a guest in a process of its own, without walls.
type guestProcess struct {
	in, out *os.File
	cmd     *exec.Cmd
	stderr  strings.Builder
}

func (g *guestProcess) Read(b []byte) (int, error)  { return g.out.Read(b) }
func (g *guestProcess) Write(b []byte) (int, error) { return g.in.Write(b) }

func (g *guestProcess) Close() error {
	_ = g.in.Close()
	return g.out.Close()
}

// interpreter is the Python to test with: that of RETORT_PYTHON, or python3.
func interpreter(t testing.TB) string {
	if path := os.Getenv("RETORT_PYTHON"); path != "" {
		return path
	}
	found := testenv.Need(t, "python")
	// What version managers put into PATH takes long to start.
	if real, err := exec.Command(found, "-c", "import sys; print(sys.executable)").Output(); err == nil {
		return strings.TrimSpace(string(real))
	}
	return found
}

// folder has the guest's files in it.
func folder(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range Files() {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o444); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// starter starts guests.
type starter struct{ python, dir, version string }

func newStarter(t testing.TB) starter {
	t.Helper()
	python := interpreter(t)
	version, err := exec.Command(python, "-c", "import platform; print(platform.python_version())").Output()
	if err != nil {
		t.Fatal(err)
	}
	return starter{python, folder(t), strings.TrimSpace(string(version))}
}

// start starts a guest, which has greeted when it returns.
func (s starter) start(t testing.TB) (*wire.Conn, *guestProcess) {
	t.Helper()
	in, toGuest, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromGuest, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	g := &guestProcess{in: toGuest, out: fromGuest, cmd: exec.Command(s.python, "-I", "-S", "-B", filepath.Join(s.dir, Main))}
	g.cmd.Env, g.cmd.Dir = []string{}, "/"
	g.cmd.Stdin, g.cmd.Stdout, g.cmd.Stderr = in, out, &g.stderr
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = in.Close(), out.Close()
	conn := wire.NewConn(g)
	t.Cleanup(func() { ends(t, g) })
	ready, err := wire.Greet(conn)
	if err != nil || ready.Runtime != "python" || !strings.HasPrefix(ready.Version, "3.") {
		t.Fatalf("%+v %v", ready, err)
	}
	return conn, g
}

// ends waits for the end of a guest whose input has ended.
func ends(t testing.TB, g *guestProcess) {
	_ = g.Close()
	late := time.AfterFunc(10*time.Second, func() {
		t.Error("the guest does not end with its input")
		_ = g.cmd.Process.Kill()
	})
	defer late.Stop()
	if _ = g.cmd.Wait(); g.stderr.Len() > 0 {
		t.Errorf("standard error: %s", g.stderr.String())
	}
}

func (s starter) run(t testing.TB, p run.Program, h wire.Host) wire.End {
	t.Helper()
	p.Limits = p.Limits.Or(run.Limits{Timeout: 20 * time.Second}).Or(run.DefaultLimits())
	conn, g := s.start(t)
	end, err := wire.Serve(context.Background(), conn, p, h)
	if err != nil {
		_ = g.cmd.Wait()
		t.Fatalf("%s\n%v: %v: %s", p.Code, err, g.cmd.ProcessState, g.stderr.String())
	}
	return end
}

// fakeHost has one server, and files in memory.
type fakeHost struct {
	mu      sync.Mutex
	files   map[string]string
	calls   int
	largest int // bytes of one read
	meeting int // calls of meet under way
	met     bool
}

var demoNamespaces = []run.Namespace{
	{Server: "demo-server", Global: "demo", Modules: []string{"demo-server", "demo", "demo_server"}, Functions: []run.Function{
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
	{Server: "math", Modules: []string{"math"}, Functions: []run.Function{{Name: "add", Tool: "add", Params: []string{"a", "b"}}}},
}

func (h *fakeHost) Call(ctx context.Context, c run.Call) (run.Result, error) {
	h.mu.Lock()
	h.calls++
	h.mu.Unlock()
	if c.Server == "" {
		return h.own(c)
	}
	var a struct {
		MS, Number, Count, N int
		Cursor               string
	}
	_ = json.Unmarshal(c.Arguments, &a)
	switch c.Tool {
	case "fail":
		return run.Result{}, (&run.Error{Kind: run.KindToolError, Message: "it broke: " + string(c.Arguments), Hint: "mend it"}).At(c.Server, c.Tool)
	case "listBig":
		return run.Result{Value: json.RawMessage(`{"z":12345678901234567890,"a":[9007199254740993,9007199254740991,1.2345678901234567,-9223372036854775808],"__class__":{"polluted":true},"t":"1234567890123456789"}`)}, nil
	case "slow":
		select {
		case <-time.After(time.Duration(a.MS) * time.Millisecond):
		case <-ctx.Done():
		}
	case "issue":
		time.Sleep(5 * time.Millisecond)
		return value(map[string]any{"number": a.Number, "title": "issue " + string(rune('a'+a.Number%26)), "state": []string{"open", "closed"}[a.Number%2], "created": "2024-03-0" + string(rune('1'+a.Number%9)) + "T10:00:00Z"}), nil
	case "meet":
		return value(map[string]any{"met": h.meet(a.Count), "n": a.N}), nil
	case "page":
		next := map[string]string{"": "b", "b": "c"}[a.Cursor]
		return value(map[string]any{"items": []string{"item " + a.Cursor}, "next": next}), nil
	}
	return run.Result{Value: c.Arguments}, nil
}

// meet waits until count calls of it are there at once, and says whether that
// happened before long.
func (h *fakeHost) meet(count int) bool {
	h.mu.Lock()
	h.meeting++
	if h.meeting >= count {
		h.met = true
	}
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		h.meeting--
		h.mu.Unlock()
	}()
	for range 200 {
		h.mu.Lock()
		met := h.met
		h.mu.Unlock()
		if met {
			return true
		}
		time.Sleep(5 * time.Millisecond)
	}
	return false
}

func value(v any) run.Result {
	data, _ := json.Marshal(v)
	return run.Result{Value: data}
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
	isDir := name == "" || name == "workspace" || strings.Contains(string(h.list(name)), "name")
	if _, kept := h.files[name+"/.keep"]; kept {
		isDir = true
	}
	switch c.Tool {
	case "read_file":
		if !exists {
			return run.Result{}, missing
		}
		part := content[min(a.Offset, len(content)):min(a.Offset+min(a.Length, 4<<20), len(content))]
		h.largest = max(h.largest, len(part))
		return value(map[string]any{"data": base64.StdEncoding.EncodeToString([]byte(part)), "bytes": len(content), "eof": a.Offset+len(part) >= len(content)}), nil
	case "write_file":
		if !strings.HasPrefix(name, "workspace/") {
			return run.Result{}, (&run.Error{Kind: run.KindRuntime, Message: "EROFS: " + a.Path + ": only ./workspace/ can be written"}).WithHint("write to ./workspace/%s", path.Base(name))
		}
		data, _ := base64.StdEncoding.DecodeString(a.Data)
		if a.Append {
			data = append([]byte(content), data...)
		}
		h.files[name] = string(data)
	case "list_files":
		if !isDir {
			return run.Result{}, missing
		}
		return run.Result{Value: h.list(name)}, nil
	case "stat_file":
		if !exists && !isDir {
			return run.Result{}, missing
		}
		return value(map[string]any{"dir": isDir, "bytes": len(content), "modified": "2024-05-06T07:08:09Z"}), nil
	case "remove_file":
		if !exists && !isDir {
			return run.Result{}, missing
		}
		delete(h.files, name)
		delete(h.files, name+"/.keep")
	case "rename_file":
		to := strings.TrimPrefix(path.Clean("/"+a.To), "/")
		h.files[to] = h.files[strings.TrimPrefix(path.Clean("/"+a.From), "/")]
		delete(h.files, strings.TrimPrefix(path.Clean("/"+a.From), "/"))
	case "make_dir":
		h.files[name+"/.keep"] = ""
	case "call", "search_tools":
		return run.Result{Value: c.Arguments}, nil
	default:
		return run.Result{}, run.Errorf(run.KindInternal, "", "%s is not built in this version of Retort", c.Tool)
	}
	return value(map[string]any{}), nil
}

func (h *fakeHost) list(dir string) json.RawMessage {
	type entry struct {
		Name  string `json:"name"`
		Dir   bool   `json:"dir"`
		Bytes int    `json:"bytes"`
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
		e := entry{first, nested, len(h.files[file])}
		if nested {
			e.Bytes = 0
		}
		if first != ".keep" && !slices.Contains(entries, e) {
			entries = append(entries, e)
		}
	}
	return value(map[string]any{"entries": entries}).Value
}
