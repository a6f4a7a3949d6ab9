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
	"time"

	"retort/internal/pipeline/isolate"
	"retort/internal/pipeline/isolate/interpreter"
	"retort/internal/run"
	"retort/internal/testenv"
)

const engineRuns = 50

// engine is the main program of an engine that is killed: it runs programs, ten at once, of
// which half are busy, and says with a line when some are under way. Its arguments are where
// the daemon listens, the folder for its life, the runtime of containers, and a Python to run
// programs on instead of QuickJS, if it is one.
func engine(host, dir, runner, python string) {
	o := Options{Host: host, Dir: dir, Runtime: runner}
	runtime, busy, calling := quickjs, "for (;;);", "await callMCPTool('x')"
	if python != "" {
		runtime, busy, calling = "python", "while True: pass", "call_mcp_tool('x')"
		o.Interpreters = []interpreter.Interpreter{pythonAt(python)}
	}
	b := New(o)
	var all sync.WaitGroup
	for worker := range 10 {
		all.Go(func() {
			for range engineRuns / 10 {
				s, err := b.Prepare(context.Background(), isolate.Spec{Runtime: runtime, Limits: run.DefaultLimits()})
				if err != nil {
					fmt.Println(err)
					return
				}
				fmt.Println("under way")
				code := calling
				if worker%2 == 0 {
					code = busy
				}
				_, _ = s.Run(context.Background(), run.Program{Code: code}, isolate.HostFunc(nothing))
				_ = s.Close()
			}
		})
	}
	all.Wait()
}

// containers are those of engines whose lives are in dir.
func containers(t *testing.T, host, dir string) (ids []string) {
	t.Helper()
	a, known := find(host)
	if known != nil {
		t.Fatal(known)
	}
	filters, _ := json.Marshal(map[string][]string{"label": {label}})
	var list []struct {
		ID     string `json:"Id"`
		Labels map[string]string
	}
	if err := newAPI(a).call(t.Context(), http.MethodGet, "/containers/json", url.Values{"all": {"1"}, "filters": {string(filters)}}, nil, &list); err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if filepath.Dir(c.Labels[labelLock]) == dir {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// An engine that is killed leaves nothing: its containers end with their input, and what
// had not been started yet goes with the next engine.
func TestKilledEngine(t *testing.T) {
	t.Parallel()
	d := daemonHere(t)
	for _, c := range []struct {
		runner, language string
		after            []int // how many runs are under way when it is killed
	}{
		{"runc", quickjs, []int{1, 6, 11}}, {"runc", "python", []int{1, 11}}, {gvisor, quickjs, []int{1, 11}}, {gvisor, "python", []int{1, 11}},
	} {
		t.Run(c.runner+"/"+c.language, func(t *testing.T) {
			python := ""
			if c.runner == gvisor {
				testenv.Need(t, "runsc")
			}
			if c.language == "python" {
				python = pythonHere(t).Command
			}
			t.Parallel()
			dir := t.TempDir()
			for _, n := range c.after {
				killed(t, d, n, dir, c.runner, python)
			}
		})
	}
}

// killed kills an engine when n of its programs are under way, starts the next and looks for
// what is left.
func killed(t *testing.T, d *testenv.Dockerd, n int, dir, runner, python string) {
	cmd := exec.Command(os.Args[0], "engine", d.Host(), dir, runner, python)
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
	seen := map[string]bool{}
	look := func() (now int) {
		ids := containers(t, d.Host(), dir)
		for _, id := range ids {
			seen[id] = true
		}
		return len(ids)
	}
	if look() == 0 || leftOf(d, slices.Collect(maps.Keys(seen))) == "" {
		t.Error("nothing of an engine that lives is found")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	t.Logf("%d containers when it was killed", look())
	next := New(Options{Host: d.Host(), Dir: dir, Runtime: runner, Warm: -1})
	for late := time.Now().Add(60 * time.Second); look() > 0 || stale(dir); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("%d containers are left", look())
		}
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
	left := ""
	for late := time.Now().Add(10 * time.Second); time.Now().Before(late); time.Sleep(50 * time.Millisecond) {
		if left = leftOf(d, slices.Collect(maps.Keys(seen))); left == "" {
			return
		}
	}
	t.Errorf("left of %d containers: %s", len(seen), left)
}

// leftOf says what bears the name of one of the containers: processes, mounts, control groups,
// folders and sockets of the daemon's.
func leftOf(d *testenv.Dockerd, ids []string) (left string) {
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
	home := filepath.Dir(strings.TrimPrefix(d.Host(), "unix://"))
	for _, root := range []string{"/sys/fs/cgroup", filepath.Join(home, "exec"), filepath.Join(home, "data", "containers")} {
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
