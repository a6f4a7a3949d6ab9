//go:build amd64 || arm64

package docker

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	if len(args) > 0 && args[0] == "guest" {
		if err := guest.Main(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(args) > 1 && args[0] == "command" {
		os.Exit(sandboxtest.BeCommand(args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	if len(args) > 1 && args[0] == "probe" {
		sandboxtest.RunProbe(args[1], os.Stdin, os.Stdout)
	}
	if len(args) > 4 && args[0] == "engine" {
		engine(args[1], args[2], args[3], args[4])
		os.Exit(0)
	}
	code := m.Run()
	if shared != nil {
		shared.End()
	}
	os.Exit(code)
}

var update = flag.Bool("update", false, "write the profiles of system calls")

// TestProfiles checks that the embedded seccomp profiles are those that package confine generates. The flag -update
// writes them.
func TestProfiles(t *testing.T) {
	for _, runtime := range []string{"quickjs", "python", "node", "bun", "deno", relayed, commandProfile} {
		of, network := runtime, confine.NoNetwork
		if runtime == relayed {
			of, network = "python", confine.Relayed
		}
		want, err := confine.ContainerProfile(of, network)
		if err != nil {
			t.Fatal(err)
		}
		if *update && runtime != "bun" && runtime != "deno" {
			if err := os.WriteFile("seccomp/"+runtime+".json", append(want, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := seccompProfile(runtime)
		if err != nil || strings.TrimSpace(got) != string(want) {
			t.Errorf("the profile of %s is not that of the walls: go test -update (%v)", runtime, err)
		}
	}
}

var (
	sharing sync.Mutex
	shared  *testenv.DockerDaemon
)

// daemonHere returns the daemon that all tests of this package share. The first call starts it.
func daemonHere(t testing.TB) *testenv.DockerDaemon {
	t.Helper()
	sharing.Lock()
	defer sharing.Unlock()
	if shared == nil {
		shared = testenv.StartDockerd(t)
	}
	return shared
}

// options returns the Options of a backend that uses the tests' shared daemon.
func options(t testing.TB, runtime string) Options {
	return Options{Host: daemonHere(t).Host(), Runtime: runtime, Dir: t.TempDir()}
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

// TestContract checks that containers fulfil the contract of package sandboxtest. Only the built-in guest under runc
// runs all tests of the contract. Unless RETORT_FULL is set, containers with an interpreter, a network or gVisor run
// only the tests whose result may depend on that difference.
func TestContract(t *testing.T) {
	for _, c := range []struct {
		runner, language string
		networked        bool
		part             []string
	}{
		{"runc", quickjs, false, nil},
		{"runc", "python", false, sandboxtest.OfInterpreters()},
		{"runc", "python", true, sandboxtest.OfRelays()},
		{gvisor, quickjs, false, []string{"capabilities", "memory", "close", "nothing is left"}},
		{gvisor, "python", false, []string{"capabilities", "memory"}},
		{gvisor, "python", true, []string{"calls"}},
	} {
		name := c.runner + "/" + c.language
		if c.networked {
			name += " with a network"
		}
		t.Run(name, func(t *testing.T) {
			if c.runner == gvisor {
				testenv.Need(t, "runsc")
			}
			o := options(t, c.runner)
			if c.language == "python" {
				o.Interpreters = []interpreter.Interpreter{pythonHere(t)}
			}
			if c.networked {
				o.Network = &interpreter.ProxyNetwork{}
			}
			o.Warm, o.MaxWarm = 1, 2
			sandboxtest.RunPart(t, c.language, 1, func(t *testing.T) sandbox.Backend { return New(o) }, c.part...)
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
	const leftOut = "a thousand threads" // it looks for a limit of the user; here the control group has it: see TestFloods
	for _, runner := range []string{"runc", "runsc"} {
		with := func(name string, change func(o *Options), try func(t *testing.T, b sandbox.Backend)) {
			t.Run(runner+"/"+name, func(t *testing.T) {
				if runner == gvisor {
					testenv.Need(t, "runsc")
				}
				o := options(t, runner)
				o.Warm = -1
				change(&o)
				b := New(o)
				defer b.Close()
				try(t, b)
			})
		}
		with(quickjs, func(o *Options) { o.Guest = []string{self, "probe", quickjs} }, func(t *testing.T, b sandbox.Backend) { sandboxtest.CheckEscapes(t, b, quickjs, leftOut) })
		// As an interpreter it is this very program, with a harness that it ignores.
		probe := interpreter.Interpreter{Runtime: "node", Command: self, Flags: []string{"probe", "node"}, Harness: func() map[string][]byte { return nil }, Threads: maxThreads}
		with("interpreter", func(o *Options) { o.Guest, o.Interpreters = []string{self, "guest"}, []interpreter.Interpreter{probe} }, func(t *testing.T, b sandbox.Backend) {
			out := []string{leftOut}
			if runner == gvisor { // the name is one that the container was given, /sys has an empty folder; files are memory of gVisor's, which the control group bounds
				out = append(out, "read /etc/hostname", "list /sys", "a million files")
			}
			sandboxtest.CheckEscapes(t, b, "node", out...)
		})
		if runner == gvisor { // which shows runtimes that need it what it knows of their own process and container
			probe.Proc = true
			with("interpreter with /proc", func(o *Options) { o.Guest, o.Interpreters = []string{self, "guest"}, []interpreter.Interpreter{probe} }, func(t *testing.T, b sandbox.Backend) {
				sandboxtest.CheckEscapes(t, b, "node", leftOut, "read /etc/hostname", "list /sys", "a million files",
					"read /proc/version", "read /proc/cpuinfo", "read /proc/meminfo", "read /proc/mounts", "read /proc/self/fd/3", "read /proc/sys/kernel/hostname", "open the memory of the first process")
			})
		}
		with("python", func(o *Options) { o.Interpreters = []interpreter.Interpreter{pythonHere(t)} }, func(t *testing.T, b sandbox.Backend) {
			var without []string
			if runner == gvisor { // as above
				without = []string{`"/etc/hostname", `}
			}
			sandboxtest.PythonEscapes(t, b, without...)
		})
	}
}

// TestNetworked checks that a native program with network access has no way out except its proxy, and that the
// connections of a Python program work.
func TestNetworked(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, runner := range []string{"runc", gvisor} {
		t.Run(runner, func(t *testing.T) {
			out := []string{"a thousand threads"} // as in TestEscapes
			if runner == gvisor {
				testenv.Need(t, "runsc")
				out = append(out, "read /etc/hostname", "list /sys", "a million files")
			}
			probe := interpreter.Interpreter{Runtime: "node", Command: self, Flags: []string{"probe", "node"}, Harness: func() map[string][]byte { return nil }, Threads: maxThreads, Proxied: true}
			o := options(t, runner)
			o.Guest, o.Warm, o.Network, o.Interpreters = []string{self, "guest"}, -1, &interpreter.ProxyNetwork{}, []interpreter.Interpreter{probe, pythonHere(t)}
			b := New(o)
			defer b.Close()
			sandboxtest.NetworkedEscapes(t, b, "node", out...)
			sandboxtest.CheckConnections(t, b)
		})
	}
}

// TestCommands checks that commands fulfil the contract of sandbox.CommandStarter. It also checks that a command is
// not started if its file was replaced after it was found.
func TestCommands(t *testing.T) {
	t.Parallel()
	for _, runner := range []string{"runc", gvisor} {
		t.Run(runner, func(t *testing.T) {
			if runner == gvisor {
				testenv.Need(t, "runsc")
			}
			b, path := commander(t, runner)
			sandboxtest.CheckCommands(t, b, path)
			if have := b.Capabilities(); !slices.Equal(have.Commands, []string{"tool"}) {
				t.Error(have.Commands)
			}
		})
	}
	b, path := commander(t, "runc")
	if err := errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, []byte("#!/bin/sh"), 0o755)); err != nil {
		t.Fatal(err)
	}
	if ended, failed, _ := sandboxtest.StartCommand(t, b, core.Limits{}, sandboxtest.ToolCommand("env")); failed == nil || !strings.Contains(failed.Message, "has changed since Retort started") {
		t.Errorf("%+v %v", ended, failed)
	}
}

// commander returns a backend whose programs can start a command named "tool", and the path of that command's
// executable, a copy of this test binary.
func commander(t *testing.T, runner string) (sandbox.Backend, string) {
	t.Helper()
	o, path := options(t, runner), filepath.Join(t.TempDir(), "tool")
	data, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(path, data, 0o755)
	}
	if err == nil {
		o.Commands = hostcmd.FindCommands([]string{path})
	}
	if err != nil {
		t.Fatal(err)
	}
	o.Warm = -1
	b := New(o)
	t.Cleanup(func() { _ = b.Close() })
	return b, path
}

// TestFloods checks that a program that starts a thousand threads or creates a million files is stopped by the
// control group.
func TestFloods(t *testing.T) {
	t.Parallel()
	const thousand = "import threading\nend, n = threading.Event(), 0\ntry:\n  while n < 1000:\n    threading.Thread(target=end.wait, daemon=True).start()\n    n += 1\nexcept RuntimeError: pass\nend.set()\nresult = n"
	const million = "import os, ctypes\nlibc = ctypes.CDLL(None)\nfor i in range(1_000_000):\n  os.close(libc.open(b'/tmp/%d' % i, os.O_CREAT, 0o600))"
	for _, runner := range []string{"runc", gvisor} {
		t.Run(runner, func(t *testing.T) {
			if runner == gvisor {
				testenv.Need(t, "runsc")
			}
			o := options(t, runner)
			o.Warm, o.Interpreters = -1, []interpreter.Interpreter{pythonHere(t)}
			b := New(o)
			defer b.Close()
			r := runPython(t, b, thousand)
			if n, err := strconv.Atoi(string(r.Value)); err != nil || n < 2 || n > maxThreads {
				t.Errorf("%s threads, %s %v", r.Value, r.Status, r.Error)
			}
			if r := runPython(t, b, million); r.Status == core.StatusOK {
				t.Error("a million files")
			}
		})
	}
}

// runPython runs a Python program with a memory limit of 64 MiB and returns its report.
func runPython(t *testing.T, b sandbox.Backend, code string) sandbox.RunReport {
	t.Helper()
	l := core.Limits{Memory: 64 << 20, Timeout: time.Minute}.WithDefaults(core.DefaultLimits())
	s, err := b.Prepare(t.Context(), sandbox.SandboxSpec{Runtime: "python", Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := s.Run(t.Context(), core.CheckedProgram{Code: code, Name: "program", Limits: l}, sandbox.HostFunc(nothing))
	if err != nil {
		t.Fatal(err)
	}
	return r
}
