//go:build amd64 || arm64

package docker

import (
	"context"
	"flag"
	"fmt"
	"go/build"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"retort/internal/guest"
	"retort/internal/pipeline/isolate"
	"retort/internal/pipeline/isolate/interpreter"
	"retort/internal/pipeline/isolate/isolatetest"
	"retort/internal/pipeline/isolate/process/walls"
	"retort/internal/run"
	"retort/internal/runtimes"
	"retort/internal/testenv"
)

// TestMain lets the test program be the guest, as `retort guest` is.
func TestMain(m *testing.M) {
	args := os.Args[1:]
	if len(args) > 2 && args[0] == walls.ContainedArgument {
		if walls.EnterContained(args[1]) != nil {
			os.Exit(1)
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
	if len(args) > 1 && args[0] == "probe" {
		isolatetest.Probe(args[1], os.Stdin, os.Stdout)
	}
	if len(args) > 2 && args[0] == "engine" {
		engine(args[1], args[2])
		os.Exit(0)
	}
	code := m.Run()
	if shared != nil {
		shared.end()
	}
	os.Exit(code)
}

var update = flag.Bool("update", false, "write the profiles of system calls")

// The profiles are those of the walls.
func TestProfiles(t *testing.T) {
	for _, runtime := range []string{"quickjs", "python", "node", "bun", "deno"} {
		want, err := walls.ContainerProfile(runtime)
		if err != nil {
			t.Fatal(err)
		}
		if *update && runtime != "bun" && runtime != "deno" {
			if err := os.WriteFile("seccomp/"+runtime+".json", append(want, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := profile(runtime)
		if err != nil || strings.TrimSpace(got) != string(want) {
			t.Errorf("the profile of %s is not that of the walls: go test -update (%v)", runtime, err)
		}
	}
}

// dockerd is a daemon that tests have started.
type dockerd struct {
	dir string
	pid int // also of its group
}

// start starts the daemon as a child of nobody: this process counts its children.
func (d *dockerd) start(t testing.TB, path string, args ...string) {
	t.Helper()
	cmd := exec.Command("setsid", append([]string{"--fork", "sh", "-c", `echo $$ > "$0"/started; exec "$@" > "$0"/log 2>&1 < /dev/null`, d.dir, path}, args...)...)
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		data, _ := os.ReadFile(filepath.Join(d.dir, "started"))
		if n, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && strings.HasSuffix(string(data), "\n") {
			d.pid = n
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the daemon was not started")
}

func (d *dockerd) runs() bool { return syscall.Kill(d.pid, 0) == nil }

func (d *dockerd) host() string { return "unix://" + filepath.Join(d.dir, "sock") }

var shared *dockerd

// daemonHere is a daemon for all tests.
func daemonHere(t testing.TB) *dockerd {
	t.Helper()
	if shared == nil {
		shared = startDaemon(t)
	}
	return shared
}

// startDaemon starts a daemon with folders of its own, without networks.
func startDaemon(t testing.TB) *dockerd {
	t.Helper()
	path := testenv.Need(t, "dockerd")
	for _, driver := range []string{"overlay2", "vfs"} {
		dir, err := os.MkdirTemp("", "dkt")
		if err != nil {
			t.Fatal(err)
		}
		d := &dockerd{dir: dir}
		args := []string{
			"--bridge=none", "--iptables=false", "--ip6tables=false", "--data-root=" + filepath.Join(dir, "data"), "--exec-root=" + filepath.Join(dir, "exec"),
			"--pidfile=" + filepath.Join(dir, "pid"), "--host=" + d.host(), "--storage-driver=" + driver, "--config-file=" + filepath.Join(dir, "daemon.json"),
		}
		settings := "{}"
		if runsc := runscHere(); runsc != "" {
			settings = fmt.Sprintf(`{"runtimes":{"runsc":{"path":%q,"runtimeArgs":["--platform=systrap","--network=none"]}}}`, runsc)
		}
		if err := os.WriteFile(filepath.Join(dir, "daemon.json"), []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		d.start(t, path, args...)
		if d.ready() {
			return d
		}
		said, _ := os.ReadFile(filepath.Join(dir, "log"))
		t.Logf("%s: %s", driver, said)
		d.end()
	}
	t.Fatal("no daemon could be started")
	return nil
}

// runscHere is gVisor's program, of PATH or where go install puts it; empty if it is not here.
func runscHere() string {
	for _, name := range []string{"runsc", filepath.Join(build.Default.GOPATH, "bin", "runsc")} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

func (d *dockerd) ready() bool {
	for range 300 {
		b := newBackend(Options{Host: d.host()})
		if _, err := b.meet(context.Background()); err == nil {
			return true
		}
		if !d.runs() {
			return false
		}
		time.Sleep(100 * time.Millisecond)
	}
	return false
}

// end ends the daemon with its containerd, and removes what it has left.
func (d *dockerd) end() {
	_ = syscall.Kill(d.pid, syscall.SIGTERM)
	for late := time.Now().Add(20 * time.Second); d.runs() && time.Now().Before(late); {
		time.Sleep(20 * time.Millisecond)
	}
	_ = syscall.Kill(-d.pid, syscall.SIGKILL)
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range lines { // what held its containers
		line, _ := os.ReadFile(file)
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && strings.Contains(string(line), d.dir+"/") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], d.dir+"/") {
			_ = syscall.Unmount(fields[1], syscall.MNT_DETACH)
		}
	}
	_ = os.RemoveAll(d.dir)
}

// options are those of a backend on the shared daemon.
func options(t testing.TB, runtime string) Options {
	return Options{Host: daemonHere(t).host(), Runtime: runtime, Dir: t.TempDir()}
}

// pythonHere describes the machine's Python as the engine does, or skips the test.
func pythonHere(t testing.TB) interpreter.Interpreter {
	t.Helper()
	path := testenv.Need(t, "python")
	for _, i := range runtimes.All(map[string]string{"python": path}, run.DefaultLimits().Memory) {
		if i.Runtime == "python" {
			return i
		}
	}
	panic("python is no runtime")
}

func TestContract(t *testing.T) {
	for _, runner := range []string{"runc", "runsc"} {
		for _, language := range []string{quickjs, "python"} {
			t.Run(runner+"/"+language, func(t *testing.T) {
				if runner == gvisor {
					testenv.Need(t, "runsc")
				}
				o := options(t, runner)
				if language == "python" {
					o.Interpreters = []interpreter.Interpreter{pythonHere(t)}
				}
				isolatetest.Run(t, language, func(t *testing.T) isolate.Backend { return New(o) })
			})
		}
	}
}

// TestEscapes has native programs, which could do anything, try every way out: with the
// system calls of the built-in guest, and with those of an interpreter.
func TestEscapes(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const leftOut = "a thousand threads" // it looks for a limit of the user; here the control group has it: see TestThreads
	for _, runner := range []string{"runc", "runsc"} {
		with := func(name string, change func(o *Options), try func(t *testing.T, b isolate.Backend)) {
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
		with(quickjs, func(o *Options) { o.Guest = []string{self, "probe", quickjs} }, func(t *testing.T, b isolate.Backend) { isolatetest.Escapes(t, b, quickjs, leftOut) })
		// As an interpreter it is this very program, with a harness that it ignores.
		probe := interpreter.Interpreter{Runtime: "node", Command: self, Flags: []string{"probe", "node"}, Harness: func() map[string][]byte { return nil }, Threads: threads}
		with("interpreter", func(o *Options) { o.Guest, o.Interpreters = []string{self, "guest"}, []interpreter.Interpreter{probe} }, func(t *testing.T, b isolate.Backend) {
			out := []string{leftOut}
			if runner == gvisor { // the name is one that the container was given, /sys has an empty folder; files are memory of gVisor's, which the control group bounds
				out = append(out, "read /etc/hostname", "list /sys", "a million files")
			}
			isolatetest.Escapes(t, b, "node", out...)
		})
		with("python", func(o *Options) { o.Interpreters = []interpreter.Interpreter{pythonHere(t)} }, func(t *testing.T, b isolate.Backend) {
			var without []string
			if runner == gvisor { // as above
				without = []string{`"/etc/hostname", `}
			}
			isolatetest.PythonEscapes(t, b, without...)
		})
	}
}
