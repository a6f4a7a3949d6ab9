package guest

import (
	"context"
	"io"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox/guest/guesttest"
	"retort/internal/sandbox/wire"
)

// pipeEnd represents the host's end of the connection to a guest that runs in the test process.
type pipeEnd struct {
	io.ReadCloser
	io.WriteCloser
}

func (p pipeEnd) Close() error { return p.WriteCloser.Close() }

// newGuestConn starts a guest in the test process and returns the connection to it after the guest has become ready.
func newGuestConn(t testing.TB) *wire.FrameConn {
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
		testenv.Receive(t, ended, "the end of a guest whose input has ended")
	})
	conn := wire.NewConn(pipeEnd{outR, inW})
	if _, err := wire.ReadGreeting(conn); err != nil {
		t.Fatal(err)
	}
	return conn
}

func runProgram(t testing.TB, p core.CheckedProgram, h wire.CallHost) wire.ProgramEnd {
	t.Helper()
	p.Limits = p.Limits.WithDefaults(core.Limits{Timeout: testenv.Patience}).WithDefaults(core.DefaultLimits())
	end, err := wire.ServeProgram(context.Background(), newGuestConn(t), p, h)
	if err != nil {
		t.Fatal(err)
	}
	return end
}

// fakeHost implements the servers that the test programs call.
type fakeHost = guesttest.TestHost

var demoNamespaces = guesttest.HostNamespaces(reference)
