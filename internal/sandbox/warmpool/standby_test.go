package warmpool

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/guest"
	"retort/internal/sandbox/sandboxtest"
	"retort/internal/sandbox/wire"
)

// TestMain lets the test binary act as a guest.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "guest" {
		if guest.Main(os.Stdin, os.Stdout) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// bare implements Guest with an unconfined child process.
type bare struct {
	in, out *os.File
	cmd     *exec.Cmd
	gone    chan struct{}
}

func startBare(context.Context) (Guest, error) {
	in, toGuest, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	fromGuest, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(os.Args[0], "guest")
	cmd.Env, cmd.Stdin, cmd.Stdout = []string{}, in, out
	err = cmd.Start()
	_, _ = in.Close(), out.Close()
	if err != nil {
		return nil, err
	}
	g := &bare{in: fromGuest, out: toGuest, cmd: cmd, gone: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(g.gone)
	}()
	return g, nil
}

func (g *bare) Read(b []byte) (int, error)                          { return g.in.Read(b) }
func (g *bare) Write(b []byte) (int, error)                         { return g.out.Write(b) }
func (g *bare) Close() error                                        { g.Kill(); _ = g.in.Close(); return g.out.Close() }
func (g *bare) Kill()                                               { _ = g.cmd.Process.Kill() }
func (g *bare) Gone() <-chan struct{}                               { return g.gone }
func (g *bare) Limit(core.Limits)                                   {}
func (g *bare) Peak() int64                                         { return 1 }
func (g *bare) Bounds() string                                      { return "nothing" }
func (g *bare) Explain(end *wire.ProgramEnd, _ core.CheckedProgram) { <-g.gone }

var bareKind = sandbox.BackendKind{Name: "bare", Strength: 1}

func have() sandbox.Capabilities {
	return sandbox.Capabilities{Name: "bare", Runtimes: []string{"quickjs"}, Strength: 1, Walls: []string{"none"}}
}

func newBare(k GuestKind) *Backend {
	k.Runtime = "quickjs"
	return New(Options{Kind: bareKind, Capabilities: have, Kinds: []GuestKind{k}})
}

// TestContract runs those tests of package sandboxtest that depend on how a guest is started, limited and ended.
// Other packages test the communication between guest and engine.
func TestContract(t *testing.T) {
	sandboxtest.RunPart(t, "quickjs", 1, func(*testing.T) sandbox.Backend { return newBare(GuestKind{Start: startBare}) }, append(sandboxtest.OfInterpreters(), "cancel", "refusals", "paused clock")...)
}

func runOne(t *testing.T, b *Backend, code string) sandbox.RunReport {
	t.Helper()
	s, err := b.Prepare(t.Context(), sandbox.SandboxSpec{Runtime: "quickjs", Limits: core.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := s.Run(t.Context(), core.CheckedProgram{Code: code}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestBadStarts checks that a guest that cannot be started, does not become ready or has the wrong runtime gives an
// error with the reason, and is ended.
func TestBadStarts(t *testing.T) {
	typed := core.Errorf(core.KindSandboxUnavailable, "x", "the disk is full").WithHint("make room")
	for name, test := range map[string]struct {
		start func(context.Context) (Guest, error)
		want  string
	}{
		"refused":  {func(context.Context) (Guest, error) { return nil, errors.New("no") }, "no bare sandbox could be started: no"},
		"in words": {func(context.Context) (Guest, error) { return nil, typed }, "the disk is full"},
		"mute":     {fakeStart(func(io.ReadWriter) {}), "it was not ready after 200ms"},
		"other":    {fakeStart(func(w io.ReadWriter) { _ = write(w, wire.ReadyFrame("python")) }), "it is a guest for python, not for quickjs"},
		"nonsense": {fakeStart(func(w io.ReadWriter) { _, _ = w.Write([]byte(strings.Repeat("nonsense", 100))) }), "the guest did not become ready"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBare(GuestKind{Start: test.start, Within: 200 * time.Millisecond})
			_, err := b.Prepare(t.Context(), sandbox.SandboxSpec{Runtime: "quickjs"})
			if e := core.AsError(err); err == nil || e.Kind != core.KindSandboxUnavailable && e.Kind != core.KindInternal || !strings.Contains(e.Message, test.want) || e.Hint == "" {
				t.Errorf("%v", err)
			}
			if err := b.Close(); err != nil { // waits for all guests
				t.Error(err)
			}
		})
	}
}

func write(w io.ReadWriter, f wire.Frame) error {
	return wire.NewConn(struct {
		io.ReadWriter
		io.Closer
	}{w, nil}).SendFrame(f)
}

// fake implements Guest without a process. The test supplies the function that writes the guest's output.
type fake struct {
	io.Reader
	io.Writer
	kill func()
	gone chan struct{}
}

func (f *fake) Close() error                                  { f.Kill(); return nil }
func (f *fake) Kill()                                         { f.kill() }
func (f *fake) Gone() <-chan struct{}                         { return f.gone }
func (f *fake) Limit(core.Limits)                             {}
func (f *fake) Peak() int64                                   { return 0 }
func (f *fake) Bounds() string                                { return "nothing" }
func (f *fake) Explain(*wire.ProgramEnd, core.CheckedProgram) {}

func fakeStart(do func(io.ReadWriter)) func(context.Context) (Guest, error) {
	return func(context.Context) (Guest, error) {
		in, toGuest := io.Pipe()
		fromGuest, out := io.Pipe()
		f := &fake{Reader: fromGuest, Writer: toGuest, gone: make(chan struct{})}
		f.kill = sync.OnceFunc(func() {
			_, _ = in.Close(), out.Close()
			close(f.gone)
		})
		go io.Copy(io.Discard, in)
		go do(struct {
			io.Reader
			io.Writer
		}{in, out})
		return f, nil
	}
}

// TestGuestGoes checks that a guest that ends without a message makes only its own program fail. It also checks that
// every report includes the backend's Warning.
func TestGuestGoes(t *testing.T) {
	b := New(Options{Kind: bareKind, Kinds: []GuestKind{{Runtime: "quickjs", Start: startBare}}, Capabilities: func() sandbox.Capabilities {
		c := have()
		c.Warning = "it is old"
		return c
	}})
	defer b.Close()
	s, err := b.Prepare(t.Context(), sandbox.SandboxSpec{Runtime: "quickjs", Limits: core.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	kill := sandbox.HostFunc(func(context.Context, core.ToolCall) (core.CallResult, error) {
		s.(*pooledSandbox).member.guest.Kill()
		return core.CallResult{}, nil
	})
	r, err := s.Run(t.Context(), core.CheckedProgram{Code: "await searchTools('x'); for (;;);"}, kill)
	if err != nil || r.Status != core.StatusError || r.Error == nil || r.Error.Hint == "" || r.Bounds != "nothing" || len(r.Warnings) != 1 || r.Warnings[0] != "it is old" {
		t.Errorf("%v %+v", err, r)
	}
	if r := runOne(t, b, "return 1"); string(r.Value) != "1" {
		t.Errorf("%+v", r)
	}
}

// TestAhead checks that no guest is started before the first request, unless Ahead is set.
func TestAhead(t *testing.T) {
	for ahead, want := range map[bool]int{false: 0, true: 2} {
		synctest.Test(t, func(t *testing.T) {
			greets := fakeStart(func(w io.ReadWriter) { _ = write(w, wire.ReadyFrame("quickjs")) })
			b := newBare(GuestKind{Start: greets, Ahead: ahead})
			b.kinds["quickjs"].pool.Room = func() bool { return true }
			time.Sleep(time.Hour)
			if n := len(b.kinds["quickjs"].pool.ReadyItems()); n != want {
				t.Errorf("%d guests wait, want %d", n, want)
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCommandsOnFiles checks that a command is not started if one of its arguments names a file of the workspace,
// because guests share no folders. If a command fails and its standard error names such a file, the result must
// contain an explanation.
func TestCommandsOnFiles(t *testing.T) {
	started := 0
	command := func(context.Context, sandbox.HostCommand, core.Limits) (sandbox.CommandResult, error) {
		started++
		return sandbox.CommandResult{Code: 1, Stderr: []byte("no ./workspace/b\n")}, nil
	}
	kinds := []GuestKind{{Runtime: "quickjs", Start: startBare, Warm: -1}}
	b := New(Options{Kind: bareKind, Capabilities: have, Kinds: kinds, Command: command})
	defer b.Close()
	s, err := b.Prepare(t.Context(), sandbox.SandboxSpec{Runtime: "quickjs", Limits: core.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	h := sandbox.HostFunc(func(ctx context.Context, _ core.ToolCall) (core.CallResult, error) {
		c := sandbox.HostCommand{Name: "cat", Args: []string{"./workspace/a"}, Folders: []sandbox.MountedPath{{Target: "/workspace"}}}
		_, err := s.(sandbox.CommandStarter).Start(ctx, c)
		refused := core.AsError(err)
		if started != 0 || refused == nil || refused.Kind != core.KindSandboxUnavailable || !strings.Contains(refused.Hint, "sandboxMode: process") {
			t.Errorf("%d were started: %+v", started, refused)
		}
		c.Args = nil
		ended, err := s.(sandbox.CommandStarter).Start(ctx, c)
		if err != nil || started != 1 || !strings.Contains(string(ended.Stderr), "sandboxMode: process") {
			t.Errorf("%q %v", ended.Stderr, err)
		}
		return core.CallResult{Value: []byte("1")}, nil
	})
	if r, err := s.Run(t.Context(), core.CheckedProgram{Code: "await searchTools('x')"}, h); err != nil || r.Status != core.StatusOK {
		t.Error(err, r)
	}
}
