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

// Resources are the goroutines, file descriptors, child processes, control groups, and temporary
// folders and mounts in os.TempDir that a process has at one moment, each by its identity. Only
// Linux tells of descriptors, children, groups and mounts; elsewhere there are none.
type Resources struct {
	known      map[string]string // identity to what is told of it
	goroutines []goleak.Option
}

// CheckLeaks fails the test at its end for each resource that appeared after this call and is
// still there. Cleanups that are registered later run before the check. The test gets a folder for
// temporary files of its own, since other processes use the usual one; it can't run in parallel.
func CheckLeaks(t testing.TB) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	before := TakeResources()
	t.Cleanup(func() { before.Check(t) })
}

// CheckGoroutines is CheckLeaks for goroutines alone. It is for tests whose processes and files
// belong to something that lives longer.
func CheckGoroutines(t testing.TB, ignored ...goleak.Option) {
	t.Helper()
	before := Resources{goroutines: append(ignored, goleak.IgnoreCurrent())}
	t.Cleanup(func() { before.checkGoroutines(t) })
}

// Main runs the tests of a package and returns their exit code. It panics if they pass and leave
// goroutines. TestMain calls it.
func Main(m *testing.M, ignored ...goleak.Option) int {
	code := m.Run()
	var err error
	if code == 0 && !Poll(func() bool { err = goleak.Find(ignored...); return err == nil }) {
		panic(fmt.Sprint("leaked: ", err))
	}
	return code
}

// TakeResources returns what this process has now.
func TakeResources() Resources {
	startPoller()
	return Resources{known: systemResources(), goroutines: []goleak.Option{goleak.IgnoreCurrent()}}
}

// Check fails the test, without ending it, for each resource that is there now and was not when
// the resources were taken. It waits as long as Patience for those that are going away. What was
// there before and is gone is no leak.
func (before Resources) Check(t testing.TB) {
	t.Helper()
	before.checkGoroutines(t)
	var left []string
	if !Poll(func() bool { left = before.newer(); return len(left) == 0 }) {
		t.Errorf("leaked:\n%s", strings.Join(left, "\n"))
	}
}

func (before Resources) newer() (list []string) {
	for id, about := range systemResources() {
		if _, known := before.known[id]; !known {
			list = append(list, strings.TrimSpace(id+" "+about))
		}
	}
	slices.Sort(list)
	return list
}

func (before Resources) checkGoroutines(t testing.TB) {
	t.Helper()
	var err error
	if !Poll(func() bool { err = goleak.Find(before.goroutines...); return err == nil }) {
		t.Errorf("leaked: %v", err)
	}
}

// startPoller makes the runtime open the descriptors that it keeps for itself from the first wait
// for a pipe on.
func startPoller() {
	if r, w, err := os.Pipe(); err == nil {
		_ = r.SetReadDeadline(time.Now())
		_, _ = r.Read(make([]byte, 1))
		_, _ = r.Close(), w.Close()
	}
}

// systemResources returns what the system tells of this process: identities, and what helps to
// recognize them.
func systemResources() map[string]string {
	all := map[string]string{}
	addDescriptors(all)
	addChildren(all)
	for _, group := range Groups(os.Getpid()) {
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

// addDescriptors adds identities such as "descriptor 7 pipe:[12345]". The targets of process
// descriptors are alike, so theirs end with the process.
func addDescriptors(all map[string]string) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil {
			continue // the descriptor that the folder was read with
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

// addChildren adds identities such as "child 4711 started at 1234". Process ids are used again;
// together with the start, which is in ticks since boot, they are not.
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

// addMounts adds the mounts below the folder for temporary files.
func addMounts(all map[string]string) {
	data, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], os.TempDir()+"/") {
			all["mount "+fields[0]+" "+fields[4]] = line
		}
	}
}
