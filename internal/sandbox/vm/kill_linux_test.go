package vm

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox"
	"retort/internal/sandbox/hostcmd"
	"retort/internal/sandbox/interpreter"
	"retort/internal/sandbox/sandboxtest"
)

// atOnce returns how many programs run at the same time in the engine that a test kills, and how many of these
// programs start a command. Each command runs in its own virtual machine, to which this test binary is copied.
func atOnce() (programs, commands int) {
	if testenv.Full() {
		return 50, 10
	}
	return 8, 4
}

// sleepingPrograms maps each runtime to the code of a program that makes a call and then sleeps.
var sleepingPrograms = map[string]string{
	quickjs:  "await callMCPTool('x'); await sleep(1e6)",
	"python": "call_mcp_tool('x')\nsleep(1e6)",
}

// withCommands is a value that the function engine accepts in place of a runtime. It means the built-in runtime, with
// programs that start commands.
const withCommands = "commands"

// engine implements the main function of an engine that the test kills. It prints a line when all its programs run.
// Its arguments are the driver, the driver's executable, the folder of a kernel, the runtime and a path. The path is
// that of the runtime's interpreter or, if the runtime is withCommands, of the command that programs start.
func engine(driver, program, kernel, runtime, path string) {
	o := Options{QEMU: program, Kernel: kernel, Dir: machineCache(driver), Warm: -1}
	if driver == "firecracker" {
		o.QEMU, o.Firecracker = "none", program
	}
	commander := runtime == withCommands
	switch {
	case commander:
		runtime = quickjs
		o.Commands = hostcmd.FindCommands([]string{path})
	case runtime != quickjs:
		o.Interpreters = []interpreter.Interpreter{described(runtime, path)}
	}
	b := New(o)
	var calls sync.WaitGroup
	var starting atomic.Int32
	programs, commanders := atOnce()
	calls.Add(programs)
	l := core.Limits{Timeout: time.Hour}.WithDefaults(core.DefaultLimits())
	for range programs {
		go func() {
			s := sandboxtest.PrepareSandbox(b, sandbox.SandboxSpec{Runtime: runtime, Limits: l})
			_, _ = s.Run(context.Background(), core.CheckedProgram{Code: sleepingPrograms[runtime], Name: "program", Limits: l}, sandbox.HostFunc(func(ctx context.Context, _ core.ToolCall) (core.CallResult, error) {
				calls.Done()
				if commander && int(starting.Add(1)) <= commanders {
					calls.Wait()
					_, err := s.(sandbox.CommandStarter).Start(ctx, sandboxtest.ToolCommand("sleep"))
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

// TestKilledEngine checks that all machines of a killed engine end by themselves and that no control groups are left.
// It also checks that the next engine removes a machine that the killed one had not saved completely.
func TestKilledEngine(t *testing.T) {
	t.Parallel()
	forAll(t, func(t *testing.T, driver, runtime string) {
		path := ""
		if runtime == "python" {
			path = testenv.Need(t, "python")
		}
		testKilledEngine(t, driver, runtime, path)
	})
	for _, driver := range drivers {
		t.Run(driver+"/commands", func(t *testing.T) {
			b, path := commanding(t, optionsHere(t, driver)) // the engine has its machine already
			if _, failed, _ := sandboxtest.StartCommand(t, b, core.Limits{Timeout: time.Minute}, sandboxtest.ToolCommand("env")); failed != nil {
				t.Fatal(failed)
			}
			testKilledEngine(t, driver, withCommands, path)
		})
	}
}

func testKilledEngine(t *testing.T, driver, runtime, path string) {
	t.Helper()
	o := optionsHere(t, driver)
	pid := killed(t, o, driver, runtime, path)
	another := filepath.Join(o.Dir, making+"another")
	if err := errors.Join(os.MkdirAll(another, 0o700), os.WriteFile(filepath.Join(another, memoryFile), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	o.Warm = -1
	if runtime == withCommands {
		runtime = quickjs
	}
	if runtime != quickjs {
		o.Interpreters = []interpreter.Interpreter{described(runtime, path)}
	}
	b := New(o)
	if r := runProgram(t, b, runtime, map[string]string{quickjs: "return 1", "python": "1"}[runtime]); r.Status != core.StatusOK {
		t.Errorf("%s %v", r.Status, r.Error)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	// Another test of this process may be making a machine in the same folder now, and then renames it.
	testenv.WaitUntil(t, "no half-made machine is left", func() bool {
		half, err := filepath.Glob(filepath.Join(o.Dir, making+"*"))
		return err == nil && len(half) == 0
	})
	if left := testenv.ControlGroups(pid); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// killed starts an engine, kills it while all its machines run a program, and waits until the machines have ended. It
// returns the engine's process id.
func killed(t *testing.T, o Options, driver, runtime, path string) int {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(testenv.Context(t), self, "engine", driver, testenv.Need(t, driver), o.Kernel, runtime, path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	programs, commanders := atOnce()
	if n := machines(t, o.Dir); err != nil || n < programs {
		t.Errorf("the engine printed %q, %v; %d machines for %d programs", line, err, n, programs)
	}
	if runtime == withCommands {
		testenv.WaitUntil(t, "some commands run and others are being started", func() bool { return machines(t, o.Dir) >= programs+commanders/2 })
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	testenv.WaitUntil(t, "no machine outlives the engine", func() bool { return machines(t, o.Dir) == 0 })
	return cmd.Process.Pid
}

// machines returns the number of running processes of virtual machines whose files are in the folder dir, which
// belongs to this test binary. It does not count processes that this process has started itself.
func machines(t *testing.T, dir string) (n int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	own := []byte("\nPPid:\t" + strconv.Itoa(os.Getpid()) + "\n")
	for _, e := range entries {
		status, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "status"))
		mounts, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "mountinfo"))
		if bytes.Contains(mounts, []byte(dir+"/"+prefix)) && bytes.Contains(mounts, []byte(memoryPath)) && !bytes.Contains(status, own) {
			n++
		}
	}
	return n
}
