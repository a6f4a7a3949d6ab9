package warmpool

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/wire"
	"retort/internal/sandbox/wire/mux"
)

// greeter implements a ConnectionProxy that sends "hello" on each connection and then waits for its end.
type greeter struct{ sandbox.HostFunc }

func (greeter) ServeConn(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_, _ = io.WriteString(conn, "hello")
	_, _ = io.Copy(io.Discard, conn)
}

// relaying returns a function that starts fake guests behind a relay. The argument do is a function that plays both
// the relay and the guest.
func relaying(do func(m *mux.StreamMux)) func(context.Context) (Guest, error) {
	return func(context.Context) (Guest, error) {
		near, far := net.Pipe()
		f := &fake{Reader: near, Writer: near, gone: make(chan struct{})}
		f.kill = sync.OnceFunc(func() {
			_, _ = near.Close(), far.Close()
			close(f.gone)
		})
		m := mux.New(far, nil)
		go func() { _ = m.ServeFrames() }()
		go do(m)
		return f, nil
	}
}

// TestRelay checks that a running program's connections reach its ToolHost if that is a ConnectionProxy, and are
// closed otherwise. It also checks that connections are closed if they are opened before the program runs.
func TestRelay(t *testing.T) {
	early, said := make(chan string, 9), make(chan string, 1)
	connect := func(m *mux.StreamMux, told chan string) {
		l, err := m.Open()
		if err != nil {
			return // a guest that nobody needed
		}
		greeting := make([]byte, 5)
		n, _ := io.ReadFull(l, greeting)
		told <- string(greeting[:n])
	}
	guest := func(m *mux.StreamMux) {
		conn := wire.NewConn(m.FirstStream())
		conn.Accept(wire.GuestSizes())
		connect(m, early) // ends before Prepare returns, so before there is a program
		_ = conn.SendFrame(wire.ReadyFrame("quickjs"))
		if _, err := conn.Read(); err != nil {
			return
		}
		connect(m, said)
		_ = conn.SendFrame(wire.DoneFrame(wire.ProgramDone{Status: core.StatusOK}, nil))
	}
	for name, want := range map[string]string{"a proxy": "hello", "none": ""} {
		b := newBare(GuestKind{Start: relaying(guest), Relayed: true, Warm: -1})
		s, err := b.Prepare(t.Context(), sandbox.SandboxSpec{Runtime: "quickjs", Limits: core.DefaultLimits()})
		if err != nil {
			t.Fatal(err)
		}
		if got := <-early; got != "" {
			t.Errorf("%s: %q before its program", name, got)
		}
		var h sandbox.ToolHost = greeter{}
		if name == "none" {
			h = sandbox.HostFunc(nil)
		}
		r, err := s.Run(t.Context(), core.CheckedProgram{Code: "1"}, h)
		if got := <-said; err != nil || r.Status != core.StatusOK || got != want {
			t.Errorf("%s: %v %+v %q", name, err, r, got)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestCommands checks that a sandbox starts commands only while its program runs and only if the backend can run
// commands.
func TestCommands(t *testing.T) {
	o := Options{Kind: bareKind, Capabilities: have, Kinds: []GuestKind{{Runtime: "quickjs", Start: startBare, Warm: -1}}}
	for _, has := range []bool{false, true} {
		if has {
			o.Command = func(_ context.Context, c sandbox.HostCommand, l core.Limits) (sandbox.CommandResult, error) {
				return sandbox.CommandResult{Stdout: []byte(c.Name), Code: int(l.Memory >> 20)}, nil
			}
		}
		b := New(o)
		s, err := b.Prepare(t.Context(), sandbox.SandboxSpec{Runtime: "quickjs", Limits: core.Limits{Memory: 7 << 20}.WithDefaults(core.DefaultLimits())})
		if err != nil {
			t.Fatal(err)
		}
		start := func() (sandbox.CommandResult, *core.Error) {
			ended, err := s.(sandbox.CommandStarter).Start(t.Context(), sandbox.HostCommand{Name: "x"})
			return ended, core.AsError(err)
		}
		if _, err := start(); err == nil {
			t.Error("a command starts before its program")
		}
		h := sandbox.HostFunc(func(context.Context, core.ToolCall) (core.CallResult, error) {
			ended, err := start()
			if has && (err != nil || string(ended.Stdout) != "x" || ended.Code != 7) || !has && (err == nil || err.Kind != core.KindSandboxUnavailable) {
				t.Errorf("%v: %+v %v", has, ended, err)
			}
			return core.CallResult{Value: []byte("1")}, nil
		})
		if r, err := s.Run(t.Context(), core.CheckedProgram{Code: "await searchTools('x')"}, h); err != nil || r.Status != core.StatusOK {
			t.Error(err, r)
		}
		if _, err := start(); err == nil {
			t.Error("a command starts after its program")
		}
		_ = b.Close()
	}
}
