package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox"
	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/guest"
	"retort/internal/sandbox/guest/vminit"
	"retort/internal/sandbox/hostcmd"
	"retort/internal/sandbox/interpreter"
	"retort/internal/sandbox/runtimes"
	"retort/internal/sandbox/sandboxtest"
)

// TestMain lets the test binary also act as another process. In a virtual machine it acts like `retort`, both as the
// machine's first process and as the guest.
func TestMain(m *testing.M) {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == vminit.Argument {
		fmt.Fprintln(os.Stderr, vminit.Main())
		os.Exit(1)
	}
	if len(args) > 0 && args[0] == confine.Argument {
		if err := confine.Enter(runtimes.HarnessFiles); err != nil {
			os.Exit(confine.ExitStatus(err))
		}
		args = args[1:]
	}
	if len(args) == 0 {
		os.Exit(m.Run())
	}
	switch args[0] {
	case "guest":
		if err := guest.MainRestored(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "command":
		os.Exit(sandboxtest.BeCommand(args[1:], os.Stdin, os.Stdout, os.Stderr))
	case "sleep":
		testenv.Hang()
	case "engine":
		engine(args[1], args[2], args[3], args[4], args[5])
	case "probe":
		sandboxtest.RunProbe(args[1], os.Stdin, os.Stdout)
	default:
		os.Exit(m.Run())
	}
	os.Exit(0)
}

// drivers lists the names of the drivers with which the tests run machines. Each driver controls the virtual machine
// monitor of the same name.
var drivers = []string{"qemu", "firecracker"}

// optionsHere returns the Options of a backend with the given driver, or skips the test if this machine cannot run
// it.
func optionsHere(t testing.TB, driver string) Options {
	t.Helper()
	path := testenv.Need(t, driver)
	kernel, err := filepath.Abs("../../../testdata/kernel")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{QEMU: path, Kernel: kernel, Dir: machineCache(driver), Progress: func(s string) { t.Log(s) }}
	if driver == "firecracker" {
		testenv.Missing(t, kvm, checkDevice(kvm))
		o.QEMU, o.Firecracker = "none", path
	}
	return o
}

// checkDevice opens a device for reading and writing and closes it. It returns the error of opening it, or nil.
func checkDevice(device string) error {
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// machineCache returns the folder in which this test binary keeps the saved machines of a driver. All tests share it,
// so that each machine is made only once.
func machineCache(driver string) string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("retort-vmt-%s-%d", driver, os.Geteuid()))
}

// pythonHere returns the description of the Python that is installed on the machine, or skips the test.
func pythonHere(t testing.TB) interpreter.Interpreter {
	t.Helper()
	return described("python", testenv.Need(t, "python"))
}

// described returns the description of a runtime whose interpreter is at path.
func described(runtime, path string) interpreter.Interpreter {
	for _, i := range runtimes.SupportedRuntimes(map[string]string{runtime: path}, core.DefaultLimits().Memory) {
		if i.Runtime == runtime {
			return i
		}
	}
	panic(runtime + " is no runtime")
}

// emulated is the factor by which the contract tests lengthen the timeouts of programs in emulated machines.
// Computations take 20 to 30 times as long there, but most of the test programs compute little.
const emulated = 4

// TestContract checks that virtual machines fulfil the contract of package sandboxtest. Programs can take several
// seconds on an emulated processor, so unless RETORT_FULL is set, it runs only the tests of how a machine starts, is
// limited and ends.
func TestContract(t *testing.T) {
	forAll(t, func(t *testing.T, driver, runtime string) {
		o := optionsHere(t, driver)
		o.Warm, o.MaxWarm = 1, 2
		part := []string{"capabilities", "calls", "concurrency", "limits", "time", "memory", "recursion", "cancel", "close", "nothing is left"}
		if runtime == "python" {
			o.Interpreters = []interpreter.Interpreter{pythonHere(t)}
			part = []string{"capabilities", "calls", "memory", "nothing is left"}
		}
		sandboxtest.RunPart(t, runtime, emulated, func(t *testing.T) sandbox.Backend { return New(o) }, part...)
	})
}

// forAll runs a test for each combination of a virtual machine monitor and a runtime.
func forAll(t *testing.T, test func(t *testing.T, driver, runtime string)) {
	for _, driver := range drivers {
		for _, runtime := range []string{quickjs, "python"} {
			t.Run(driver+"/"+runtime, func(t *testing.T) { test(t, driver, runtime) })
		}
	}
}

// TestEscapes checks that every escape attempt is blocked. The attempts are made by a native program, which may make
// the system calls of the built-in guest, and by a Python program.
func TestEscapes(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	forAll(t, func(t *testing.T, driver, runtime string) {
		o := optionsHere(t, driver)
		o.Warm = -1
		if runtime == "python" {
			o.Interpreters = []interpreter.Interpreter{pythonHere(t)}
			b := New(o)
			defer b.Close()
			sandboxtest.PythonEscapes(t, b)
			return
		}
		o.Guest, o.Dir = []string{self, "probe", quickjs}, t.TempDir()
		b := New(o)
		defer b.Close()
		sandboxtest.CheckEscapes(t, b, quickjs)
	})
}

var none = sandbox.HostFunc(func(context.Context, core.ToolCall) (core.CallResult, error) {
	return core.CallResult{Value: []byte("1")}, nil
})

// runProgram runs a program in a new sandbox and returns its report.
func runProgram(t testing.TB, b sandbox.Backend, runtime, code string) sandbox.RunReport {
	t.Helper()
	l := core.Limits{Timeout: time.Hour}.WithDefaults(core.DefaultLimits()) // an emulated processor is slow
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

// TestCopiesDiffer checks that copies of one saved machine have different random numbers and the current time.
func TestCopiesDiffer(t *testing.T) {
	t.Parallel()
	forAll(t, func(t *testing.T, driver, runtime string) {
		o := optionsHere(t, driver)
		o.Warm = -1
		if runtime == "python" {
			o.Interpreters = []interpreter.Interpreter{pythonHere(t)}
		}
		b := newBackend(o)
		s := b.openPool()
		defer s.Close()
		k, err := b.images[runtime]()
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(k.dir, stateFile))
		if err != nil {
			t.Fatal(err)
		}
		checkCopiesDiffer(t, s, runtime, info.ModTime())
	})
}

// checkCopiesDiffer checks that copies of one saved machine differ. It runs a program in several copies, which must
// get different random values and the current time. The argument kept is the time at which the machine was saved.
func checkCopiesDiffer(t *testing.T, b sandbox.Backend, runtime string, kept time.Time) {
	t.Helper()
	code := map[string]string{
		quickjs:  "return [Math.random(), crypto.randomUUID(), Date.now()]",
		"python": "import random, uuid, time\n[random.random(), str(uuid.uuid4()), int(time.time() * 1000)]",
	}[runtime]
	seen := map[any]bool{}
	for range 3 {
		before := time.Now()
		r := runProgram(t, b, runtime, code)
		after := time.Now()
		var said []any
		if err := json.Unmarshal(r.Value, &said); err != nil || len(said) != 3 {
			t.Fatalf("%s %v %s", r.Status, r.Error, r.Value)
		}
		for _, v := range said[:2] {
			if seen[v] {
				t.Errorf("%v is drawn twice", v)
			}
			seen[v] = true
		}
		// An emulated clock is inexact. A clock that was not set would be closer to kept.
		now, _ := said[2].(float64)
		shows, off := time.UnixMilli(int64(now)), before.Sub(kept)/2
		if shows.Before(before.Add(-off)) || shows.After(after.Add(off)) {
			t.Errorf("the clock of a machine that was saved at %v shows %v, but the time is between %v and %v", kept, shows, before, after)
		}
	}
}

// BenchmarkCalls measures a program that makes a thousand calls, one after the other or concurrently.
func BenchmarkCalls(b *testing.B) {
	for name, code := range map[string]string{
		"in turn": "for (let i = 0; i < 1000; i++) await callMCPTool('x')",
		"at once": "await Promise.all(Array.from({length: 1000}, () => callMCPTool('x')))",
	} {
		b.Run(name, func(b *testing.B) {
			backend := New(optionsHere(b, "qemu"))
			defer backend.Close()
			for b.Loop() {
				r := runProgram(b, backend, quickjs, "const t = Date.now(); "+code+"; return Date.now() - t")
				b.Logf("%s %v %s", r.Status, r.Error, r.Value)
			}
		})
	}
}

// TestCommands checks that commands fulfil the contract of sandbox.CommandStarter. It also checks that a command is
// not started if its file was replaced after it was found.
func TestCommands(t *testing.T) {
	t.Parallel()
	for _, driver := range drivers {
		t.Run(driver, func(t *testing.T) {
			b, path := commanding(t, optionsHere(t, driver))
			sandboxtest.CheckCommands(t, b, path)
			if have := b.Capabilities(); !slices.Equal(have.Commands, []string{"tool"}) {
				t.Error(have.Commands)
			}
			b, path = commanding(t, optionsHere(t, driver))
			if err := errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, []byte("#!/bin/sh"), 0o755)); err != nil {
				t.Fatal(err)
			}
			if ended, failed, _ := sandboxtest.StartCommand(t, b, core.Limits{}, sandboxtest.ToolCommand("env")); failed == nil || !strings.Contains(failed.Message, "has changed since Retort started") {
				t.Errorf("%+v %v", ended, failed)
			}
		})
	}
}

// commanding returns a backend whose programs can start this test binary as the command "tool", and the path of that
// executable.
func commanding(t *testing.T, o Options) (b sandbox.Backend, path string) {
	t.Helper()
	path = toolHere(t)
	o.Commands, o.Warm = hostcmd.FindCommands([]string{path}), -1
	b = New(o)
	t.Cleanup(func() { _ = b.Close() })
	return b, path
}

// toolHere copies this test binary to a file named tool and returns its path.
func toolHere(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tool")
	data, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(path, data, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestDriverIsWalled checks that the monitors QEMU and Firecracker are confined themselves: they have no capabilities,
// namespaces of their own and few writable files. This protects the host from a program that breaks out of its
// machine.
func TestDriverIsWalled(t *testing.T) {
	t.Parallel()
	for driver, writable := range map[string][]string{"qemu": {memoryPath, ringPath}, "firecracker": {"/tmp"}} {
		t.Run(driver, func(t *testing.T) { driverIsWalled(t, driver, writable) })
	}
}

func driverIsWalled(t *testing.T, driver string, kept []string) {
	t.Helper()
	o := optionsHere(t, driver)
	o.Warm = -1
	b := newBackend(o)
	s := b.openPool()
	defer s.Close()
	if have := s.Capabilities(); have.Unavailable != nil {
		t.Fatal(have.Unavailable)
	}
	k, err := b.images[quickjs]()
	if err != nil {
		t.Fatal(err)
	}
	m, err := b.restoreMachine(t.Context(), k.machineImage, k.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	proc := fmt.Sprintf("/proc/%d/", m.cmd.Process.Pid)
	status, err := os.ReadFile(proc + "status")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"NoNewPrivs:\t1\n", "Seccomp:\t2\n", "CapEff:\t0000000000000000\n", "CapBnd:\t0000000000000000\n"} {
		if !strings.Contains(string(status), want) {
			t.Errorf("%q is not so of it", want)
		}
	}
	for _, ns := range []string{"net", "pid", "mnt", "user", "ipc", "uts"} {
		own, _ := os.Readlink("/proc/self/ns/" + ns)
		if its, err := os.Readlink(proc + "ns/" + ns); err != nil || its == own {
			t.Errorf("%s namespace %s, ours is %s: %v", ns, its, own, err)
		}
	}
	mounts, err := os.ReadFile(proc + "mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	writable := map[string]bool{}
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if strings.HasPrefix(fields[5], "rw") {
			writable[fields[4]] = true
		}
	}
	for _, known := range append([]string{"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", kvm}, kept...) {
		delete(writable, known)
	}
	if len(writable) > 0 {
		t.Errorf("it can write to %v", writable)
	}
}

// TestPrograms checks that the programs of package guesttest end in a machine as they do without a sandbox.
func TestPrograms(t *testing.T) {
	t.Parallel()
	forAll(t, func(t *testing.T, driver, runtime string) {
		o := optionsHere(t, driver)
		if runtime == "python" {
			o.Interpreters = []interpreter.Interpreter{pythonHere(t)}
		}
		b := New(o)
		defer b.Close()
		sandboxtest.ProgramsSlow(t, b, runtime, emulated)
	})
}

// TestNetworked checks that the network connections of Python programs work.
func TestNetworked(t *testing.T) {
	t.Parallel()
	for _, driver := range drivers {
		t.Run(driver, func(t *testing.T) {
			o := optionsHere(t, driver)
			o.Warm, o.Network, o.Interpreters = -1, &interpreter.ProxyNetwork{}, []interpreter.Interpreter{pythonHere(t)}
			b := New(o)
			defer b.Close()
			sandboxtest.CheckConnections(t, b)
		})
	}
}
