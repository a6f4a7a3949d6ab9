package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox"
	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/exitcause"
	"retort/internal/sandbox/interpreter"
	"retort/internal/sandbox/procgroup"
	"retort/internal/sandbox/sandboxtest"
)

// TestEscapes checks that the confinement of each runtime blocks every escape attempt of a native program.
func TestEscapes(t *testing.T) {
	for _, profile := range []string{"quickjs", "python", "node", "bun", "deno", "command"} {
		t.Run(profile, func(t *testing.T) {
			b := newWithKind(Options{Warm: -1}, native(t, profile, "probe", profile))
			defer b.Close()
			sandboxtest.CheckEscapes(t, b, profile)
		})
	}
}

// newWithKind returns a backend that has the children of kind k for the only runtime.
func newWithKind(o Options, k *childKind) *Backend {
	b := newBackend(o, procgroup.OpenGroups())
	b.kinds[k.runtime] = k
	p := b.poolOptions()
	p.Capabilities = func() sandbox.Capabilities { return sandbox.Capabilities{Runtimes: []string{k.runtime}} }
	b.Open(p)
	return b
}

// native returns the description of children that run native code: this test binary in one of its roles. They are
// confined like the children of the runtime that profile names.
func native(t *testing.T, profile string, role ...string) *childKind {
	path, err := filepath.EvalSymlinks("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	m, err := interpreter.NewImage("/usr/bin/probe", path)
	if err != nil {
		t.Fatal(err)
	}
	return &childKind{
		runtime: profile, command: self(t, "guest"), native: true, exhausted: exitcause.OutOfMemory,
		plan: confine.SandboxPlan{Profile: profile, Argv: append([]string{"/usr/bin/probe"}, role...), Mounts: imageMounts(m), Harness: interpreter.HarnessDir, Tmp: 8 << 20, Files: 256, Processes: 64, Proc: profile == "node"},
	}
}

func inRuntime(t *testing.T, b *Backend, runtime, code string, l core.Limits) sandbox.RunReport {
	t.Helper()
	l = l.WithDefaults(core.Limits{Timeout: testenv.Patience}).WithDefaults(core.DefaultLimits())
	s, err := b.Prepare(context.Background(), sandbox.SandboxSpec{Runtime: runtime, Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := s.Run(context.Background(), core.CheckedProgram{Code: code, Name: "program", Limits: l}, echo)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestPythonEscapes checks that every escape attempt of a Python program, which has ctypes, is blocked.
func TestPythonEscapes(t *testing.T) {
	b := New(Options{Interpreters: []RuntimeInterpreter{interpreterHere(t, "python", 0)}, Warm: -1})
	defer b.Close()
	sandboxtest.PythonEscapes(t, b)
}

// TestUnprivileged checks that the confinement also works for a user other than root. It runs the tests of escapes,
// of commands and of the contract as such a user.
func TestUnprivileged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the other tests are run by such a user")
	}
	dir := t.TempDir()
	binary, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "process.test")
	if err := errors.Join(os.WriteFile(copied, binary, 0o755), os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755), os.Mkdir(filepath.Join(dir, "tmp"), 0o777), os.Chmod(filepath.Join(dir, "tmp"), 0o777)); err != nil {
		t.Fatal(err)
	}
	contract := "^(calls|close)$" // the other tests do not depend on the user
	if testenv.Full() {
		contract = "^(values|calls|limits|cancel|close)$"
	}
	cmd := exec.CommandContext(t.Context(), copied, "-test.run", "^TestEscapes$|^TestPythonEscapes$|^TestCommands$|^TestCommandIsTheFileThatWasLookedAt$|^TestContract$/^(quickjs|python|node)$/"+contract, "-test.v")
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "TMPDIR=" + filepath.Join(dir, "tmp"), "HOME=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "ways out are closed") < 5 {
		t.Errorf("%v\n%s", err, out)
	}
}
