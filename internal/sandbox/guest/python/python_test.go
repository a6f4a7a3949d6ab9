package python

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox/guest/guesttest"
	"retort/internal/sandbox/wire"
)

// guestProcess represents a guest in an unconfined process of its own.
type guestProcess struct {
	in     *os.File
	out    *guesttest.OutputWatcher
	cmd    *exec.Cmd
	stderr strings.Builder
}

func (g *guestProcess) Read(b []byte) (int, error)  { return g.out.Read(b) }
func (g *guestProcess) Write(b []byte) (int, error) { return g.in.Write(b) }

func (g *guestProcess) Close() error {
	_ = g.in.Close()
	return g.out.Close()
}

// interpreter returns the path of the Python to test with: the environment variable RETORT_PYTHON, or the installed
// Python.
func interpreter(t testing.TB) string {
	if path := os.Getenv("RETORT_PYTHON"); path != "" {
		return path
	}
	found := testenv.Need(t, "python")
	// What version managers put into PATH takes long to start.
	if real, err := exec.Command(found, "-c", "import sys; print(sys.executable)").Output(); err == nil {
		return strings.TrimSpace(string(real))
	}
	return found
}

// guestFolder returns the path of a new folder that contains the guest's files.
func guestFolder(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range GuestFiles() {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o444); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// starter starts guests that use the same Python interpreter.
type starter struct{ python, dir, version string }

func newStarter(t testing.TB) starter {
	t.Helper()
	python := interpreter(t)
	version, err := exec.Command(python, "-c", "import platform; print(platform.python_version())").Output()
	if err != nil {
		t.Fatal(err)
	}
	return starter{python, guestFolder(t), strings.TrimSpace(string(version))}
}

// compiled compiles the guest's files, as package process does, and returns s. This saves processor time in a test
// that starts many guests.
func (s starter) compiled(t testing.TB) starter {
	t.Helper()
	if out, err := exec.Command(s.python, "-I", "-m", "compileall", "-q", s.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return s
}

// start starts a guest and waits until it is ready.
func (s starter) start(t testing.TB) (*wire.FrameConn, *guestProcess) {
	t.Helper()
	in, toGuest, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromGuest, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	g := &guestProcess{in: toGuest, out: &guesttest.OutputWatcher{ReadCloser: fromGuest}, cmd: exec.Command(s.python, "-I", "-S", "-B", filepath.Join(s.dir, Main))}
	g.cmd.Env, g.cmd.Dir = []string{}, "/"
	g.cmd.Stdin, g.cmd.Stdout, g.cmd.Stderr = in, out, &g.stderr
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = in.Close(), out.Close()
	conn := wire.NewConn(g)
	t.Cleanup(func() { ends(t, g) })
	ready, err := wire.ReadGreeting(conn)
	if err != nil || ready.Runtime != "python" || !strings.HasPrefix(ready.Version, "3.") {
		t.Fatalf("%+v %v", ready, err)
	}
	return conn, g
}

// ends closes a guest's connection and waits until the guest has exited. It fails the test if the guest has printed an
// error.
func ends(t testing.TB, g *guestProcess) {
	_ = g.Close()
	if _ = g.cmd.Wait(); g.stderr.Len() > 0 {
		t.Errorf("standard error: %s", g.stderr.String())
	}
}

func (s starter) run(t testing.TB, p core.CheckedProgram, h wire.CallHost) wire.ProgramEnd {
	t.Helper()
	p.Limits = p.Limits.WithDefaults(core.Limits{Timeout: testenv.Patience}).WithDefaults(core.DefaultLimits())
	conn, g := s.start(t)
	end, err := wire.ServeProgram(context.Background(), conn, p, h)
	if err != nil {
		_ = g.cmd.Wait()
		t.Fatalf("%s\n%v: %v: %s", p.Code, err, g.cmd.ProcessState, g.stderr.String())
	}
	return end
}

// fakeHost implements the servers that the test programs call.
type fakeHost = guesttest.TestHost

var demoNamespaces = guesttest.HostNamespaces("python")
