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
	"sync"
	"testing"
	"time"

	"retort/internal/pipeline/isolate"
	"retort/internal/pipeline/isolate/interpreter"
	"retort/internal/run"
	"retort/internal/testenv"
)

const atOnce = 50

// forever are programs that make a call and then wait.
var forever = map[string]string{
	quickjs:  "await callMCPTool('x'); await sleep(1e6)",
	"python": "call_mcp_tool('x')\nsleep(1e6)",
}

// engine has programs running, says so, and waits to be killed. Its arguments are the driver and
// its program, the folder of a kernel, the runtime and, if that is one, the interpreter.
func engine(driver, program, kernel, runtime, path string) {
	o := Options{QEMU: program, Kernel: kernel, Dir: cache(driver), Warm: -1}
	if driver == "firecracker" {
		o.QEMU, o.Firecracker = "none", program
	}
	if runtime != quickjs {
		o.Interpreters = []interpreter.Interpreter{described(runtime, path)}
	}
	b := New(o)
	var calls sync.WaitGroup
	calls.Add(atOnce)
	host := isolate.HostFunc(func(context.Context, run.Call) (run.Result, error) {
		calls.Done()
		return run.Result{Value: []byte("1")}, nil
	})
	l := run.Limits{Timeout: 5 * time.Minute}.Or(run.DefaultLimits())
	for range atOnce {
		go func() {
			s, err := b.Prepare(context.Background(), isolate.Spec{Runtime: runtime, Limits: l})
			if err != nil {
				panic(err)
			}
			_, _ = s.Run(context.Background(), run.Program{Code: forever[runtime], Name: "program", Limits: l}, host)
		}()
	}
	calls.Wait()
	fmt.Println("all there")
	time.Sleep(time.Hour)
}

// TestKilledEngine kills an engine with many machines, which was also making one more. All
// of them end by themselves, and nothing but the machine that is kept is left.
func TestKilledEngine(t *testing.T) {
	forAll(t, func(t *testing.T, driver, runtime string) {
		o, path := optionsHere(t, driver), ""
		if runtime == "python" {
			path = testenv.Need(t, "python")
			o.Interpreters = []interpreter.Interpreter{described(runtime, path)}
		}
		pid := killed(t, o, driver, runtime, path)
		another := filepath.Join(o.Dir, making+"another")
		if err := errors.Join(os.MkdirAll(another, 0o700), os.WriteFile(filepath.Join(another, memoryFile), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		o.Warm = -1
		b := New(o)
		if r := executed(t, b, runtime, map[string]string{quickjs: "return 1", "python": "1"}[runtime], run.Limits{}); r.Status != run.StatusOK {
			t.Errorf("%s %v", r.Status, r.Error)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		half, _ := filepath.Glob(filepath.Join(o.Dir, making+"*"))
		if left := append(half, testenv.Groups(pid)...); len(left) > 0 {
			t.Errorf("%v is left", left)
		}
	})
}

// killed starts an engine, kills it when all its machines run a program, and returns its
// process number when they have ended.
func killed(t *testing.T, o Options, driver, runtime, path string) int {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "engine", driver, testenv.Need(t, driver), o.Kernel, runtime, path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(4*time.Minute, func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	late.Stop()
	if n := machines(t, o.Dir); err != nil || n < atOnce {
		t.Errorf("%q, %v: %d machines", line, err, n)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for end := time.Now().Add(20 * time.Second); machines(t, o.Dir) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("%d machines outlive the engine", machines(t, o.Dir))
			break
		}
	}
	return cmd.Process.Pid
}

// machines counts the processes with a machine of this test program's.
func machines(t *testing.T, cache string) (n int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		mounts, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "mountinfo"))
		if bytes.Contains(mounts, []byte(cache+"/"+prefix)) && bytes.Contains(mounts, []byte(memoryPath)) {
			n++
		}
	}
	return n
}
