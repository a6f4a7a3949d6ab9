package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// ResourceSnapshot lists the goroutines, file descriptors, child processes and control groups of this process, and
// the temporary folders and mounts in os.TempDir, at one moment. On systems other than Linux it has only goroutines
// and folders.
type ResourceSnapshot struct {
	known      map[string]string // details for the failure message, by identity of the resource
	goroutines []goleak.Option
}

// CheckLeaks fails the test if a resource that was created after this call still exists at the end of the test. The
// type ResourceSnapshot lists the kinds of resources. CheckLeaks must be called first, because cleanups that are
// registered later run before its check. It sets TMPDIR to a folder of the test, so that files of other processes do
// not count as leaks. Therefore the test cannot run in parallel.
func CheckLeaks(t testing.TB) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	before := TakeResources()
	t.Cleanup(func() { before.Check(t) })
}

// CheckGoroutines works like CheckLeaks but checks only goroutines. It is for tests whose processes and files outlive
// the test on purpose.
func CheckGoroutines(t testing.TB, ignored ...goleak.Option) {
	t.Helper()
	before := ResourceSnapshot{goroutines: append(ignored, goleak.IgnoreCurrent())}
	t.Cleanup(func() { before.checkGoroutines(t) })
}

// Main runs the tests of a package and returns their exit code. It panics if they pass but leak goroutines. It must
// be called from TestMain.
func Main(m *testing.M, ignored ...goleak.Option) int {
	code := m.Run()
	var err error
	if code == 0 && !Poll(func() bool { err = goleak.Find(ignored...); return err == nil }) {
		panic(fmt.Sprint("leaked: ", err))
	}
	return code
}

// TakeResources returns a snapshot of the current resources.
func TakeResources() ResourceSnapshot {
	startPoller()
	return ResourceSnapshot{known: systemResources(), goroutines: []goleak.Option{goleak.IgnoreCurrent()}}
}

// Check waits up to Patience until all resources that are not in the snapshot are gone. If some remain, it fails the
// test without ending it.
func (before ResourceSnapshot) Check(t testing.TB) {
	t.Helper()
	before.checkGoroutines(t)
	var left []string
	if !Poll(func() bool { left = before.newResources(); return len(left) == 0 }) {
		t.Errorf("leaked:\n%s", strings.Join(left, "\n"))
	}
}

func (before ResourceSnapshot) newResources() (list []string) {
	for id, about := range systemResources() {
		if _, known := before.known[id]; !known {
			list = append(list, strings.TrimSpace(id+" "+about))
		}
	}
	slices.Sort(list)
	return list
}

func (before ResourceSnapshot) checkGoroutines(t testing.TB) {
	t.Helper()
	var err error
	if !Poll(func() bool { err = goleak.Find(before.goroutines...); return err == nil }) {
		t.Errorf("leaked: %v", err)
	}
}

// startPoller makes Go's runtime open the descriptors of its network poller. The runtime would otherwise open them at
// the first wait for a pipe and then keep them, which would look like a leak.
func startPoller() {
	if r, w, err := os.Pipe(); err == nil {
		_ = r.SetReadDeadline(time.Now())
		_, _ = r.Read(make([]byte, 1))
		_, _ = r.Close(), w.Close()
	}
}

// systemResources returns all resources except goroutines. It maps the identity of each to details that help to
// recognise it.
func systemResources() map[string]string {
	all := map[string]string{}
	addDescriptors(all)
	addChildren(all)
	for _, group := range ControlGroups(os.Getpid()) {
		path, members, _ := strings.Cut(group, " ")
		all["control group "+path] = members
	}
	folders, _ := filepath.Glob(filepath.Join(os.TempDir(), "retort-*"))
	for _, folder := range folders {
		all["folder "+folder] = ""
	}
	addMounts(all)
	return all
}

// addDescriptors adds the open file descriptors to the map of all resources, under keys such as "descriptor 7
// pipe:[12345]". All pidfds have the same link target, so the key of a pidfd also contains the id of the process that
// it refers to.
func addDescriptors(all map[string]string) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil {
			continue // the descriptor that ReadDir used is closed now
		}
		info, _ := os.ReadFile("/proc/self/fdinfo/" + e.Name())
		for line := range strings.Lines(string(info)) {
			if pid, ok := strings.CutPrefix(line, "Pid:"); ok {
				target += " of process " + strings.TrimSpace(pid)
			}
		}
		all["descriptor "+e.Name()+" "+target] = ""
	}
}

// addChildren adds the child processes to the map of all resources, under keys such as "child 4711 started at 1234".
// The keys include the start time, in ticks since boot, because the system reuses process ids.
func addChildren(all map[string]string) {
	files, _ := filepath.Glob("/proc/self/task/*/children")
	for _, file := range files {
		data, _ := os.ReadFile(file)
		for _, pid := range strings.Fields(string(data)) {
			stat, _ := os.ReadFile("/proc/" + pid + "/stat")
			_, rest, _ := strings.Cut(string(stat), ") ")
			if fields := strings.Fields(rest); len(fields) > 19 {
				command, _ := os.ReadFile("/proc/" + pid + "/cmdline")
				all["child "+pid+" started at "+fields[19]] = fmt.Sprintf("%s %.200s", fields[0], strings.ReplaceAll(string(command), "\x00", " "))
			}
		}
	}
}

// addMounts adds the mounts below os.TempDir to the map of all resources.
func addMounts(all map[string]string) {
	data, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], os.TempDir()+"/") {
			all["mount "+fields[0]+" "+fields[4]] = line
		}
	}
}
