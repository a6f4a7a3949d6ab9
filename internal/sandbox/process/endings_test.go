//go:build linux

package process

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox"
	"retort/internal/sandbox/warmpool"
	"retort/internal/sandbox/wire"
)

// self returns a command line that starts this test binary in another role, for example as a guest. TestMain selects
// the role by the first argument.
func self(t *testing.T, role ...string) []string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{path}, role...)
}

// childOf returns the child process of a sandbox.
func childOf(s sandbox.Sandbox) *guestChild {
	return s.(interface{ Guest() warmpool.Guest }).Guest().(*guestChild)
}

func runWith(t *testing.T, b *Backend, code string, l core.Limits) sandbox.RunReport {
	t.Helper()
	return runOn(t, b, quickjs, code, l)
}

func runOn(t *testing.T, b *Backend, runtime, code string, l core.Limits) sandbox.RunReport {
	t.Helper()
	l = l.WithDefaults(core.Limits{Timeout: testenv.Patience}).WithDefaults(core.DefaultLimits())
	s, err := b.Prepare(context.Background(), sandbox.SandboxSpec{Runtime: runtime, Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := s.Run(context.Background(), core.CheckedProgram{Name: "try", Code: code, Limits: l}, echo)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// runUntilCall runs a program and cancels it as soon as its guest makes a call.
func runUntilCall(t *testing.T, b *Backend, l core.Limits) sandbox.RunReport {
	t.Helper()
	l = l.WithDefaults(core.Limits{Timeout: testenv.Patience}).WithDefaults(core.DefaultLimits())
	s, err := b.Prepare(t.Context(), sandbox.SandboxSpec{Runtime: quickjs, Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := s.Run(ctx, core.CheckedProgram{Name: "try", Code: "return 1", Limits: l}, sandbox.HostFunc(func(ctx context.Context, _ core.ToolCall) (core.CallResult, error) {
		cancel()
		return core.CallResult{}, ctx.Err()
	}))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// violatingGuest implements a guest that violates the protocol. The argument manner selects the violation.
func violatingGuest(manner string) {
	conn := wire.NewConn(stdio{})
	conn.Accept(wire.GuestSizes())
	if manner == "mute" {
		testenv.Hang()
	}
	if manner == "dead" {
		fmt.Fprintln(os.Stderr, "cannot even start")
		os.Exit(3)
	}
	if manner == "old" {
		_ = conn.SendFrame(wire.Frame{Kind: wire.KindReady, Head: []byte(`{"protocol":99,"runtime":"quickjs"}`)})
		testenv.Hang()
	}
	_ = conn.SendFrame(wire.ReadyFrame("quickjs"))
	_, _ = conn.Read()
	_ = conn.SendFrame(wire.OutputFrame([]byte("before\n")))
	misbehave(conn, manner)
	testenv.Hang()
}

func misbehave(conn *wire.FrameConn, manner string) {
	raw := func(b ...byte) { _, _ = os.Stdout.Write(b) }
	switch manner {
	case "rubbish":
		raw([]byte("Hello, World! This is not a frame.")...)
	case "huge":
		raw(0xff, 0xff, 0xff, 0xff, byte(wire.KindDone), 0, 0, 0, 0, 0, 0, 0, 0)
	case "kind":
		_ = conn.SendFrame(wire.Frame{Kind: wire.KindStart})
	case "ready twice":
		_ = conn.SendFrame(wire.ReadyFrame("quickjs"))
	case "bad head":
		_ = conn.SendFrame(wire.Frame{Kind: wire.KindCall, Head: []byte("]["), Body: []byte("{}")})
	case "bad value":
		_ = conn.SendFrame(wire.DoneFrame(wire.ProgramDone{Status: core.StatusOK, HasValue: true}, []byte(`{"a":`)))
	case "bad status":
		_ = conn.SendFrame(wire.DoneFrame(wire.ProgramDone{Status: core.StatusDenied}, nil))
	case "failed without an error":
		_ = conn.SendFrame(wire.DoneFrame(wire.ProgramDone{Status: core.StatusError}, nil))
	case "large value":
		_ = conn.SendFrame(wire.DoneFrame(wire.ProgramDone{Status: core.StatusOK, HasValue: true}, bytes.Repeat([]byte("1"), 2000)))
	case "blames the host":
		_ = conn.SendFrame(wire.DoneFrame(wire.ProgramDone{Status: core.StatusError, Error: &core.Error{Kind: core.KindSandboxUnavailable, Message: "\xff" + strings.Repeat("x", 100_000)}}, nil))
	case "half a frame":
		raw(0, 0, 0, 100, byte(wire.KindDone))
		os.Exit(0)
	case "crash":
		panic("a fault of the engine")
	case "memory":
		fmt.Fprintln(os.Stderr, "fatal error: runtime: out of memory")
		os.Exit(2)
	case "floods":
		_ = conn.SendFrame(wire.CallFrame(1, wire.CallHead{Server: "s", Tool: "t"}, []byte("{}")))
		for {
			fmt.Fprintln(os.Stderr, strings.Repeat("noise", 1000))
		}
	}
}

type stdio struct{}

func (stdio) Read(b []byte) (int, error)  { return os.Stdin.Read(b) }
func (stdio) Write(b []byte) (int, error) { return os.Stdout.Write(b) }
func (stdio) Close() error                { return os.Stdin.Close() }

func TestRogueGuests(t *testing.T) {
	for _, test := range []struct {
		manner string
		status core.OutcomeStatus
		kind   core.Kind
		says   string
	}{
		{"rubbish", core.StatusError, core.KindRuntime, "protocol violation"},
		{"huge", core.StatusError, core.KindRuntime, "at most"},
		{"kind", core.StatusError, core.KindRuntime, "unexpected frame"},
		{"ready twice", core.StatusError, core.KindRuntime, "unexpected frame"},
		{"bad head", core.StatusError, core.KindRuntime, "the head of frame"},
		{"bad value", core.StatusError, core.KindRuntime, "not JSON"},
		{"bad status", core.StatusError, core.KindRuntime, "denied"},
		{"failed without an error", core.StatusError, core.KindRuntime, "without an error"},
		{"large value", core.StatusOutputLimit, core.KindLimit, "the returned value"},
		{"blames the host", core.StatusError, core.KindRuntime, "�xxx"},
		{"half a frame", core.StatusError, core.KindRuntime, "ended unexpectedly (exit status 0)"},
		{"crash", core.StatusError, core.KindRuntime, "exit status 2): panic: a fault of the engine"},
		{"memory", core.StatusMemoryLimit, core.KindLimit, "memory"},
		{"floods", core.StatusCancelled, core.KindCancelled, "cancelled"}, // once it has made a call
	} {
		t.Run(test.manner, func(t *testing.T) {
			b := New(Options{Command: self(t, "rogue", test.manner), Warm: -1})
			defer b.Close()
			r := runUntilCall(t, b, core.Limits{Result: 1000})
			if r.Status != test.status || r.Error == nil || r.Error.Kind != test.kind || !strings.Contains(r.Error.Message, test.says) || r.Value != nil {
				t.Errorf("%s %+v", r.Status, r.Error)
			}
			if string(r.Output) != "before\n" || r.Error != nil && len(r.Error.Message) > 70_000 {
				t.Errorf("output %q, message of %d bytes", r.Output, len(r.Error.Message))
			}
		})
	}
}

// TestCrashes checks that the error for a Python program that crashes its interpreter names the cause and a remedy.
func TestCrashes(t *testing.T) {
	b := New(Options{Warm: -1, Interpreters: []RuntimeInterpreter{interpreterHere(t, "python", core.DefaultLimits().Memory)}})
	defer b.Close()
	for _, test := range []struct {
		name, code string
		line       int
		says, hint string
	}{
		{"recursion in C", "import sys\nsys.setrecursionlimit(10**9)\ndef f(x):\n    return sorted([x], key=f)\nf(0)", 4, "the call stack overflowed", "endless recursion"},
		{"recursion of attributes", "import sys\nsys.setrecursionlimit(10**9)\nclass A:\n    def __getattr__(self, name): return getattr(self, name)\nA().b", 4, "the call stack overflowed", "endless recursion"},
		{"recursion in a thread", "import sys, threading\nsys.setrecursionlimit(10**9)\ndef f(x): return sorted([x], key=f)\nt = threading.Thread(target=f, args=(0,))\nt.start()\nt.join()", 0, "crashed python (signal: segmentation fault)", "endless recursion"},
		{"a wild pointer", "x = 1\nimport ctypes\nctypes.string_at(0)", 3, "crashed python (signal: segmentation fault)", "may have taken effect"},
		{"abort", "import os\nos.abort()", 2, "Aborted", "may have taken effect"},
		{"exit", "import os\nos._exit(7)", 0, "ended unexpectedly (exit status 7)", "must end with its last statement"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := runOn(t, b, "python", "print('before', flush=True)\n"+test.code, core.Limits{})
			e := r.Error
			if r.Status != core.StatusError || e == nil || e.Kind != core.KindRuntime || !strings.Contains(e.Message, test.says) || !strings.Contains(e.Hint, test.hint) {
				t.Fatalf("%s %+v", r.Status, e)
			}
			if test.line > 0 && e.Line != test.line+1 {
				t.Errorf("line %d", e.Line)
			}
		})
	}
}

func TestGuestsThatDoNotStart(t *testing.T) {
	for manner, says := range map[string]string{"dead": "cannot even start", "old": "protocol 99"} {
		b := New(Options{Command: self(t, "rogue", manner), Warm: -1})
		_, err := b.Prepare(context.Background(), sandbox.SandboxSpec{Runtime: "quickjs"})
		if e := core.AsError(err); e == nil || e.Kind != core.KindSandboxUnavailable || !strings.Contains(e.Message, says) {
			t.Errorf("%s: %v", manner, err)
		}
		_ = b.Close()
	}
	b := New(Options{Command: self(t, "rogue", "mute"), Warm: -1})
	b.greeting = 2 * testenv.Patience // so that the test fails if Close waits for it
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := b.Prepare(ctx, sandbox.SandboxSpec{Runtime: "quickjs"}); err == nil || core.AsError(err).Kind != core.KindCancelled {
		t.Errorf("mute: %v", err)
	}
	closed := make(chan error, 1)
	go func() { closed <- b.Close() }()
	if err := testenv.Receive(t, closed, "the end of a child that says nothing"); err != nil {
		t.Error(err)
	}
	b = New(Options{Command: []string{"/nonexistent/retort"}})
	if _, err := b.Prepare(context.Background(), sandbox.SandboxSpec{Runtime: "quickjs"}); err == nil || core.AsError(err).Kind != core.KindSandboxUnavailable {
		t.Errorf("nonexistent: %v", err)
	}
	_ = b.Close()
}

// TestKilledChild checks the report of a program whose child is killed from outside while it runs.
func TestKilledChild(t *testing.T) {
	b := New(Options{})
	defer b.Close()
	l := core.Limits{Timeout: testenv.Patience}.WithDefaults(core.DefaultLimits())
	s, err := b.Prepare(context.Background(), sandbox.SandboxSpec{Runtime: "quickjs", Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	host := sandbox.HostFunc(func(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
		_ = childOf(s).cmd.Process.Kill()
		<-ctx.Done() // the call is cancelled, since nobody is left to answer
		return core.CallResult{}, ctx.Err()
	})
	r, err := s.Run(context.Background(), core.CheckedProgram{Code: "console.log('before'); await callMCPTool('x')", Limits: l}, host)
	if err != nil || r.Status != core.StatusError || !strings.Contains(r.Error.Message, "signal: killed") || string(r.Output) != "before\n" {
		t.Errorf("%v, %s %v %q", err, r.Status, r.Error, r.Output)
	}
}

// TestCloseEndsChild checks that closing a sandbox that has run no program ends its child, even while the backend
// stays open.
func TestCloseEndsChild(t *testing.T) {
	b := New(Options{Warm: -1, MaxWarm: -1})
	defer b.Close()
	prepared, err := b.Prepare(t.Context(), sandbox.SandboxSpec{Runtime: quickjs, Limits: core.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	c := childOf(prepared)
	if err := prepared.Close(); err != nil {
		t.Error(err)
	}
	testenv.Receive(t, c.exited, "the end of the child of a closed sandbox")
}

// TestDeadWarmChild checks that a program never gets a child that died while it was waiting for a program.
func TestDeadWarmChild(t *testing.T) {
	b := New(Options{Warm: 1})
	defer b.Close()
	for range 3 {
		testenv.WaitUntil(t, "a child waits", func() bool { return len(b.ReadyGuests(quickjs)) > 0 })
		c := b.ReadyGuests(quickjs)[0].(*guestChild)
		_ = c.cmd.Process.Kill()
		<-c.exited
		if r := runWith(t, b, "return 1", core.Limits{}); r.Status != core.StatusOK {
			t.Fatalf("%s %v", r.Status, r.Error)
		}
	}
}

// TestChildEnvironment checks, from outside, the environment, working directory, descriptors, session and limits of a
// child process.
func TestChildEnvironment(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("there is no /proc")
	}
	leak, err := syscall.Open("/dev/null", syscall.O_RDONLY, 0) // inherited by every child that lets it
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(leak)
	t.Setenv("RETORT_TEST_SECRET", "hidden")
	b := New(Options{Warm: -1})
	defer b.Close()
	s, err := b.Prepare(context.Background(), sandbox.SandboxSpec{Runtime: "quickjs", Limits: core.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	pid := childOf(s).cmd.Process.Pid
	look := func(host sandbox.HostFunc) {
		r, err := s.Run(context.Background(), core.CheckedProgram{Code: "await callMCPTool('x')"}, host)
		if err != nil || r.Status != core.StatusOK {
			t.Fatalf("%v, %s %v", err, r.Status, r.Error)
		}
	}
	look(func(context.Context, core.ToolCall) (core.CallResult, error) {
		if env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); err != nil || string(env) != oneThread+"\x00" {
			t.Errorf("environment: %q, %v", env, err)
		}
		if dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err != nil || dir != "/" {
			t.Errorf("directory: %q, %v", dir, err)
		}
		if open := descriptors(t, pid); strings.Trim(open, "p") != "" {
			t.Errorf("descriptors: %q", open)
		}
		if sid, err := unix.Getsid(pid); err != nil || sid != pid {
			t.Errorf("session: %d, %v", sid, err)
		}
		limits, _ := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
		for _, want := range []string{"Max core file size        0", "Max file size             0", "Max open files            64"} {
			if !strings.Contains(string(limits), want) {
				t.Errorf("limits lack %q:\n%s", want, limits)
			}
		}
		return core.CallResult{}, nil
	})
}

// descriptors lists the open descriptors of a process, except those that the Go runtime opened itself. A pipe is
// listed as "p", any other file by its target.
func descriptors(t *testing.T, pid int) string {
	var out strings.Builder
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Error(err)
	}
	for _, entry := range entries {
		target, _ := os.Readlink(filepath.Join(fmt.Sprintf("/proc/%d/fd", pid), entry.Name()))
		switch {
		case strings.HasPrefix(target, "pipe:"):
			out.WriteByte('p')
		case strings.HasPrefix(target, "anon_inode:"), strings.HasPrefix(filepath.Base(target), "cpu."): // the last are quotas that Go asks for
		default:
			out.WriteString(" " + target)
		}
	}
	return out.String()
}

// TestMemoryIsWatched checks that the memory of a guest is watched from outside: a guest that does not limit itself is
// ended when it exceeds its memory limit.
func TestMemoryIsWatched(t *testing.T) {
	b := New(Options{Command: self(t, "devour"), Warm: -1})
	defer b.Close()
	r := runWith(t, b, "", core.Limits{Memory: 16 << 20, Result: 1 << 20})
	if r.Status != core.StatusMemoryLimit || r.Error.Kind != core.KindLimit || r.MemoryBytes < 32<<20 || r.MemoryBytes > 1<<30 {
		t.Errorf("%s %v, %d MB", r.Status, r.Error, r.MemoryBytes>>20)
	}
}

// useUpMemory implements a guest that allocates and keeps more memory than its limit allows, without limiting itself.
func useUpMemory() {
	conn := wire.NewConn(stdio{})
	conn.Accept(wire.GuestSizes())
	_ = conn.SendFrame(wire.ReadyFrame("quickjs"))
	_, _ = conn.Read()
	defer runtime.KeepAlive(bytes.Repeat([]byte{1}, 256<<20))
	testenv.Hang()
}

// TestKilledEngine checks that waiting, busy and sleeping children of every runtime end when their engine is killed.
func TestKilledEngine(t *testing.T) {
	for _, runtime := range testedRuntimes {
		t.Run(runtime, func(t *testing.T) {
			command := self(t, "engine", runtime)
			if runtime != quickjs {
				command = append(command, interpreterHere(t, runtime, 0).Command)
			}
			pids := killEngine(t, command)
			for _, pid := range pids {
				testenv.WaitUntil(t, fmt.Sprintf("child %d has ended with its engine", pid), func() bool { return !isRunning(pid) })
			}
		})
	}
}

// killEngine starts an engine, checks that its children are running, and kills the engine. It returns the children's
// process ids.
func killEngine(t *testing.T, command []string) (pids []int) {
	t.Helper()
	engine := exec.Command(command[0], command[1:]...)
	engine.Stderr = os.Stderr
	out, err := engine.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		err = json.Unmarshal([]byte(line), &pids)
	}
	for _, pid := range pids {
		if !isRunning(pid) {
			t.Errorf("child %d is not there", pid)
		}
	}
	_ = engine.Process.Kill()
	_ = engine.Wait()
	if err != nil || len(pids) < 4 {
		t.Fatalf("children %s, %v", line, err)
	}
	return pids
}

// isRunning reports whether a process exists and is not a zombie (a process that has ended and was not waited for).
func isRunning(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	_, after, _ := bytes.Cut(stat, []byte(") "))
	return !bytes.HasPrefix(after, []byte("Z"))
}

// host implements the main function of an engine, the host of sandboxes. The engine keeps children busy, sleeping and
// waiting, and prints their process ids. The arguments are a runtime and, unless it is built in, the path of its
// interpreter.
func host(arguments ...string) {
	name, o := arguments[0], Options{Warm: 2}
	busy, idle := "await callMCPTool('x'); for (;;);", "await callMCPTool('x'); await sleep(1e6)"
	if name != quickjs {
		o.Interpreters = []RuntimeInterpreter{described(name, arguments[1], core.DefaultLimits().Memory)}
	}
	if name == "python" {
		busy, idle = "call_mcp_tool('x')\nwhile True: pass", "call_mcp_tool('x')\nsleep(1e6)"
	}
	b := New(o)
	pids := []int{}
	inCall := make(chan struct{}, 2)
	for _, code := range []string{busy, idle} {
		s, err := b.Prepare(context.Background(), sandbox.SandboxSpec{Runtime: name, Limits: core.DefaultLimits()})
		if err != nil {
			panic(err)
		}
		pids = append(pids, childOf(s).cmd.Process.Pid)
		go func() {
			_, _ = s.Run(context.Background(), core.CheckedProgram{Code: code}, sandbox.HostFunc(func(context.Context, core.ToolCall) (core.CallResult, error) {
				inCall <- struct{}{}
				return core.CallResult{}, nil
			}))
		}()
	}
	<-inCall
	<-inCall
	if !testenv.Poll(func() bool { return len(b.ReadyGuests(name)) >= 2 }) {
		panic("no children wait")
	}
	for _, g := range b.ReadyGuests(name) {
		pids = append(pids, g.(*guestChild).cmd.Process.Pid)
	}
	_ = json.NewEncoder(os.Stdout).Encode(pids)
	testenv.Hang()
}

// TestGuestEndsWithItsInput checks that a busy, a sleeping and a waiting guest exit when their input is closed. This
// matters on systems where no signal kills a child when its engine dies.
func TestGuestEndsWithItsInput(t *testing.T) {
	for _, code := range []string{"for (;;);", "await sleep(1e6)", ""} {
		command := self(t, "guest")
		cmd := exec.CommandContext(testenv.Context(t), command[0], command[1:]...)
		in, err1 := cmd.StdinPipe()
		out, err2 := cmd.StdoutPipe()
		if err := errors.Join(err1, err2, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		conn := wire.NewConn(struct {
			io.Reader
			io.WriteCloser
		}{out, in})
		if _, err := wire.ReadGreeting(conn); err != nil {
			t.Fatal(err)
		}
		if code != "" {
			start, _ := json.Marshal(wire.ProgramStart{Memory: 1 << 28, Result: 1000})
			_ = conn.SendFrame(wire.Frame{Kind: wire.KindStart, Head: start, Body: []byte("console.log('on');" + code)})
			conn.Accept(wire.FrameSizes{wire.KindOutput: 100})
			if f, err := conn.Read(); err != nil || string(f.Body) != "on\n" {
				t.Errorf("output %q, %v", f.Body, err)
			}
		}
		_ = conn.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%q: %v", code, err)
		}
	}
}
