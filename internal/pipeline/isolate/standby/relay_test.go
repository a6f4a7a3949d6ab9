package standby

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"retort/internal/pipeline/isolate"
	"retort/internal/run"
	"retort/internal/wire"
	"retort/internal/wire/lanes"
)

// greeter is a Host that greets whoever connects, and waits for the end.
type greeter struct{ isolate.HostFunc }

func (greeter) ServeConn(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_, _ = io.WriteString(conn, "hello")
	_, _ = io.Copy(io.Discard, conn)
}

// relaying starts a guest behind a relay, which are both the function.
func relaying(do func(m *lanes.Mux)) func(context.Context) (Guest, error) {
	return func(context.Context) (Guest, error) {
		near, far := net.Pipe()
		f := &fake{Reader: near, Writer: near, gone: make(chan struct{})}
		f.kill = sync.OnceFunc(func() {
			_, _ = near.Close(), far.Close()
			close(f.gone)
		})
		m := lanes.New(far, nil)
		go func() { _ = m.Serve() }()
		go do(m)
		return f, nil
	}
}

// What a program connects to is its Host, while it runs; a Host that is no Proxy is nobody.
func TestRelay(t *testing.T) {
	early, said := make(chan string, 9), make(chan string, 1)
	connect := func(m *lanes.Mux, told chan string) {
		l, err := m.Open()
		if err != nil {
			return // a guest that nobody needed
		}
		greeting := make([]byte, 5)
		n, _ := io.ReadFull(l, greeting)
		told <- string(greeting[:n])
	}
	guest := func(m *lanes.Mux) {
		conn := wire.NewConn(m.First())
		conn.Accept(wire.GuestSizes())
		connect(m, early) // ends before Prepare returns, so before there is a program
		_ = conn.Send(wire.ReadyFrame("quickjs"))
		if _, err := conn.Read(); err != nil {
			return
		}
		connect(m, said)
		_ = conn.Send(wire.DoneFrame(wire.Done{Status: run.StatusOK}, nil))
	}
	for name, want := range map[string]string{"a proxy": "hello", "none": ""} {
		b := newBare(Kind{Start: relaying(guest), Relayed: true, Warm: -1})
		s, err := b.Prepare(t.Context(), isolate.Spec{Runtime: "quickjs", Limits: run.DefaultLimits()})
		if err != nil {
			t.Fatal(err)
		}
		if got := <-early; got != "" {
			t.Errorf("%s: %q before its program", name, got)
		}
		var h isolate.Host = greeter{}
		if name == "none" {
			h = isolate.HostFunc(nil)
		}
		r, err := s.Run(t.Context(), run.Program{Code: "1"}, h)
		if got := <-said; err != nil || r.Status != run.StatusOK || got != want {
			t.Errorf("%s: %v %+v %q", name, err, r, got)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A sandbox starts commands while its program runs, for backends that have them.
func TestCommands(t *testing.T) {
	o := Options{Name: "bare", Capabilities: have, Kinds: []Kind{{Runtime: "quickjs", Start: startBare, Warm: -1}}}
	for _, has := range []bool{false, true} {
		if has {
			o.Command = func(_ context.Context, c isolate.Command, l run.Limits) (isolate.Ended, error) {
				return isolate.Ended{Stdout: []byte(c.Name), Code: int(l.Memory >> 20)}, nil
			}
		}
		b := New(o)
		s, err := b.Prepare(t.Context(), isolate.Spec{Runtime: "quickjs", Limits: run.Limits{Memory: 7 << 20}.Or(run.DefaultLimits())})
		if err != nil {
			t.Fatal(err)
		}
		start := func() (isolate.Ended, *run.Error) {
			ended, err := s.(isolate.Commander).Start(t.Context(), isolate.Command{Name: "x"})
			return ended, run.AsError(err)
		}
		if _, err := start(); err == nil {
			t.Error("a command starts before its program")
		}
		h := isolate.HostFunc(func(context.Context, run.Call) (run.Result, error) {
			ended, err := start()
			if has && (err != nil || string(ended.Stdout) != "x" || ended.Code != 7) || !has && (err == nil || err.Kind != run.KindSandboxUnavailable) {
				t.Errorf("%v: %+v %v", has, ended, err)
			}
			return run.Result{Value: []byte("1")}, nil
		})
		if r, err := s.Run(t.Context(), run.Program{Code: "await searchTools('x')"}, h); err != nil || r.Status != run.StatusOK {
			t.Error(err, r)
		}
		if _, err := start(); err == nil {
			t.Error("a command starts after its program")
		}
		_ = b.Close()
	}
}
