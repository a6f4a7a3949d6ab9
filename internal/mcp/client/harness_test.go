//go:build unix

package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/base/reaper"
	"retort/internal/core"
	"retort/internal/devel/testenv"
)

// processMarker names the environment variable that is set in the server processes of a test, so that the test can find
// them.
const processMarker = "RETORT_TEST_MARKER"

// newPool returns a pool that is closed at the end of the test. After that, it checks that all processes of servers
// have ended and that testenv.CheckLeaks finds nothing. The timeouts that servers do not set are longer than
// testenv.Patience, so that the test fails if Close waits for a running call or connection attempt.
func newPool(t *testing.T, o Options, servers ...ServerSpec) *Pool {
	t.Helper()
	testenv.CheckLeaks(t)
	mark := fmt.Sprintf("%d-%s", os.Getpid(), t.Name())
	for i := range servers {
		s := &servers[i]
		s.CallTimeout = orDuration(s.CallTimeout, 2*testenv.Patience)
		s.ConnectTimeout = orDuration(s.ConnectTimeout, 2*testenv.Patience)
		s.probe = orDuration(s.probe, 2*testenv.Patience)
		s.exit = orDuration(s.exit, 2*testenv.Patience)
		if s.Command != "" {
			env := map[string]string{processMarker: mark}
			for k, v := range s.Env {
				env[k] = v
			}
			s.Env = env
		}
	}
	p := New(servers, o)
	t.Cleanup(func() {
		closed := make(chan error, 1)
		go func() { closed <- p.Close() }()
		if err := testenv.Receive(t, closed, "the end of Close"); err != nil {
			t.Errorf("close: %v", err)
		}
		if r, ok := o.Processes.(*reaper.Reaper); ok {
			r.Close(0)
		}
		checkProcesses(t, mark)
	})
	return p
}

// hostileServer returns a ServerSpec that runs this test binary as a misbehaving server. The argument mode names the
// misbehaviour.
func hostileServer(mode string) ServerSpec {
	return ServerSpec{Name: "s", Command: os.Args[0], Args: []string{"hostile", mode}}
}

// checkProcesses fails the test if a process marked with mark does not end, and kills such processes.
func checkProcesses(t *testing.T, mark string) {
	t.Helper()
	var left []int
	if testenv.Poll(func() bool { left = markedProcesses(mark); return len(left) == 0 }) {
		return
	}
	t.Errorf("processes left: %v", left)
	for _, pid := range left {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// markedProcesses returns the ids of the running processes marked with mark in their environment.
func markedProcesses(mark string) (pids []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		env, _ := os.ReadFile(path)
		if strings.Contains("\x00"+string(env), "\x00"+processMarker+"="+mark+"\x00") {
			var pid int
			fmt.Sscan(filepath.Base(filepath.Dir(path)), &pid)
			pids = append(pids, pid)
		}
	}
	return pids
}

// wantError checks that an error has the given kind, and that its message or hint contains each of the texts. It
// returns the error.
func wantError(t *testing.T, err error, kind core.Kind, texts ...string) *core.Error {
	t.Helper()
	var e *core.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v (%T), want an error of kind %s", err, err, kind)
	}
	if e.Kind != kind {
		t.Errorf("kind %s, want %s: %s (%s)", e.Kind, kind, e.Message, e.Hint)
	}
	for _, text := range texts {
		if !strings.Contains(e.Message+"\n"+e.Hint, text) {
			t.Errorf("%q (hint %q) lacks %q", e.Message, e.Hint, text)
		}
	}
	return e
}

func mustCall(t *testing.T, p *Pool, server, tool string) string {
	t.Helper()
	r, err := p.Call(t.Context(), server, tool, nil)
	if err != nil {
		t.Fatalf("call %s: %v", tool, err)
	}
	return string(r)
}

// text returns the text of the first content item of a tool result.
func text(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var r struct {
		Content []struct{ Text string }
	}
	if err := json.Unmarshal(raw, &r); err != nil || len(r.Content) == 0 {
		t.Fatalf("%v in %s", err, raw)
	}
	return r.Content[0].Text
}

// sdkServer returns an SDK server with one tool. The tool's answer has a large integer and an order of keys that
// decoding would change.
func sdkServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "good", Version: "1.2.3"}, &mcp.ServerOptions{Instructions: "be kind"})
	addEcho(s, "echo")
	return s
}

const exactSchema = `{"type":"object","zz":9007199254740993,"aa":1}`

func addEcho(s *mcp.Server, name string) {
	s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(exactSchema)},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{StructuredContent: json.RawMessage(`{"z":9007199254740993,"args":` + string(r.Params.Arguments) + `}`)}, nil
		})
}

// dialSDK returns a dial function that serves an SDK server over a pipe.
func dialSDK(t *testing.T, s *mcp.Server) func(context.Context) (io.ReadWriteCloser, error) {
	return func(context.Context) (io.ReadWriteCloser, error) {
		ours, theirs := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = s.Run(context.Background(), &mcp.IOTransport{Reader: theirs, Writer: theirs})
		}()
		t.Cleanup(func() { theirs.Close(); <-done })
		return ours, nil
	}
}

// dialScripted returns a dial function that serves a scripted server over a pipe. prepare sets the server's
// behaviour.
func dialScripted(prepare func(s *scripted)) func(context.Context) (io.ReadWriteCloser, error) {
	return func(context.Context) (io.ReadWriteCloser, error) {
		ours, theirs := net.Pipe()
		s := newScripted(theirs, theirs)
		prepare(s)
		go func() { s.serve(); theirs.Close() }()
		return ours, nil
	}
}

// dialMode returns a dial function that serves the hostile server of a mode over a pipe. It works
// for modes that need no process.
func dialMode(mode string) func(context.Context) (io.ReadWriteCloser, error) {
	return dialScripted(func(s *scripted) { maps.Copy(s.on, onMethod[mode]) })
}

// inBubble returns a pool for use inside a testing/synctest bubble. The test need not check for leaked goroutines,
// because the bubble ends only when every goroutine that the pool started has ended.
func inBubble(t *testing.T, o Options, servers ...ServerSpec) *Pool {
	p := New(servers, o)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// startNode starts a Node.js server that listens on the port in the variable PORT. It waits until the server listens
// and returns the port.
func startNode(t *testing.T, node string, args ...string) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port = l.Addr().(*net.TCPAddr).Port
	l.Close()
	cmd := exec.Command(node, args...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("PORT=%d", port))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	testenv.WaitUntil(t, "the server listens", func() bool {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return port
}
