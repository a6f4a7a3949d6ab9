package guest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"retort/internal/guest/script"
	"retort/internal/run"
	"retort/internal/testenv"
	"retort/internal/wire"
)

// TestProgramsOnRuntimes runs the programs in testdata on every runtime that the
// machine has, without walls around it.
func TestProgramsOnRuntimes(t *testing.T) {
	for _, name := range []string{"node", "node22", "bun", "deno"} {
		t.Run(name, func(t *testing.T) {
			if !*update {
				t.Parallel()
			}
			r := newScripted(t, name)
			testSuite(t, name, func(t *testing.T, p run.Program) wire.End { return r.run(t, p, newSuiteHost()) })
		})
	}
}

// scripted starts processes of one runtime.
type scripted struct {
	script.Runtime
	path, main string
}

func newScripted(t testing.TB, name string) *scripted {
	t.Helper()
	r := &scripted{path: testenv.Need(t, name), main: filepath.Join(t.TempDir(), script.FileName)}
	for _, known := range script.Runtimes() {
		if known.Name == strings.TrimSuffix(name, "22") {
			r.Runtime = known
		}
	}
	if name == "node" {
		needNode20(t, r.path)
	}
	source, err := script.Source()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.main, source, 0o444); err != nil {
		t.Fatal(err)
	}
	return r
}

// needNode20 skips the test if the machine's own Node is too old, which many are.
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

// scriptProcess is one process that awaits its program.
type scriptProcess struct {
	*wire.Conn
	cmd    *exec.Cmd
	stderr bytes.Buffer
}

func (r *scripted) start(t testing.TB, memory int64) *scriptProcess {
	t.Helper()
	p := &scriptProcess{cmd: exec.Command(r.path, append(r.Args(memory), r.main)...)}
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
	p.Conn = wire.NewConn(pipeEnd{stdout, stdin})
	ready, err := wire.Greet(p.Conn)
	if err != nil || ready.Runtime != r.Name {
		_ = p.end(t)
		t.Fatalf("%v %v\n%s", ready, err, p.stderr.String())
	}
	return p
}

// end closes the input, at which the process must end by itself.
func (p *scriptProcess) end(t testing.TB) error {
	t.Helper()
	_ = p.Close()
	kill := time.AfterFunc(10*time.Second, func() {
		t.Error("the process does not end with its input")
		_ = p.cmd.Process.Kill()
	})
	defer kill.Stop()
	return p.cmd.Wait()
}

func (r *scripted) run(t testing.TB, program run.Program, h wire.Host) wire.End {
	t.Helper()
	program.Limits = program.Limits.Or(run.Limits{Timeout: 20 * time.Second}).Or(run.DefaultLimits())
	p := r.start(t, program.Limits.Memory)
	end, err := wire.Serve(context.Background(), p.Conn, program, h)
	failed := p.end(t)
	if errors.Is(err, wire.ErrGone) && failed != nil && script.OutOfMemory(p.stderr.String()) {
		stop := wire.MemoryStop(program.Limits.Memory) // as a backend does
		return wire.End{Status: stop.Status, Error: stop.Reason, Output: end.Output}
	}
	if err != nil || failed != nil {
		t.Errorf("%s:\n%v, %v\n%s", program.Code, err, failed, p.stderr.String())
	}
	return end
}
