package vm

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"retort/internal/pipeline/isolate"
	"retort/internal/run"
)

const atOnce = 50

// engine has programs running, says so, and waits to be killed. Its arguments are QEMU's
// program and the folder of a kernel.
func engine(qemu, kernel string) {
	b := New(Options{QEMU: qemu, Kernel: kernel, Dir: cache, Warm: -1})
	var calls sync.WaitGroup
	calls.Add(atOnce)
	host := isolate.HostFunc(func(context.Context, run.Call) (run.Result, error) {
		calls.Done()
		return run.Result{Value: []byte("1")}, nil
	})
	l := run.Limits{Timeout: 5 * time.Minute}.Or(run.DefaultLimits())
	for range atOnce {
		go func() {
			s, err := b.Prepare(context.Background(), isolate.Spec{Runtime: quickjs, Limits: l})
			if err != nil {
				panic(err)
			}
			_, _ = s.Run(context.Background(), run.Program{Code: "await callMCPTool('x'); await sleep(1e6)", Limits: l}, host)
		}()
	}
	calls.Wait()
	fmt.Println("all there")
	time.Sleep(time.Hour)
}

// TestKilledEngine kills an engine with many machines. All of them end by themselves, and
// nothing but the machine that is kept is left.
func TestKilledEngine(t *testing.T) {
	o := optionsHere(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "engine", o.QEMU, o.Kernel)
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
	if n := machines(t); err != nil || n < atOnce {
		t.Errorf("%q, %v: %d machines", line, err, n)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for end := time.Now().Add(20 * time.Second); machines(t) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("%d machines outlive the engine", machines(t))
			break
		}
	}
	o.Warm = -1
	b := New(o)
	if r := executed(t, b, quickjs, "return 1", run.Limits{}); r.Status != run.StatusOK {
		t.Errorf("%s %v", r.Status, r.Error)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	for _, pattern := range []string{"/sys/fs/cgroup/*/retort-%d*", "/sys/fs/cgroup/retort-%d*"} {
		if left, _ := filepath.Glob(fmt.Sprintf(pattern, cmd.Process.Pid)); len(left) > 0 {
			t.Errorf("%v is left", left)
		}
	}
}

// machines counts the processes with a machine of this test program's.
func machines(t *testing.T) (n int) {
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
