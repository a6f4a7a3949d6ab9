package warmpool

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox"
	"retort/internal/sandbox/wire"
)

// hooked implements the optional interfaces of the guest that it wraps.
type hooked struct {
	Guest
	reason  error // Watch ends the program for this reason, unless it is nil
	watched core.Limits
	proxy   sandbox.ConnectionProxy
	stopped int // number of calls of the functions stop and shut
}

func (h *hooked) Watch(l core.Limits, cancel context.CancelCauseFunc) (stop func()) {
	h.watched = l
	if h.reason != nil {
		cancel(h.reason)
	}
	return func() { h.stopped++ }
}

func (h *hooked) ForwardConnections(proxy sandbox.ConnectionProxy) (shut func()) {
	h.proxy = proxy
	return func() { h.stopped++ }
}

// TestOptionalInterfaces checks that a guest watches its program and forwards its connections if it implements the
// interfaces for that, and that the program ends for the reason that the guest gives.
func TestOptionalInterfaces(t *testing.T) {
	for name, test := range map[string]struct {
		reason error
		host   sandbox.ToolHost
		status core.OutcomeStatus
	}{
		"within its limits": {nil, greeter{}, core.StatusOK},
		"beyond a limit":    {wire.MemoryStop(1 << 20), sandbox.HostFunc(nil), core.StatusMemoryLimit},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hooked{reason: test.reason}
			start := func(ctx context.Context) (_ Guest, err error) {
				h.Guest, err = startPlaying(playParser)(ctx)
				return h, err
			}
			b := newBare(GuestKind{Start: start, Once: true})
			defer b.Close()
			s, err := b.Prepare(t.Context(), sandbox.SandboxSpec{Runtime: "quickjs", Limits: core.DefaultLimits()})
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.Run(t.Context(), core.CheckedProgram{Code: "1", Limits: core.Limits{Computing: time.Hour}}, test.host)
			if err != nil || r.Status != test.status {
				t.Errorf("%v, %s %v", err, r.Status, r.Error)
			}
			_, proxies := test.host.(sandbox.ConnectionProxy)
			if proxies != (h.proxy != nil) || h.watched.Computing != time.Hour || h.stopped != 2 {
				t.Errorf("the guest watched %v, got the proxy %v and was stopped %d times", h.watched.Computing, h.proxy, h.stopped)
			}
		})
	}
}

// TestWatchedComputing checks that the wire does not limit the computing time of a program that its guest watches.
func TestWatchedComputing(t *testing.T) {
	p := core.CheckedProgram{Limits: core.DefaultLimits()}
	for _, g := range []Guest{&fake{}, &hooked{}} {
		served, stop := (&ReadyGuest{guest: g}).watchProgram(p, nil)
		stop()
		_, watches := g.(ProgramWatcher)
		if want := p.Limits.Computing; served.Limits.Computing != want && !watches || served.Limits.Computing != 0 && watches {
			t.Errorf("%T: the wire limits computing to %v", g, served.Limits.Computing)
		}
	}
}

// TestLinger checks that a guest whose program has ended lives on for GuestKind.Linger, also when its sandbox is
// closed.
func TestLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBare(GuestKind{Start: startPlaying(playParser), Once: true, Linger: time.Second})
		defer b.Close()
		s, err := b.Prepare(t.Context(), sandbox.SandboxSpec{Runtime: "quickjs", Limits: core.DefaultLimits()})
		if err != nil {
			t.Fatal(err)
		}
		if r, err := s.Run(t.Context(), core.CheckedProgram{Code: "1"}, nil); err != nil || r.Status != core.StatusOK {
			t.Fatal(err, r)
		}
		_ = s.Close()
		time.Sleep(time.Second - 1)
		synctest.Wait()
		if !s.(*pooledSandbox).member.IsAlive() {
			t.Error("the guest was ended immediately")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if s.(*pooledSandbox).member.IsAlive() {
			t.Error("the guest still runs")
		}
	})
}

// TestSupply checks that a pool takes the guests that GuestKind.Supply returns, and that closing the backend ends a
// guest that StartGuest has started for nobody.
func TestSupply(t *testing.T) {
	var b Backend
	var supplied atomic.Int64
	kind := GuestKind{Runtime: "quickjs", Start: startPlaying(playParser)}
	b.Open(Options{Kind: bareKind, Capabilities: have, Kinds: []GuestKind{{
		Runtime: "quickjs", Once: true, Supply: func() (*ReadyGuest, error) {
			supplied.Add(1)
			return b.StartGuest(kind)
		},
	}}})
	spare, err := b.StartGuest(kind)
	if err != nil {
		t.Fatal(err)
	}
	if r := runOne(t, &b, "1"); r.Status != core.StatusOK || supplied.Load() != 1 {
		t.Errorf("%s %v, %d guests were supplied", r.Status, r.Error, supplied.Load())
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	testenv.Receive(t, spare.guest.Gone(), "the end of a guest that nobody took")
	if _, err := b.StartGuest(kind); err != ErrClosed {
		t.Errorf("a closed backend starts a guest: %v", err)
	}
}

// TestLabel checks that Options.Label sets the name and the warning in reports, in place of those of the capabilities.
func TestLabel(t *testing.T) {
	b := New(Options{
		Kind: bareKind, Kinds: []GuestKind{{Runtime: "quickjs", Start: startPlaying(playParser), Once: true}},
		Capabilities: func() sandbox.Capabilities {
			c := have()
			c.Warning = "it is old"
			return c
		},
		Label: func() (backend, warning string) { return "bare (old)", "it was old" },
	})
	defer b.Close()
	if r := runOne(t, b, "1"); r.Backend != "bare (old)" || len(r.Warnings) != 1 || r.Warnings[0] != "it was old" {
		t.Errorf("%q %q", r.Backend, r.Warnings)
	}
}

// TestChanging checks that a backend asks for its capabilities once, unless they can change.
func TestChanging(t *testing.T) {
	for changing, want := range map[bool]int64{false: 1, true: 3} {
		var asked atomic.Int64
		b := New(Options{Kind: bareKind, Changing: changing, Capabilities: func() sandbox.Capabilities {
			asked.Add(1)
			return have()
		}})
		for range 3 {
			_, _ = b.Prepare(t.Context(), sandbox.SandboxSpec{Runtime: "quickjs"})
		}
		if n := asked.Load(); n != want {
			t.Errorf("changing %v: asked %d times, want %d", changing, n, want)
		}
		_ = b.Close()
	}
}

// TestCommandFolders checks that a backend with Options.Folders gives commands the folders of the workspace.
func TestCommandFolders(t *testing.T) {
	var given []sandbox.MountedPath
	b := New(Options{
		Kind: bareKind, Kinds: []GuestKind{{Runtime: "quickjs", Start: startBare, Once: true}}, Capabilities: have, Folders: true,
		Command: func(_ context.Context, c sandbox.HostCommand, _ core.Limits) (sandbox.CommandResult, error) {
			given = c.Folders
			return sandbox.CommandResult{Code: 1, Stderr: []byte("no ./workspace/b\n")}, nil
		},
	})
	defer b.Close()
	s, err := b.Prepare(t.Context(), sandbox.SandboxSpec{Runtime: "quickjs", Limits: core.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	h := sandbox.HostFunc(func(ctx context.Context, _ core.ToolCall) (core.CallResult, error) {
		c := sandbox.HostCommand{Name: "cat", Args: []string{"./workspace/a"}, Folders: []sandbox.MountedPath{{Target: "/workspace"}}}
		ended, err := s.(sandbox.CommandStarter).Start(ctx, c)
		if err != nil || string(ended.Stderr) != "no ./workspace/b\n" {
			t.Errorf("%q %v", ended.Stderr, err)
		}
		return core.CallResult{Value: []byte("1")}, nil
	})
	r, err := s.Run(t.Context(), core.CheckedProgram{Code: "await searchTools('x')"}, h)
	if err != nil || r.Status != core.StatusOK || len(given) != 1 {
		t.Errorf("%v, %s %v, %d folders", err, r.Status, r.Error, len(given))
	}
}
