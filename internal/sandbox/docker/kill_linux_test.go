//go:build amd64 || arm64

package docker

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox"
	"retort/internal/sandbox/hostcmd"
	"retort/internal/sandbox/interpreter"
)

// atOnce is the number of programs that run in the engine at the same time, each started by its own worker goroutine.
// rounds is the number of programs that each worker runs, one after the other.
const atOnce, rounds = 6, 5

// commanding is a value of the argument kind of the function engine. It means that the engine's programs start
// commands.
const commanding = "commands"

// engine implements the main function of an engine that the test kills. It runs atOnce programs at the same time,
// half of which are busy, and prints a line for each program that it starts. Its arguments are the address of the
// daemon, the directory of the backend and the container runtime. The argument kind is "" for QuickJS, the path of a
// Python interpreter, or commanding.
func engine(host, dir, runner, kind string) {
	o := Options{Host: host, Dir: dir, Runtime: runner}
	runtime, busy, calling := quickjs, "for (;;);", "await callMCPTool('x')"
	switch kind {
	case "":
	case commanding: // half of them last, the others are started one after the other
		busy, calling = calling, "for (;;) await callMCPTool('x')"
		o.Commands = hostcmd.FindCommands([]string{os.Args[0]})
	default:
		runtime, busy, calling = "python", "while True: pass", "call_mcp_tool('x')"
		o.Interpreters = []interpreter.Interpreter{pythonAt(kind)}
	}
	b := New(o)
	var all sync.WaitGroup
	for worker := range atOnce {
		code, does := calling, "env"
		if worker%2 == 0 {
			code, does = busy, "sleep"
		}
		all.Go(func() {
			for range rounds {
				s, err := b.Prepare(context.Background(), sandbox.SandboxSpec{Runtime: runtime, Limits: core.DefaultLimits()})
				if err != nil {
					fmt.Println(err)
					return
				}
				h := sandbox.HostFunc(nothing)
				if kind == commanding {
					h = starter(s.(sandbox.CommandStarter), does)
				} else {
					fmt.Println("under way")
				}
				_, _ = s.Run(context.Background(), core.CheckedProgram{Code: code}, h)
				_ = s.Close()
			}
		})
	}
	all.Wait()
}

// starter returns a ToolHost that prints a line and starts this test binary as a command whenever the program makes a
// call.
func starter(s sandbox.CommandStarter, does string) sandbox.HostFunc {
	return func(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
		fmt.Println("under way")
		_, err := s.Start(ctx, sandbox.HostCommand{Name: filepath.Base(os.Args[0]), Args: []string{"command", does}})
		if err != nil && ctx.Err() == nil {
			fmt.Println(err)
		}
		return nothing(ctx, c)
	}
}

// containers returns the containers that were started by the engines with a lock file in dir. The result maps the ids
// of these containers to the names of their images.
func containers(t *testing.T, host, dir string) map[string]string {
	t.Helper()
	a, known := findDaemon(host)
	if known != nil {
		t.Fatal(known)
	}
	filters, _ := json.Marshal(map[string][]string{"label": {label}})
	var list []struct {
		ID     string `json:"Id"`
		Image  string
		Labels map[string]string
	}
	if err := newAPI(a).callJSON(t.Context(), http.MethodGet, "/containers/json", url.Values{"all": {"1"}, "filters": {string(filters)}}, nil, &list); err != nil {
		t.Fatal(err)
	}
	images := map[string]string{}
	for _, c := range list {
		if filepath.Dir(c.Labels[labelLock]) == dir {
			images[c.ID] = c.Image
		}
	}
	return images
}

// kills lists the cases of TestKilledEngine. Unless RETORT_FULL is set, one engine is killed at its start, and one
// later for each kind of program. One case for gVisor suffices, because to the daemon its containers end in the same
// way.
var kills = []struct {
	runner, kind string
	underWay     []int // numbers of running programs; an engine is killed for each number
	full         []int // the same numbers if RETORT_FULL is set
}{
	{"runc", quickjs, []int{1, atOnce + 1}, []int{1, 2, 4, 6, 7, 8, 11}},
	{"runc", "python", []int{atOnce + 1}, []int{1, 7, 11}},
	{"runc", commanding, []int{2 * atOnce}, []int{1, 7, 12, 15}},
	{gvisor, quickjs, []int{atOnce + 1}, []int{1, 7, 11}},
	{gvisor, "python", nil, []int{1, 7, 11}},
	{gvisor, commanding, nil, []int{1, 7, 12, 15}},
}

// TestKilledEngine checks that nothing is left of a killed engine. Its running containers end when their input is
// closed, and the next engine removes containers that were not started yet.
func TestKilledEngine(t *testing.T) {
	t.Parallel()
	d := daemonHere(t)
	for _, c := range kills {
		points := c.underWay
		if testenv.Full() {
			points = c.full
		}
		if len(points) == 0 {
			continue
		}
		t.Run(c.runner+"/"+c.kind, func(t *testing.T) {
			kind := c.kind
			if c.runner == gvisor {
				testenv.Need(t, "runsc")
			}
			switch kind {
			case quickjs:
				kind = ""
			case "python":
				kind = pythonHere(t).Command
			}
			t.Parallel()
			dir := t.TempDir()
			for _, n := range points {
				killed(t, d, n, dir, c.runner, kind)
			}
		})
	}
}

// killed kills an engine while n of its programs run. It then starts another engine and checks that nothing of the
// first one is left.
func killed(t *testing.T, d *testenv.DockerDaemon, n int, dir, runner, kind string) {
	cmd := exec.Command(os.Args[0], "engine", d.Host(), dir, runner, kind)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for range n {
		if !lines.Scan() || lines.Text() != "under way" {
			_ = cmd.Process.Kill()
			t.Fatalf("%q", lines.Text())
		}
	}
	seen := map[string]string{}
	look := func() (now int) {
		there := containers(t, d.Host(), dir)
		maps.Copy(seen, there)
		return len(there)
	}
	if look() == 0 || remainsOf(d, slices.Collect(maps.Keys(seen))) == "" {
		t.Error("nothing of an engine that lives is found")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	t.Logf("%d containers when it was killed", look())
	ofCommand := func(image string) bool { return strings.HasPrefix(image, imageRepository+":"+commandProfile) }
	if some := slices.ContainsFunc(slices.Collect(maps.Values(seen)), ofCommand); kind == commanding && n > 1 && !some {
		t.Error("no command was under way")
	}
	next := New(Options{Host: d.Host(), Dir: dir, Runtime: runner, Warm: -1})
	if !testenv.Poll(func() bool { return look() == 0 && !hasDeadEngines(dir) }) {
		t.Fatalf("%d containers are left\nthe daemon says:%s", look(), logLinesOf(d, slices.Collect(maps.Keys(containers(t, d.Host(), dir)))))
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
	left := ""
	if !testenv.Poll(func() bool { left = remainsOf(d, slices.Collect(maps.Keys(seen))); return left == "" }) {
		t.Errorf("left of %d containers: %s\nthe daemon says:%s", len(seen), left, logLinesOf(d, slices.Collect(maps.Keys(seen))))
	}
}

// logLinesOf returns the lines of the daemon's log that are about the given containers. Each given id is that of a
// container that has left something behind, such as a process.
func logLinesOf(d *testenv.DockerDaemon, ids []string) (said string) {
	log, _ := os.ReadFile(filepath.Join(home(d), "log"))
	for _, id := range ids {
		if remainsOf(d, []string{id}) == "" {
			continue
		}
		for line := range strings.Lines(string(log)) {
			if strings.Contains(line, id) {
				said += "\n" + strings.TrimSpace(line)
			}
		}
	}
	return said
}

// home returns the folder in which the test's daemon keeps its files.
func home(d *testenv.DockerDaemon) string {
	return filepath.Dir(strings.TrimPrefix(d.Host(), "unix://"))
}

// remainsOf lists what is left of the containers with the given ids: processes, mounts, control groups and files of the
// daemon whose names contain one of the ids.
func remainsOf(d *testenv.DockerDaemon, ids []string) (left string) {
	ours := func(text string) bool {
		return slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(text, id) })
	}
	processes, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range processes {
		if line, _ := os.ReadFile(file); ours(string(line)) {
			left += fmt.Sprintf("\nprocess %q", line)
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		if ours(line) {
			left += "\nmount " + line
		}
	}
	for _, root := range []string{"/sys/fs/cgroup", filepath.Join(home(d), "exec"), filepath.Join(home(d), "data", "containers")} {
		_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil // it has gone meanwhile
			case ours(e.Name()):
				left += "\n" + path
			}
			return nil
		})
	}
	return left
}
