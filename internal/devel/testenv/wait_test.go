package testenv

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestWaitUntil(t *testing.T) {
	looked := 0
	WaitUntil(t, "it has looked ten times", func() bool { looked++; return looked == 10 })
	closed := make(chan int)
	close(closed)
	if v := Receive(t, closed, "the end"); v != 0 {
		t.Error(v)
	}
	if _, ok := Context(t).Deadline(); !ok {
		t.Error("the context of a test has no end")
	}
}

// TestLeaksAreFound checks that new resources count as leaks, and that resources that no longer exist do not. A new
// resource must be found even if it has the same number as a former one.
func TestLeaksAreFound(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("descriptors and child processes are known only on Linux")
	}
	CheckLeaks(t)
	gone, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ends := make(chan struct{})
	before := TakeResources()
	if left := before.newResources(); len(left) > 0 {
		t.Errorf("%q were found, though nothing is new", left)
	}
	_, _ = gone.Close(), w.Close()
	if left := before.newResources(); len(left) > 0 {
		t.Errorf("%q were found after a pipe was closed", left)
	}

	stays, w, err := os.Pipe() // gets the numbers of the descriptors that were closed
	if err != nil {
		t.Fatal(err)
	}
	sleep := exec.Command("sleep", "600")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "retort-")
	if err != nil {
		t.Fatal(err)
	}
	go func() { <-ends }()
	left := before.newResources()
	for _, want := range []string{"descriptor " /* stays */, "pipe:", "child ", "sleep 600", "folder " + dir} {
		if !slices.ContainsFunc(left, func(l string) bool { return strings.Contains(l, want) }) {
			t.Errorf("no %q in %q", want, left)
		}
	}
	if err := goleak.Find(before.goroutines...); err == nil || !strings.Contains(err.Error(), "TestLeaksAreFound") {
		t.Errorf("goroutines: %v", err)
	}
	close(ends)
	_ = sleep.Process.Kill()
	_ = sleep.Wait()
	_, _, _ = stays.Close(), w.Close(), os.Remove(dir)
	before.Check(t)
}
