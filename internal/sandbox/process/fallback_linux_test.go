package process

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/sandboxtest"
)

func isProbe(m confine.PlanMount) bool { return m.Target == "/usr/bin/probe" }

// confined is the name of an environment variable. It is set for test processes that cannot create namespaces.
const confined = "RETORT_TEST_CONFINED"

const nobody = 65534

// TestFallback checks that TestConfined passes on a machine that refuses namespaces. It simulates that machine: it
// starts the test binary in a user namespace in which no further user namespaces can be created.
func TestFallback(t *testing.T) {
	if os.Getenv(confined) != "" {
		t.Skip("this is the inside")
	}
	inConfinement(t, "^TestConfined$", 0)
	if os.Geteuid() == 0 { // and may change to nobody, who may not find this program
		inConfinement(t, "^TestConfined$/^quickjs$", 0, nobody)
	}
}

// inConfinement runs tests in a child process whose user namespace cannot create further namespaces. The argument
// users lists the user ids that exist in the namespace. The first of these ids stands for the current user.
func inConfinement(t *testing.T, tests string, users ...int) {
	command := self(t, "confine", "-test.run="+tests, "-test.v")
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Env = append(os.Environ(), confined+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, GidMappingsEnableSetgroups: len(users) > 1}
	for i, user := range users {
		uid, gid := user, user
		if i == 0 {
			uid, gid = os.Geteuid(), os.Getegid()
		}
		cmd.SysProcAttr.UidMappings = append(cmd.SysProcAttr.UidMappings, syscall.SysProcIDMap{ContainerID: user, HostID: uid, Size: 1})
		cmd.SysProcAttr.GidMappings = append(cmd.SysProcAttr.GidMappings, syscall.SysProcIDMap{ContainerID: user, HostID: gid, Size: 1})
	}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !strings.Contains(string(out), "--- PASS: TestConfined") {
		t.Error(err)
	}
}

// confineSelf makes it impossible for this process and its descendants to create user namespaces.
func confineSelf() error {
	return os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
}

func TestConfined(t *testing.T) {
	if os.Getenv(confined) == "" {
		t.Skip("TestFallback runs this")
	}
	t.Run("none", func(t *testing.T) {
		b := New(Options{Interpreters: []RuntimeInterpreter{interpreterHere(t, "python", 0)}})
		defer b.Close()
		why := b.Capabilities().Unavailable
		if why == nil || why.Kind != core.KindSandboxUnavailable || !strings.Contains(why.Message, "user namespaces are turned off on this machine") || !strings.Contains(why.Hint, "sysctl -w user.max_user_namespaces=") {
			t.Errorf("unavailable: %+v", why)
		}
		for _, runtime := range []string{quickjs, "python"} {
			if _, err := b.Prepare(context.Background(), sandbox.SandboxSpec{Runtime: runtime, Limits: core.DefaultLimits()}); err == nil || core.AsError(err).Message != why.Message {
				t.Errorf("%s: %v", runtime, err)
			}
		}
	})
	t.Run("quickjs", func(t *testing.T) {
		b := New(Options{Interpreters: []RuntimeInterpreter{interpreterHere(t, "python", 0)}, Fallback: FallbackQuickJS})
		defer b.Close()
		have := b.Capabilities()
		if have.Unavailable != nil || have.Strength != strengthWeak || !strings.Contains(have.Warning, "user namespaces are turned off on this machine") || !slices.Equal(have.Runtimes, []string{quickjs}) {
			t.Errorf("%+v", have)
		}
		if len(have.Missing) != 1 || have.Missing[0].Runtime != "python" || !strings.Contains(have.Missing[0].Why.Message, "need a sandbox that this machine does not allow: user namespaces are turned off on this machine") {
			t.Errorf("missing: %+v", have.Missing)
		}
		ranWeakly(t, inRuntime(t, b, quickjs, "return 1", core.Limits{}))
		if _, err := b.Prepare(context.Background(), sandbox.SandboxSpec{Runtime: "python", Limits: core.DefaultLimits()}); err == nil || core.AsError(err).Kind != core.KindSandboxUnavailable {
			t.Errorf("python: %v", err)
		}
	})
	t.Run("all", allConfined)
	t.Run("escapes", escapesConfined)
}

// TestScratchDirs checks that newScratch removes the directory of an engine that was killed, but keeps that of a
// running engine and files of other programs.
func TestScratchDirs(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	one, err := newScratch()
	if err != nil {
		t.Fatal(err)
	}
	defer one.remove()
	killed, err := newScratch()
	if err != nil {
		t.Fatal(err)
	}
	_ = killed.lock.Close() // as the kernel does
	foreign := filepath.Join(os.TempDir(), scratchName+"foreign")
	if err := os.Mkdir(foreign, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(one.dir, filepath.Join(os.TempDir(), scratchName+"link")); err != nil {
		t.Fatal(err)
	}
	two, err := newScratch()
	if err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), "retort-*"))
	want := []string{one.dir, foreign, filepath.Join(os.TempDir(), scratchName+"link"), two.dir}
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("left: %v, want %v", left, want)
	}
	two.remove()
	if _, err := os.Stat(two.dir); err == nil {
		t.Errorf("%s is left", two.dir)
	}
}

func ranWeakly(t *testing.T, r sandbox.RunReport) {
	t.Helper()
	if r.Status != core.StatusOK || string(r.Value) != "1" || r.Backend != "process (weak)" || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "the sandbox was weak") {
		t.Errorf("%s %v %s, %s %q", r.Status, r.Error, r.Value, r.Backend, r.Warnings)
	}
}

func allConfined(t *testing.T) {
	for _, runtime := range testedRuntimes {
		t.Run(runtime, func(t *testing.T) {
			o := optionsFor(t, runtime)
			o.Fallback, o.Warm = FallbackAll, -1
			b := New(o)
			code := "return 1"
			if runtime == "python" {
				code = "result = 1"
			}
			ranWeakly(t, inRuntime(t, b, runtime, code, core.Limits{}))
			dir := b.scratch.dir
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(dir); dir != "" && err == nil {
				t.Errorf("%s is left", dir)
			}
		})
	}
}

// escapesConfined checks that the weak confinement, without namespaces, still blocks every escape attempt.
func escapesConfined(t *testing.T) {
	for _, profile := range testedRuntimes {
		t.Run(profile, func(t *testing.T) {
			k := native(t, profile, "probe", profile)
			k.plan.Argv[0], k.plan.Harness = k.plan.Mounts[slices.IndexFunc(k.plan.Mounts, isProbe)].Source, ""
			b := newWithKind(Options{Warm: -1, Fallback: FallbackAll}, k)
			defer b.Close()
			// Threads are counted by the watcher instead.
			sandboxtest.CheckEscapes(t, b, profile, "a thousand threads")
		})
	}
	pythonConfined(t)
}

func pythonConfined(t *testing.T) {
	b := newBackend(Options{Warm: -1, Fallback: FallbackAll, Interpreters: []RuntimeInterpreter{interpreterHere(t, "python", 0)}}, nil).open()
	defer b.Close()
	sandboxtest.PythonEscapes(t, b, `attempt("a thousand threads", threads)`)
	r := inRuntime(t, b, "python", "import threading\nstop = threading.Event()\nfor i in range(200): threading.Thread(target=stop.wait).start()\nawait sleep(1e6)", core.Limits{})
	if r.Status != core.StatusError || r.Error.Kind != core.KindLimit || !strings.Contains(r.Error.Message, "more than the 64 threads allowed") {
		t.Errorf("two hundred threads: %s %v", r.Status, r.Error)
	}
}
