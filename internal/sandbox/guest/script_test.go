package guest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox/guest/guesttest"
	"retort/internal/sandbox/guest/nodejs"
	"retort/internal/sandbox/wire"
)

// runner runs a program in its own process or virtual machine, and returns how the program ended.
type runner func(t testing.TB, p core.CheckedProgram, h wire.CallHost) wire.ProgramEnd

// onAll runs a test on QuickJS and on every other JavaScript runtime that is installed. The processes of the other
// runtimes are not confined.
func onAll(t *testing.T, test func(t *testing.T, runProgram runner)) {
	t.Run(reference, func(t *testing.T) { test(t, runProgram) })
	onScripted(t, func(t *testing.T, r *scripted) { test(t, r.run) })
}

func onScripted(t *testing.T, test func(t *testing.T, r *scripted)) {
	for _, name := range []string{"node", "node22", "bun", "deno"} {
		t.Run(name, func(t *testing.T) {
			if !*update {
				t.Parallel()
			}
			test(t, newScripted(t, name))
		})
	}
}

// TestProgramsOnRuntimes checks three quarters of the programs of package guesttest, each on one of the runtimes. The
// tests of package process run the others. Bun, which has its own engine, also runs the programs for which a different
// outcome on Bun is recorded.
func TestProgramsOnRuntimes(t *testing.T) {
	parts := map[string]int{"node": 0, "bun": 1, "deno": 2}
	onScripted(t, func(t *testing.T, r *scripted) {
		s := guesttest.ProgramSuite{Runtime: r.name, AtOnce: 2, Update: *update, Run: r.run, Of: 4, Part: parts[r.name], Own: r.name == "bun"}
		if r.name == "node22" { // node and deno have the same engine, so fewer programs suffice
			s.Of = 12
		}
		s.RunPrograms(t)
	})
}

// TestIdleProcessEnds checks that a process exits when its input is closed while it waits for a program, a result or
// a timer.
func TestIdleProcessEnds(t *testing.T) {
	onScripted(t, func(t *testing.T, r *scripted) {
		for _, code := range []string{"", "await demo.slow({ms: 3600000})", "await sleep(3600000)", "demo.slow({ms: 3600000}); await sleep(3600000)"} {
			p := r.start(t, 64<<20)
			if code != "" {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				program := core.CheckedProgram{Code: "await demo.echo(1); " + code, Namespaces: demoNamespaces, Limits: core.DefaultLimits()}
				if _, err := wire.ServeProgram(ctx, p.FrameConn, program, &endingAfterEcho{cancel: cancel}); err != nil {
					t.Errorf("%s: %v", code, err)
				}
			}
			if err := p.end(t); err != nil {
				t.Errorf("%s: %v\n%s", code, err, p.stderr.String())
			}
		}
	})
}

// endingAfterEcho implements a CallHost that cancels a program shortly after the program has called echo.
type endingAfterEcho struct {
	fakeHost
	cancel func()
}

func (h *endingAfterEcho) Call(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
	if c.Tool == "echo" {
		time.AfterFunc(20*time.Millisecond, h.cancel)
	}
	return h.fakeHost.Call(ctx, c)
}

// TestBusyProgramIsHeard checks that the output of a program in an endless loop arrives, and that the program can
// then be cancelled.
func TestBusyProgramIsHeard(t *testing.T) {
	onScripted(t, func(t *testing.T, r *scripted) {
		p := r.start(t, 64<<20)
		defer func() {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}()
		program := core.CheckedProgram{Code: "console.log('before'); for (;;);", Limits: core.Limits{Timeout: testenv.Patience}.WithDefaults(core.DefaultLimits())}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p.out.NotifyOn("before\n", cancel)
		end, err := wire.ServeProgram(ctx, p.FrameConn, program, &fakeHost{})
		if err != nil || end.Status != core.StatusCancelled || string(end.Output) != "before\n" {
			t.Errorf("%+v, %v", end, err)
		}
	})
}

// TestLargeOutput checks that output that does not fit into one frame arrives completely.
func TestLargeOutput(t *testing.T) {
	onAll(t, func(t *testing.T, runProgram runner) {
		end := runProgram(t, core.CheckedProgram{Code: "console.log('x' + '😀'.repeat(100_000))"}, &fakeHost{})
		if want := "x" + strings.Repeat("😀", 100_000) + "\n"; end.Status != core.StatusOK || string(end.Output) != want {
			t.Errorf("%s %v, %d bytes", end.Status, end.Error, len(end.Output))
		}
	})
}

// scripted starts guest processes that run the guest script on one JavaScript runtime.
type scripted struct {
	nodejs.Runtime
	name       string // name of the runtime, as package testenv uses it
	path, main string
}

func newScripted(t testing.TB, name string) *scripted {
	t.Helper()
	r := &scripted{name: name, path: testenv.Need(t, name), main: filepath.Join(t.TempDir(), nodejs.FileName)}
	for _, known := range nodejs.Runtimes() {
		if known.Name == strings.TrimSuffix(name, "22") {
			r.Runtime = known
		}
	}
	if name == "node" {
		needNode20(t, r.path)
	}
	source, err := nodejs.ScriptSource()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.main, source, 0o444); err != nil {
		t.Fatal(err)
	}
	return r
}

// needNode20 skips the test if the machine's Node is older than version 20.
func needNode20(t testing.TB, path string) {
	t.Helper()
	out, err := exec.Command(path, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(string(out), "v"), ".")
	if n, _ := strconv.Atoi(major); n < 20 {
		t.Skipf("this Node is too old: %s", out)
	}
}

// scriptProcess represents a guest process that waits for its program.
type scriptProcess struct {
	*wire.FrameConn
	cmd    *exec.Cmd
	out    *guesttest.OutputWatcher
	stderr bytes.Buffer
}

func (r *scripted) start(t testing.TB, memory int64) *scriptProcess {
	t.Helper()
	p := &scriptProcess{cmd: exec.CommandContext(testenv.Context(t), r.path, append(r.Args(memory), r.main)...)}
	p.cmd.Env, p.cmd.Dir, p.cmd.Stderr = []string{}, filepath.Dir(r.main), &p.stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.out = &guesttest.OutputWatcher{ReadCloser: stdout}
	p.FrameConn = wire.NewConn(processPipes{p.out, stdin})
	ready, err := wire.ReadGreeting(p.FrameConn)
	if err != nil || ready.Runtime != r.Name {
		_ = p.end(t)
		t.Fatalf("%v %v\n%s", ready, err, p.stderr.String())
	}
	return p
}

// processPipes holds the host's ends of the pipes to a process. Closing it also ends a blocked read.
type processPipes struct {
	io.ReadCloser
	io.WriteCloser
}

func (p processPipes) Close() error { return errors.Join(p.WriteCloser.Close(), p.ReadCloser.Close()) }

// end closes the process's input and waits until the process has exited by itself.
func (p *scriptProcess) end(t testing.TB) error {
	t.Helper()
	_ = p.Close()
	return p.cmd.Wait()
}

func (r *scripted) run(t testing.TB, program core.CheckedProgram, h wire.CallHost) wire.ProgramEnd {
	t.Helper()
	program.Limits = program.Limits.WithDefaults(core.Limits{Timeout: testenv.Patience}).WithDefaults(core.DefaultLimits())
	p := r.start(t, program.Limits.Memory)
	end, err := wire.ServeProgram(context.Background(), p.FrameConn, program, h)
	failed := p.end(t)
	if errors.Is(err, wire.ErrGone) && failed != nil && nodejs.OutOfMemory(p.stderr.String()) {
		stop := wire.MemoryStop(program.Limits.Memory) // as a backend does
		return wire.ProgramEnd{Status: stop.Status, Error: stop.Reason, Output: end.Output}
	}
	if err != nil || failed != nil {
		t.Errorf("%s:\n%v, %v\n%s", program.Code, err, failed, p.stderr.String())
	}
	return end
}

func TestLosses(t *testing.T) {
	parts := map[string]int{"node22": 4, "deno": 4} // which have the engine and the harness of node
	t.Run(reference, func(t *testing.T) { guesttest.TestLosses(t, reference, 1, runProgram) })
	onScripted(t, func(t *testing.T, r *scripted) { guesttest.TestLosses(t, reference, max(1, parts[r.name]), r.run) })
}
