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

// TestMain lets the test program be what `retort` is in a machine.
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

// drivers are what makes machines.
var drivers = []string{"qemu", "firecracker"}

// optionsHere are those of a backend with a driver on this machine, or skip the test.
func optionsHere(t testing.TB, driver string) Options {
	t.Helper()
	path := testenv.Need(t, driver)
	kernel, err := filepath.Abs("../../../testdata/kernel")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{QEMU: path, Kernel: kernel, Dir: cache(driver), Progress: func(s string) { t.Log(s) }}
	if driver == "firecracker" {
		testenv.Missing(t, kvm, access(kvm))
		o.QEMU, o.Firecracker = "none", path
	}
	return o
}

// access says why a device cannot be used.
func access(device string) error {
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// cache is where the machines of this test program are kept: they are made once.
func cache(driver string) string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("retort-vmt-%s-%d", driver, os.Geteuid()))
}

// pythonHere describes the machine's Python as the engine does, or skips the test.
func pythonHere(t testing.TB) interpreter.Interpreter {
	t.Helper()
	return described("python", testenv.Need(t, "python"))
}

// described is an interpreter as the engine has it.
func described(runtime, path string) interpreter.Interpreter {
	for _, i := range runtimes.SupportedRuntimes(map[string]string{runtime: path}, core.DefaultLimits().Memory) {
		if i.Runtime == runtime {
			return i
		}
	}
	panic(runtime + " is no runtime")
}

// emulated is how many times as long programs may take in the contract. What computes takes
// 20 to 30 times as long on an emulated processor, but most of those programs do not.
const emulated = 4

// TestContract runs the contract tests of sandboxes. On an emulated processor, a program can take
// several seconds. If RETORT_FULL is not set, guests run only the tests that depend on how a virtual
// machine is started, limited and ended.
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

// forAll runs a test for each runtime in the machines of each driver.
func forAll(t *testing.T, test func(t *testing.T, driver, runtime string)) {
	for _, driver := range drivers {
		for _, runtime := range []string{quickjs, "python"} {
			t.Run(driver+"/"+runtime, func(t *testing.T) { test(t, driver, runtime) })
		}
	}
}

// TestEscapes has native programs, which could do anything, try every way out: with the
// system calls of the built-in guest, and with those of an interpreter.
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

// executed is how one program ended in a sandbox of its own.
func executed(t testing.TB, b sandbox.Backend, runtime, code string) sandbox.RunReport {
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

// TestCopiesDiffer shows that copies of one machine have neither the same random numbers
// nor the clock of when it was kept.
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
		differ(t, s, runtime, info.ModTime())
	})
}

// differ runs a program in copies of a virtual machine that was saved at the time kept, and checks
// that their random values differ and that their clocks are right.
func differ(t *testing.T, b sandbox.Backend, runtime string, kept time.Time) {
	t.Helper()
	code := map[string]string{
		quickjs:  "return [Math.random(), crypto.randomUUID(), Date.now()]",
		"python": "import random, uuid, time\n[random.random(), str(uuid.uuid4()), int(time.time() * 1000)]",
	}[runtime]
	seen := map[any]bool{}
	for range 3 {
		before := time.Now()
		r := executed(t, b, runtime, code)
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

// BenchmarkCalls makes a thousand calls of a program, one after the other and at once.
func BenchmarkCalls(b *testing.B) {
	for name, code := range map[string]string{
		"in turn": "for (let i = 0; i < 1000; i++) await callMCPTool('x')",
		"at once": "await Promise.all(Array.from({length: 1000}, () => callMCPTool('x')))",
	} {
		b.Run(name, func(b *testing.B) {
			backend := New(optionsHere(b, "qemu"))
			defer backend.Close()
			for b.Loop() {
				r := executed(b, backend, quickjs, "const t = Date.now(); "+code+"; return Date.now() - t")
				b.Logf("%s %v %s", r.Status, r.Error, r.Value)
			}
		})
	}
}

// TestCommands holds the contract of commands, and that what runs is the file that was looked
// at, or nothing.
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

// commanding is a backend whose programs can start this test program, at path.
func commanding(t *testing.T, o Options) (b sandbox.Backend, path string) {
	t.Helper()
	path = toolHere(t)
	o.Commands, o.Warm = hostcmd.FindCommands([]string{path}), -1
	b = New(o)
	t.Cleanup(func() { _ = b.Close() })
	return b, path
}

// toolHere is a copy of this test program.
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

// TestDriverIsWalled looks at what a program would have that has broken out of its machine: the files
// of what makes it, and its memory, no network, no other process, no rights.
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

// TestPrograms runs the programs of all sandboxes in machines.
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

// TestNetworked holds what programs can do that have a network.
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
