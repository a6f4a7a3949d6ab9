package warmpool

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox"
	"retort/internal/sandbox/wire"
)

// startParser starts a fake guest that parses programs, and runs one program, which returns 1.
func startParser(context.Context) (Guest, error) {
	near, far := net.Pipe()
	f := &fake{Reader: near, Writer: near, gone: make(chan struct{})}
	f.kill = sync.OnceFunc(func() {
		_, _ = near.Close(), far.Close()
		close(f.gone)
	})
	go playParser(wire.NewConn(far))
	return f, nil
}

func playParser(conn *wire.FrameConn) {
	conn.Accept(wire.FrameSizes{wire.KindParse: 1000, wire.KindStart: 1000})
	_ = conn.SendFrame(wire.ReadyFrame("quickjs"))
	for {
		f, err := conn.Read()
		switch {
		case err != nil:
			return
		case f.Kind == wire.KindStart:
			_ = conn.SendFrame(wire.DoneFrame(wire.ProgramDone{Status: core.StatusOK, HasValue: true}, []byte("1")))
			return
		}
		_ = conn.SendFrame(wire.Frame{Kind: wire.KindParsed, Head: []byte(`{"lines":1}`), Body: []byte("tree")})
		_ = conn.SendFrame(wire.Frame{Kind: wire.KindCompiled, Head: []byte("{}")})
	}
}

// newParsing returns a backend whose guests startParser starts.
func newParsing() *Backend {
	return New(Options{
		Kind: bareKind, Capabilities: have, KeepParsed: testenv.Patience,
		Kinds: []GuestKind{{Runtime: "quickjs", Start: startParser, Warm: -1}},
	})
}

func parse(t *testing.T, b *Backend, code string) {
	t.Helper()
	parsed, err := b.Parse(t.Context(), "quickjs", code)
	if err != nil || string(parsed.Known) != `{"lines":1}` || string(parsed.Tree) != "tree" {
		t.Fatalf("%s, %s, %v", parsed.Known, parsed.Tree, err)
	}
	if told, err := parsed.Compiled(); err != nil || string(told) != "{}" {
		t.Fatalf("%s, %v", told, err)
	}
}

// TestParsedGuest checks that a guest that has parsed a program runs that program once, and no other program.
func TestParsedGuest(t *testing.T) {
	b := newParsing()
	defer b.Close()
	const code = "return 1"
	parse(t, b, code)
	waiting := b.parsed.list[0].guest
	prepare := func(code string) *pooledSandbox {
		s, err := b.Prepare(t.Context(), sandbox.SandboxSpec{Runtime: "quickjs", Limits: core.DefaultLimits(), Code: code})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s.(*pooledSandbox)
	}
	if s := prepare("return 2"); s.member == waiting {
		t.Error("another program got the guest")
	}
	s := prepare(code)
	if s.member != waiting {
		t.Error("the program did not get the guest that has parsed it")
	}
	r, err := s.Run(context.Background(), core.CheckedProgram{Code: code}, nil)
	if err != nil || string(r.Value) != "1" {
		t.Errorf("%v, %s %v %s", err, r.Status, r.Error, r.Value)
	}
	if s := prepare(code); s.member == waiting {
		t.Error("the guest was given out twice")
	}
}

// TestParsedGuestsDoNotStay checks that a guest that has parsed a program ends after a while or with the backend, and
// that only a few such guests wait.
func TestParsedGuestsDoNotStay(t *testing.T) {
	b := newParsing()
	parse(t, b, "1")
	waiting := b.parsed.list[0]
	waiting.end.Reset(0) // as if its time were up
	testenv.Receive(t, waiting.guest.guest.Gone(), "the end of a guest whose program is never run")
	for i := range maxParsed + 1 {
		parse(t, b, strings.Repeat("1\n", i+1))
	}
	if n := len(b.parsed.list); n != maxParsed {
		t.Errorf("%d guests wait, want %d", n, maxParsed)
	}
	if err := b.Close(); err != nil { // waits for all guests
		t.Error(err)
	}
	if _, err := b.Parse(t.Context(), "quickjs", "1"); err == nil {
		t.Error("a closed backend parses")
	}
}
