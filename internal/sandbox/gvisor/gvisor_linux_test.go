package gvisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox"
	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/guest"
	"retort/internal/sandbox/hostcmd"
	"retort/internal/sandbox/interpreter"
	"retort/internal/sandbox/runtimes"
	"retort/internal/sandbox/sandboxtest"
)

// TestMain lets the test binary act as a guest, like `retort guest`, and take other roles.
func TestMain(m *testing.M) {
	args := os.Args[1:]
	if len(args) > 2 && args[0] == confine.ContainedArgument {
		if err := confine.EnterContained(args[1]); err != nil {
			os.Exit(confine.ExitStatus(err))
		}
		args = args[2:]
	}
	if len(args) == 0 {
		os.Exit(m.Run())
	}
	switch args[0] {
	case "guest":
		if err := guest.Main(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "engine":
		engine(args[1], args[2], args[3])
	case "command":
		os.Exit(sandboxtest.BeCommand(args[1:], os.Stdin, os.Stdout, os.Stderr))
	case "probe":
		sandboxtest.RunProbe(args[1], os.Stdin, os.Stdout)
	default:
		os.Exit(m.Run())
	}
	os.Exit(0)
}

// optionsHere returns the Options of a backend, or skips the test if runsc is not installed.
func optionsHere(t testing.TB) Options {
	t.Helper()
	return Options{Runsc: testenv.Need(t, "runsc"), Dir: shortDir(t)}
}

// shortDir returns a new folder with a short path, because gVisor creates sockets in it. At the end of the test it
// checks that the folder is empty.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gvt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%v is left", left)
		}
		_ = os.RemoveAll(dir)
	})
	return dir
}

// pythonHere returns the description of the Python that is installed on the machine, or skips the test.
func pythonHere(t testing.TB) interpreter.Interpreter {
	t.Helper()
	return pythonAt(testenv.Need(t, "python"))
}

func pythonAt(path string) interpreter.Interpreter {
	for _, i := range runtimes.SupportedRuntimes(map[string]string{"python": path}, core.DefaultLimits().Memory) {
		if i.Runtime == "python" {
			return i
		}
	}
	panic("python is no runtime")
}

// TestContract checks that containers fulfil the contract of package sandboxtest. Only the built-in guest runs all
// tests of the contract. Unless RETORT_FULL is set, containers with an interpreter or a network run only the tests
// whose result may depend on that difference.
func TestContract(t *testing.T) {
	for _, c := range []struct {
		name, runtime string
		network       *interpreter.ProxyNetwork
		part          []string
	}{
		{quickjs, quickjs, nil, nil},
		{"python", "python", nil, sandboxtest.OfInterpreters()},
		{"python with a network", "python", &interpreter.ProxyNetwork{}, []string{"calls", "close", "nothing is left"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := optionsHere(t)
			if c.runtime == "python" {
				o.Interpreters = []interpreter.Interpreter{pythonHere(t)}
			}
			o.Network, o.Warm, o.MaxWarm = c.network, 1, 2
			sandboxtest.RunPart(t, c.runtime, 1, func(t *testing.T) sandbox.Backend { return New(o) }, c.part...)
		})
	}
}

// TestEscapes checks that every escape attempt is blocked. The attempts are made by a native program, once with the
// system calls of the built-in guest and once with those that an interpreter may make, and by a Python program.
func TestEscapes(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Run(quickjs, func(t *testing.T) {
		o := optionsHere(t)
		o.Guest, o.Warm = []string{self, "probe", quickjs}, -1
		b := New(o)
		defer b.Close()
		sandboxtest.CheckEscapes(t, b, quickjs)
	})
	interpreted := func(proc bool, leftOut ...string) func(t *testing.T) {
		return func(t *testing.T) {
			o := optionsHere(t)
			// As an interpreter it is this very program, with a harness that it ignores.
			probe := interpreter.Interpreter{Runtime: "node", Command: self, Flags: []string{"probe", "node"}, Harness: func() map[string][]byte { return nil }, Threads: 64, Proc: proc}
			o.Guest, o.Warm, o.Interpreters = []string{self, "guest"}, -1, []interpreter.Interpreter{probe}
			b := New(o)
			defer b.Close()
			sandboxtest.CheckEscapes(t, b, "node", append(leftOut, "a million files")...) // TestMillionFiles
		}
	}
	t.Run("interpreter", interpreted(false))
	// gVisor shows runtimes that need it what it knows of their own process and container.
	t.Run("interpreter with /proc", interpreted(true, "read /proc/version", "read /proc/cpuinfo", "read /proc/meminfo", "read /proc/mounts", "read /proc/self/fd/3", "read /proc/sys/kernel/hostname", "open the memory of the first process"))
	t.Run("python", func(t *testing.T) {
		o := optionsHere(t)
		o.Warm, o.Interpreters = -1, []interpreter.Interpreter{pythonHere(t)}
		b := New(o)
		defer b.Close()
		sandboxtest.PythonEscapes(t, b)
	})
}

// TestNetworked checks that a native program with network access has no way out except its proxy, and that the
// connections of a Python program work.
func TestNetworked(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := optionsHere(t)
	probe := interpreter.Interpreter{Runtime: "node", Command: self, Flags: []string{"probe", "node"}, Harness: func() map[string][]byte { return nil }, Threads: 64, Proxied: true}
	o.Guest, o.Warm, o.Network, o.Interpreters = []string{self, "guest"}, -1, &interpreter.ProxyNetwork{}, []interpreter.Interpreter{probe, pythonHere(t)}
	b := New(o)
	defer b.Close()
	sandboxtest.NetworkedEscapes(t, b, "node", "a million files", "a thousand threads") // TestMillionFiles; there are those of the relay besides
	sandboxtest.CheckConnections(t, b)
}

// TestCommands checks that commands fulfil the contract of sandbox.CommandStarter. It also checks that a command is
// not started if its file was replaced after it was found.
func TestCommands(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T) (sandbox.Backend, string) {
		o, path := optionsHere(t), filepath.Join(t.TempDir(), "tool")
		data, err := os.ReadFile("/proc/self/exe")
		if err == nil {
			err = os.WriteFile(path, data, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		o.Commands = hostcmd.FindCommands([]string{path})
		o.Warm = -1
		b := New(o)
		t.Cleanup(func() { _ = b.Close() })
		return b, path
	}
	b, path := open(t)
	sandboxtest.CheckCommands(t, b, path)
	if have := b.Capabilities(); !slices.Equal(have.Commands, []string{"tool"}) {
		t.Error(have.Commands)
	}
	b, path = open(t)
	if err := errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, []byte("#!/bin/sh"), 0o755)); err != nil {
		t.Fatal(err)
	}
	if ended, failed, _ := sandboxtest.StartCommand(t, b, core.Limits{}, sandboxtest.ToolCommand("env")); failed == nil || !strings.Contains(failed.Message, "has changed since Retort started") {
		t.Errorf("%+v %v", ended, failed)
	}
}

// TestMillionFiles checks that a Python program that creates a million empty files ends by its memory limit. The
// files use memory of the container's kernel.
func TestMillionFiles(t *testing.T) {
	t.Parallel()
	o := optionsHere(t)
	o.Warm, o.Interpreters = -1, []interpreter.Interpreter{pythonHere(t)}
	b := New(o)
	defer b.Close()
	const flood = "import os, ctypes\nlibc = ctypes.CDLL(None)\nfor i in range(1_000_000):\n  os.close(libc.open(b'/tmp/%d' % i, os.O_CREAT, 0o600))"
	r := runProgram(t, b, "python", flood, core.Limits{Memory: 64 << 20, Result: 1 << 20, Timeout: time.Minute})
	if r.Status != core.StatusMemoryLimit {
		t.Errorf("%s %v, %d MB", r.Status, r.Error, r.MemoryBytes>>20)
	}
}

var none = sandbox.HostFunc(func(context.Context, core.ToolCall) (core.CallResult, error) {
	return core.CallResult{Value: []byte("1")}, nil
})

// runProgram runs a program in its own sandbox and returns its report.
func runProgram(t testing.TB, b sandbox.Backend, runtime, code string, l core.Limits) sandbox.RunReport {
	t.Helper()
	l = l.WithDefaults(core.DefaultLimits())
	s, err := b.Prepare(t.Context(), sandbox.SandboxSpec{Runtime: runtime, Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := s.Run(t.Context(), core.CheckedProgram{Code: code, Name: "program", Limits: l}, none)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestUnprivileged repeats some of the tests as a user other than root.
func TestUnprivileged(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("the other tests are run by such a user")
	}
	runsc := testenv.Need(t, "runsc")
	dir := sharedDir(t)
	copied, own := filepath.Join(dir, "gvisor.test"), filepath.Join(dir, "runsc")
	for from, to := range map[string]string{"/proc/self/exe": copied, runsc: own} {
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, data, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), copied, "-test.run", "^TestEscapes$|^TestMillionFiles$|^TestContract$/^(quickjs|python)$/^(limits|close)$", "-test.v")
	cmd.Env = []string{"PATH=" + dir + ":/usr/local/bin:/usr/bin:/bin", "TMPDIR=" + filepath.Join(dir, "tmp"), "HOME=" + dir, "RETORT_REQUIRE=runsc"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "ways out are closed") < 3 {
		t.Errorf("%v\n%s", err, out)
	}
}

// sharedDir returns a new folder that other users can read, with a subfolder tmp in which they can write.
func sharedDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gvt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(filepath.Join(dir, "tmp"), 0o777), os.Chmod(filepath.Join(dir, "tmp"), 0o777)); err != nil {
		t.Fatal(err)
	}
	return dir
}
