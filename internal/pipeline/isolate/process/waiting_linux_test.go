package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"retort/internal/pipeline/isolate"
	"retort/internal/run"
)

// TestWaitingWakesNobody has programs wait for an answer: their processes sleep meanwhile, as
// many of them may run at once.
func TestWaitingWakesNobody(t *testing.T) {
	for _, runtime := range everywhere {
		t.Run(runtime, func(t *testing.T) {
			o := optionsFor(t, runtime)
			o.Warm = -1
			b := newBackend(o, nil)
			defer b.Close()
			l := run.DefaultLimits()
			s, err := b.Prepare(t.Context(), isolate.Spec{Runtime: runtime, Limits: l})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			pid := s.(*sandbox).child.cmd.Process.Pid
			// After a quick answer a guest waits in another way.
			code := "await callMCPTool('x'); await callMCPTool('x')"
			if runtime == "python" {
				code = "call_mcp_tool('x'); call_mcp_tool('x')"
			}
			var calls, woken int
			r, err := s.Run(t.Context(), run.Program{Code: code, Limits: l}, isolate.HostFunc(func(context.Context, run.Call) (run.Result, error) {
				if calls++; calls == 1 {
					return run.Result{Value: []byte("1")}, nil
				}
				time.Sleep(200 * time.Millisecond) // what was begun before the wait is over by then
				before := switches(t, pid)
				time.Sleep(time.Second)
				woken = switches(t, pid) - before
				return run.Result{Value: []byte("1")}, nil
			}))
			if err != nil || r.Status != run.StatusOK {
				t.Fatalf("%v, %s %v", err, r.Status, r.Error)
			}
			t.Logf("woken %d times", woken)
			if woken > 50 {
				t.Errorf("woken %d times in a second", woken)
			}
		})
	}
}

var switched = regexp.MustCompile(`(?m)^voluntary_ctxt_switches:\s+(\d+)`)

// switches counts how often the threads of a process have given the processor away.
func switches(t *testing.T, pid int) (n int) {
	t.Helper()
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, file := range tasks {
		data, _ := os.ReadFile(file) // the thread may be gone
		if m := switched.FindSubmatch(data); m != nil {
			count, _ := strconv.Atoi(string(m[1]))
			n += count
		}
	}
	if n == 0 {
		t.Errorf("the switches of %d are not known", pid)
	}
	return n
}
