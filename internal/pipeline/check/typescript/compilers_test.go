package typescript

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/microsoft/typescript-go/tsc"

	"retort/internal/core"
	"retort/internal/devel/testenv"
)

// doubling returns a program whose types double in size with every line. Its last line has a type error, so that the
// compiler prints the largest type.
func doubling(lines int) string {
	var b strings.Builder
	b.WriteString("const a0 = {x: 1};\n")
	for i := range lines {
		fmt.Fprintf(&b, "const a%d = {l: a%d, r: a%d};\n", i+1, i, i)
	}
	fmt.Fprintf(&b, "const wrong: {q: number} = a%d;\n", lines)
	return b.String()
}

func checkCode(c *ScriptChecker, ctx context.Context, code string) *core.Error {
	_, refusal := c.CheckProgram(ctx, ProgramSource{Code: code, Language: core.TypeScript}, sample())
	return refusal
}

// TestEndlessCheck checks that a program which takes too long is refused and its process ended, while other programs
// are still checked.
func TestEndlessCheck(t *testing.T) {
	var started, ended atomic.Int32
	c := checkerWith(t, counted(outside, &started, &ended))
	c.compilers.limit = 500 * time.Millisecond // for the first process
	var endless sync.WaitGroup
	endless.Go(func() {
		refusal := checkCode(c, t.Context(), doubling(60))
		if refusal == nil || refusal.Kind != core.KindLimit || !strings.Contains(refusal.Message, "took too long") || refusal.Hint == "" {
			t.Errorf("got %+v", refusal)
		}
	})
	testenv.WaitUntil(t, "the first process has started", func() bool { return started.Load() == 1 })
	c.compilers.mu.Lock()
	c.compilers.limit = testenv.Patience
	c.compilers.mu.Unlock()
	for range 20 {
		if refusal := checkCode(c, t.Context(), "return (await github.getMe()) as number"); refusal != nil {
			t.Error(refusal)
		}
	}
	endless.Wait()
	if refusal := checkCode(c, t.Context(), "return 1"); refusal != nil {
		t.Error(refusal)
	}
	if ended.Load() != 1 {
		t.Errorf("%d processes were ended, want the busy one", ended.Load())
	}
}

// counted returns a ProcessStarter that starts processes by calling start. It counts how many processes have been
// started and how many have ended.
func counted(start ProcessStarter, started, ended *atomic.Int32) ProcessStarter {
	return func() (io.ReadWriteCloser, error) {
		conn, err := start()
		started.Add(1)
		return &closing{conn, sync.OnceFunc(func() { ended.Add(1) })}, err
	}
}

type closing struct {
	io.ReadWriteCloser
	tell func()
}

func (c *closing) Close() error {
	c.tell()
	return c.ReadWriteCloser.Close()
}

func TestCancelledCheck(t *testing.T) {
	var started, ended atomic.Int32
	c := checkerWith(t, counted(inside, &started, &ended))
	c.StartWarmup()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if refusal := checkCode(c, ctx, "return 1"); refusal == nil || refusal.Kind != core.KindCancelled {
		t.Errorf("got %+v", refusal)
	}
	if refusal := checkCode(c, t.Context(), "return 1"); refusal != nil {
		t.Error(refusal)
	}
}

// TestLostProcess checks that the next check starts a new process if the idle process was killed.
func TestLostProcess(t *testing.T) {
	var conns []io.ReadWriteCloser
	c := checkerWith(t, func() (io.ReadWriteCloser, error) {
		conn, err := inside()
		conns = append(conns, conn)
		return conn, err
	})
	c.StartWarmup()
	_ = conns[0].Close()
	if refusal := checkCode(c, t.Context(), "return 1"); refusal != nil {
		t.Error(refusal)
	}
	if len(conns) != 2 {
		t.Errorf("%d processes were started", len(conns))
	}
}

func TestNoProcess(t *testing.T) {
	for name, start := range map[string]ProcessStarter{
		"cannot start": func() (io.ReadWriteCloser, error) { return nil, errors.New("no such file") },
		"ends at once": func() (io.ReadWriteCloser, error) {
			here, there := net.Pipe()
			return here, there.Close()
		},
		"talks rubbish": func() (io.ReadWriteCloser, error) {
			here, there := net.Pipe()
			go func() { _, _ = there.Write([]byte(strings.Repeat("rubbish", 100))) }()
			go func() { _, _ = io.Copy(io.Discard, there) }()
			return here, nil
		},
	} {
		c := New(start)
		if refusal := checkCode(c, t.Context(), "return 1"); refusal == nil || refusal.Kind != core.KindInternal {
			t.Errorf("%s: got %+v", name, refusal)
		}
		_ = c.Close()
		if refusal := checkCode(c, t.Context(), "return 1"); refusal == nil || refusal.Kind != core.KindInternal {
			t.Errorf("%s, closed: got %+v", name, refusal)
		}
	}
}

// TestReasons checks that errors.Is and errors.As recognise the compiler's errors after they were sent between
// processes.
func TestReasons(t *testing.T) {
	for _, err := range append([]error{errors.New("other")}, knownErrors...) {
		var r compilerResponse
		r.setError(fmt.Errorf("so: %w", err))
		if got := r.asError(); got.Error() != "so: "+err.Error() || !errors.Is(got, err) && err.Error() != "other" {
			t.Errorf("%v became %v", err, got)
		}
	}
	var r compilerResponse
	r.setError(&tsc.Refusal{Err: tsc.ErrTooDeep, Line: 7, Reason: "brackets"})
	var refusal *tsc.Refusal
	if err := r.asError(); !errors.As(err, &refusal) || refusal.Line != 7 || !errors.Is(err, tsc.ErrTooDeep) {
		t.Errorf("got %v", err)
	}
}
