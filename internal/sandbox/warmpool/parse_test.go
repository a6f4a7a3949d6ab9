package warmpool

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox"
	"retort/internal/sandbox/wire"
)

// startPlaying returns a function that starts a fake guest. The guest reports that it is ready, and calls play. If play
// returns true, the guest ends, otherwise it stays until it is killed.
func startPlaying(play func(*wire.FrameConn) bool) func(context.Context) (Guest, error) {
	return func(context.Context) (Guest, error) {
		near, far := net.Pipe()
		f := &fake{Reader: near, Writer: near, gone: make(chan struct{})}
		f.kill = sync.OnceFunc(func() {
			_, _ = near.Close(), far.Close()
			close(f.gone)
		})
		go func() {
			conn := wire.NewConn(far)
			conn.Accept(wire.FrameSizes{wire.KindParse: 1000, wire.KindStart: 1000})
			_ = conn.SendFrame(wire.ReadyFrame("quickjs"))
			if play(conn) {
				f.kill()
			}
		}()
		return f, nil
	}
}

// playParser parses programs, and runs one program, which returns 1.
func playParser(conn *wire.FrameConn) bool {
	for {
		f, err := conn.Read()
		switch {
		case err != nil:
			return true
		case f.Kind == wire.KindStart:
			_ = conn.SendFrame(wire.DoneFrame(wire.ProgramDone{Status: core.StatusOK, HasValue: true}, []byte("1")))
			return false
		}
		_ = conn.SendFrame(wire.Frame{Kind: wire.KindParsed, Head: []byte(`{"lines":1}`), Body: []byte("tree")})
		_ = conn.SendFrame(wire.Frame{Kind: wire.KindCompiled, Head: []byte("{}")})
	}
}

// newParsing returns a backend whose guests behave like playParser.
func newParsing() *Backend {
	return New(Options{
		Kind: bareKind, Capabilities: have, KeepParsed: testenv.Patience,
		Kinds: []GuestKind{{Runtime: "quickjs", Start: startPlaying(playParser), Warm: -1}},
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

// TestParseErrors checks the errors of Parse when a guest ends, sends something unexpected or is too slow, and that
// the guest is ended each time.
func TestParseErrors(t *testing.T) {
	wrong := wire.Frame{Kind: wire.KindCompiled, Head: []byte("{}")}
	parsed := wire.Frame{Kind: wire.KindParsed, Head: []byte(`{"lines":1}`)}
	for name, test := range map[string]struct {
		answer []wire.Frame
		ends   bool // the guest ends after its answer
		want   string
	}{
		"ended":          {nil, true, "the program could not be parsed: "},
		"unexpected":     {[]wire.Frame{wrong}, false, "the program could not be parsed: "},
		"ended later":    {[]wire.Frame{parsed}, true, "the program could not be parsed: "},
		"slow":           {nil, false, "the program could not be parsed within " + parseTime.String()},
		"slow to follow": {[]wire.Frame{parsed}, false, "the program could not be parsed within " + parseTime.String()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBare(GuestKind{Warm: -1, Start: startPlaying(func(conn *wire.FrameConn) bool {
					_, _ = conn.Read()
					for _, f := range test.answer {
						_ = conn.SendFrame(f)
					}
					if !test.ends {
						_, _ = conn.Read() // until the backend ends the guest
					}
					return true
				})})
				p, err := b.Parse(t.Context(), "quickjs", "1")
				if err == nil {
					_, err = p.Compiled()
				}
				if e := core.AsError(err); err == nil || e.Kind != core.KindLimit || !strings.Contains(e.Message, test.want) {
					t.Errorf("%v", err)
				}
				if n := len(b.parsed.list); n != 0 {
					t.Errorf("%d guests wait", n)
				}
				if err := b.Close(); err != nil { // waits for all guests
					t.Error(err)
				}
			})
		})
	}
}
