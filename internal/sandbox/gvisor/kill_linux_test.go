package gvisor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox"
	"retort/internal/sandbox/hostcmd"
	"retort/internal/sandbox/interpreter"
	"retort/internal/sandbox/sandboxtest"
)

// atOnce returns how many programs run in the engine when the test kills it.
func atOnce() int {
	if testenv.Full() {
		return 50
	}
	return 10
}

// commanding is a prefix of the argument kind of the function engine. It says that programs start a command, and is
// followed by the command's path.
const commanding = "commands:"

// engine implements the main function of an engine that the test kills. It prints a line when all its programs run.
// Its arguments are the path of runsc and the folder of containers. The argument kind is "" for QuickJS, the path of
// a Python interpreter, or commanding with the path of a command.
func engine(runsc, dir, kind string) {
	o := Options{Guest: []string{os.Args[0], "guest"}, Runsc: runsc, Dir: dir, Warm: 1}
	runtime, code := quickjs, "await callMCPTool('x'); await sleep(1e6)"
	tool, commander := strings.CutPrefix(kind, commanding)
	switch {
	case kind == "":
	case commander:
		o.Commands = hostcmd.FindCommands([]string{tool})
	default:
		runtime, code = "python", "call_mcp_tool('x')\nawait sleep(1e6)"
		o.Interpreters = []interpreter.Interpreter{pythonAt(kind)}
	}
	b := New(o)
	var calls sync.WaitGroup
	calls.Add(atOnce())
	limits := core.Limits{Timeout: time.Hour}.WithDefaults(core.DefaultLimits())
	for range atOnce() {
		go func() {
			s := sandboxtest.PrepareSandbox(b, sandbox.SandboxSpec{Runtime: runtime, Limits: limits})
			_, _ = s.Run(context.Background(), core.CheckedProgram{Code: code, Limits: limits}, sandbox.HostFunc(func(ctx context.Context, _ core.ToolCall) (core.CallResult, error) {
				calls.Done()
				if commander {
					_, err := s.(sandbox.CommandStarter).Start(ctx, sandbox.HostCommand{Name: filepath.Base(tool), Args: []string{"command", "sleep"}})
					fmt.Fprintln(os.Stderr, "a command ended:", err)
				}
				return core.CallResult{Value: []byte("1")}, nil
			}))
		}()
	}
	calls.Wait()
	fmt.Println("all there")
	testenv.Hang()
}

// TestKilledEngine checks that the containers of a killed engine end by themselves, and that the next engine removes
// their files, mounts and control groups.
func TestKilledEngine(t *testing.T) {
	t.Parallel()
	t.Run(quickjs, func(t *testing.T) { testKilledEngine(t, "") })
	t.Run("python", func(t *testing.T) { testKilledEngine(t, pythonHere(t).Command) })
	t.Run("commands", func(t *testing.T) {
		tool := filepath.Join(t.TempDir(), "tool")
		data, err := os.ReadFile("/proc/self/exe")
		if err == nil {
			err = os.WriteFile(tool, data, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		testKilledEngine(t, commanding+tool)
	})
}

// countCommands returns the number of containers below dir that run a command and whose kernel was started.
func countCommands(dir string) (n int) {
	started, _ := filepath.Glob(filepath.Join(dir, prefix+"*", "*", pidFile))
	for _, file := range started {
		bundle, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "config.json"))
		if strings.Contains(string(bundle), "/root-"+commandRoot) {
			n++
		}
	}
	return n
}

func testKilledEngine(t *testing.T, kind string) {
	runsc, dir := testenv.Need(t, "runsc"), shortDir(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(testenv.Context(t), self, "engine", runsc, dir, kind)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if n := len(processesOf(dir)); err != nil || n < atOnce() {
		t.Errorf("the engine printed %q, %v; %d processes for %d containers", line, err, n, atOnce())
	}
	if strings.HasPrefix(kind, commanding) {
		testenv.WaitUntil(t, "some commands run and others are being started", func() bool { return countCommands(dir) >= atOnce()/5 })
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	testenv.WaitUntil(t, "no process of a container outlives the engine", func() bool { return len(processesOf(dir)) == 0 })
	b := New(Options{Runsc: runsc, Dir: dir, Warm: -1})
	if r := runProgram(t, b, quickjs, "return 1", core.Limits{}); r.Status != core.StatusOK {
		t.Errorf("%s %v", r.Status, r.Error)
	}
	places, _ := os.ReadDir(dir)
	if len(places) != 1 {
		inside, _ := filepath.Glob(filepath.Join(dir, "*", "*"))
		t.Errorf("beside the new engine's there are %v: %v", places, inside)
	}
	if left := remainsOf(t, cmd.Process.Pid, dir, places[0].Name()); left != "" {
		t.Error(left)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// remainsOf lists the mounts and control groups that an engine has left behind.
func remainsOf(t *testing.T, pid int, dir, but string) (left string) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, dir) && !strings.Contains(line, but) {
			left += line
		}
	}
	return left + strings.Join(testenv.ControlGroups(pid), "\n")
}

// TestSweepEndsContainers checks that sweepDeadEngines kills containers that have outlived their engine, but no
// containers of a living engine.
func TestSweepEndsContainers(t *testing.T) {
	o := optionsHere(t)
	o.Warm = -1
	b := New(o)
	s, err := b.Prepare(t.Context(), sandbox.SandboxSpec{Runtime: quickjs, Limits: core.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	places, _ := filepath.Glob(filepath.Join(o.Dir, prefix+"*"))
	if len(places) != 1 || len(processesOf(places[0])) < 3 {
		t.Fatalf("%v", places)
	}
	sweepDeadEngines(o.Dir)
	if n := len(processesOf(places[0])); n < 3 {
		t.Errorf("%d processes are left of an engine that lives", n)
	}
	// Its lock goes with a rename as it would with its end.
	if err := os.Remove(filepath.Join(places[0], lockFile)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(places[0], lockFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	sweepDeadEngines(o.Dir)
	if n := len(processesOf(places[0])); n > 0 {
		t.Errorf("%d processes are left of an engine that died", n)
	}
	if _, err := os.Stat(places[0]); err == nil {
		t.Error("its folder is left")
	}
	_ = s.Close()
	_ = b.Close()
}

// TestSweepRemovesFolders checks that sweepDeadEngines removes the folder of a dead engine even while files are
// created in it. A folder without a lock file must be removed only if it is old.
func TestSweepRemovesFolders(t *testing.T) {
	parent := shortDir(t)
	busy, half, fresh := filepath.Join(parent, prefix+"busy"), filepath.Join(parent, prefix+"half"), filepath.Join(parent, prefix+"new")
	for _, dir := range []string{filepath.Join(busy, "1"), half, fresh} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	before, after := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if err := errors.Join(os.WriteFile(filepath.Join(busy, lockFile), nil, 0o600), os.Chtimes(half, before, before), os.Chtimes(fresh, after, after)); err != nil {
		t.Fatal(err)
	}
	// The writers create files while sweep removes others, like a container that is just starting.
	var writers, begun sync.WaitGroup
	for n := range 4 {
		begun.Add(1)
		writers.Go(func() {
			write := func(i int) string {
				file := filepath.Join(busy, "1", fmt.Sprint(n, " ", i))
				_ = os.WriteFile(file, nil, 0o600)
				return file
			}
			first := write(0)
			begun.Done()
			for i, more := 1, 50; more > 0; i++ {
				if write(i); !exists(first) {
					more--
				}
			}
		})
	}
	begun.Wait()
	sweepDeadEngines(parent)
	writers.Wait()
	if left, _ := filepath.Glob(filepath.Join(parent, "*")); !slices.Equal(left, []string{fresh}) {
		t.Errorf("%v", left)
	}
	_ = os.Remove(fresh)
}

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

// TestForeignPlace checks that checkOwned rejects symbolic links, and folders that other users can write to.
func TestForeignPlace(t *testing.T) {
	for name, prepare := range map[string]func(dir string) error{
		"writable": func(dir string) error { return os.Chmod(dir, 0o777) },
		"a link": func(dir string) error {
			if err := os.Remove(dir); err != nil {
				return err
			}
			return os.Symlink(t.TempDir(), dir)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "x")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := prepare(dir); err != nil {
				t.Fatal(err)
			}
			if err := checkOwned(dir); err == nil {
				t.Error("it is used")
			}
		})
	}
}
