// Package procgroup starts the processes of sandboxes. Each process gets its own control group if the machine permits
// that, and ends with the engine.
package procgroup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"retort/internal/core"
)

// GroupSet holds the engine's own control groups. Each child gets its own group below them. If this user may not
// create groups, the process's resource limits and a watcher are used instead. A child is created inside its group.
// To move an existing process would take longer than the rest of the confinement, because the kernel then waits until
// every processor has been idle once.
type GroupSet struct {
	version int
	dirs    map[string]string // maps each controller to the engine's directory
	// homes maps each controller of cgroup v1 to the directory of the group in which the engine's threads are.
	homes map[string]string
	next  atomic.Int64
}

// OpenGroups creates the engine's control groups below its own group. It returns nil if that is not permitted.
func OpenGroups() *GroupSet {
	own, err := home()
	if err != nil {
		return nil
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	if g := openV1(own, string(mounts)); g != nil {
		return g
	}
	return openV2(own, string(mounts))
}

// home returns the text of /proc/self/cgroup, which names the control groups of this process, as it was before this
// process created groups. Later, /proc/self/cgroup may name the group of a child, because the file describes the first
// thread of this process, and that thread may have moved into the group to start the child.
var home = sync.OnceValues(func() (string, error) {
	own, err := os.ReadFile("/proc/self/cgroup")
	return string(own), err
})

// killedEngineGrace bounds how long to wait for the processes of killed engines, which take a while to end after the
// kernel has signalled them.
const killedEngineGrace = 3 * time.Second

// prefix is the start of the names of an engine's directories. The engine's process id follows.
const prefix = "retort-"

func openV1(own, mounts string) *GroupSet {
	g := &GroupSet{version: 1, dirs: map[string]string{}, homes: map[string]string{}}
	for _, controller := range []string{"memory", "pids", "cpu"} {
		at := mountOf(mounts, "cgroup", controller)
		place, ok := placeOf(own, controller)
		if at.dir == "" || !ok {
			continue
		}
		if dir, err := claimDir(at.groupDir(place), killedEngineGrace); err == nil {
			g.dirs[controller], g.homes[controller] = dir, at.groupDir(place)
		}
	}
	if g.dirs["memory"] == "" {
		g.Close()
		return nil
	}
	return g
}

func openV2(own, mounts string) *GroupSet {
	at := mountOf(mounts, "cgroup2", "")
	place, ok := placeOf(own, "")
	if at.dir == "" || !ok {
		return nil
	}
	parent := at.groupDir(place)
	if !delegatesMemory(parent) {
		return nil
	}
	dir, err := claimDir(parent, killedEngineGrace)
	if err != nil {
		return nil
	}
	if err := writeControl(dir, "cgroup.subtree_control", "+memory +pids +cpu"); err != nil {
		if err := writeControl(dir, "cgroup.subtree_control", "+memory"); err != nil {
			_ = os.Remove(dir)
			return nil
		}
	}
	return &GroupSet{version: 2, dirs: map[string]string{"memory": dir}}
}

// delegatesMemory reports whether the memory controller is enabled for the children of a control group. If it is not,
// delegatesMemory tries to enable it. That requires that the engine is the only process in the group.
func delegatesMemory(dir string) bool {
	passed, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	if err != nil {
		return false
	}
	if strings.Contains(string(passed), "memory") {
		return true
	}
	members, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil || strings.TrimSpace(string(members)) != strconv.Itoa(os.Getpid()) {
		return false
	}
	leaf := filepath.Join(dir, prefix+"engine")
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return false
	}
	if writeControl(leaf, "cgroup.procs", strconv.Itoa(os.Getpid())) != nil {
		return false
	}
	return writeControl(dir, "cgroup.subtree_control", "+memory +pids +cpu") == nil ||
		writeControl(dir, "cgroup.subtree_control", "+memory") == nil
}

// claimDir creates the engine's directory below parent and removes the directories of killed engines. If such a
// directory still contains processes, claimDir waits for their end, but not longer than the argument within.
func claimDir(parent string, within time.Duration) (string, error) {
	late := time.Now().Add(within)
	stale, _ := filepath.Glob(filepath.Join(parent, prefix+"[0-9]*"))
	for _, dir := range stale {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), prefix), ".")
		pid, err := strconv.Atoi(number)
		if err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			for !removeGroup(dir) && time.Now().Before(late) {
				time.Sleep(5 * time.Millisecond)
			}
		}
	}
	dir := filepath.Join(parent, prefix+strconv.Itoa(os.Getpid()))
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, os.ErrExist) { // another engine in this process owns it
		return os.MkdirTemp(parent, prefix+strconv.Itoa(os.Getpid())+".")
	}
	return dir, err
}

// removeGroup removes a control group and the groups below it. It fails if one of them contains a process. The
// kernel's own files in a group need not be removed.
func removeGroup(dir string) (gone bool) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			removeGroup(filepath.Join(dir, e.Name()))
		}
	}
	err := os.Remove(dir)
	return err == nil || errors.Is(err, os.ErrNotExist)
}

// Close removes the engine's groups, which must not contain any processes.
func (g *GroupSet) Close() {
	if g == nil {
		return
	}
	for _, dir := range g.dirs {
		removeGroup(dir)
	}
}

// ChildGroup represents the control group of one child. The methods of a nil ChildGroup do nothing.
type ChildGroup struct {
	*GroupSet
	dirs map[string]string // maps each controller to the child's directory
}

// AddGroup creates a group for a child that will be started later.
func (g *GroupSet) AddGroup() *ChildGroup {
	if g == nil {
		return nil
	}
	one := &ChildGroup{GroupSet: g, dirs: map[string]string{}}
	name := strconv.FormatInt(g.next.Add(1), 10)
	for controller, dir := range g.dirs {
		dir = filepath.Join(dir, name)
		if os.Mkdir(dir, 0o755) == nil {
			one.dirs[controller] = dir
		}
	}
	if one.dirs["memory"] == "" {
		one.Remove()
		return nil
	}
	return one
}

// startInside calls the function start, which starts a child, in such a way that the child is created inside the
// group. It reports whether the child was created there. The calling goroutine must be locked to its thread.
func (o *ChildGroup) startInside(attributes *syscall.SysProcAttr, start func() error) (inside bool, err error) {
	switch {
	case o == nil:
		return false, start()
	case o.version == 1:
		inside = o.enterGroup()
		defer o.leaveGroup()
		return inside, start()
	}
	fd, err := os.Open(o.dirs["memory"])
	if err != nil {
		return false, start()
	}
	defer fd.Close()
	attributes.UseCgroupFD, attributes.CgroupFD = true, int(fd.Fd())
	return true, start()
}

// enterGroup moves the calling thread into the group. It reports whether that succeeded for the memory controller.
func (o *ChildGroup) enterGroup() (inside bool) {
	for controller, dir := range o.dirs {
		if writeControl(dir, "tasks", "0") != nil {
			_ = os.Remove(dir)
			delete(o.dirs, controller)
		}
	}
	return o.dirs["memory"] != ""
}

// leaveGroup moves the calling thread back to the engine's group.
func (o *ChildGroup) leaveGroup() {
	for controller := range o.dirs {
		_ = writeControl(o.homes[controller], "tasks", "0")
	}
}

// DescribeLimits returns a short description of the mechanism that limits a child, for reports.
func (o *ChildGroup) DescribeLimits() string {
	if o == nil {
		return "rlimits, watcher"
	}
	return fmt.Sprintf("cgroup v%d", o.version)
}

// SetLimits sets the group's limits for one program. If the group cannot enforce a limit, the process's own limits
// and the watcher do.
func (o *ChildGroup) SetLimits(memory int64, l core.Limits, threads int) {
	if o == nil {
		return
	}
	const period = 100_000 // µs
	quota := strconv.Itoa(max(int(l.CPU*period), 1000))
	if o.version == 2 {
		dir := o.dirs["memory"]
		_ = writeControl(dir, "memory.max", strconv.FormatInt(memory, 10))
		_ = writeControl(dir, "memory.swap.max", "0")
		_ = writeControl(dir, "pids.max", strconv.Itoa(threads))
		_ = writeControl(dir, "cpu.max", quota+" "+strconv.Itoa(period))
		return
	}
	_ = writeControl(o.dirs["memory"], "memory.limit_in_bytes", strconv.FormatInt(memory, 10))
	if dir := o.dirs["pids"]; dir != "" {
		_ = writeControl(dir, "pids.max", strconv.Itoa(threads))
	}
	if dir := o.dirs["cpu"]; dir != "" {
		_ = writeControl(dir, "cpu.cfs_period_us", strconv.Itoa(period))
		_ = writeControl(dir, "cpu.cfs_quota_us", quota)
	}
}

// IsOutOfMemory reports whether the kernel killed a process in the group because it ran out of memory.
func (o *ChildGroup) IsOutOfMemory() bool {
	if o == nil {
		return false
	}
	file := "memory.events"
	if o.version == 1 {
		file = "memory.oom_control"
	}
	data, _ := os.ReadFile(filepath.Join(o.dirs["memory"], file))
	for line := range bytes.Lines(data) {
		fields := bytes.Fields(line)
		if len(fields) == 2 && string(fields[0]) == "oom_kill" && string(fields[1]) != "0" {
			return true
		}
	}
	return false
}

// UsedBytes returns the memory of the group in bytes, or 0 if unknown.
func (o *ChildGroup) UsedBytes() int64 { return o.readBytes("memory.current", "memory.usage_in_bytes") }

// PeakBytes returns the peak memory of the group in bytes, or 0 if unknown.
func (o *ChildGroup) PeakBytes() int64 {
	return o.readBytes("memory.peak", "memory.max_usage_in_bytes")
}

// readBytes returns the number of bytes that a file of the control group contains, or 0 if it cannot read the number.
// The argument two is the name of the file in version 2 of control groups, and the argument one is its name in
// version 1.
func (o *ChildGroup) readBytes(two, one string) int64 {
	if o == nil {
		return 0
	}
	file := two
	if o.version == 1 {
		file = one
	}
	data, _ := os.ReadFile(filepath.Join(o.dirs["memory"], file))
	n, _ := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return n
}

// KillAll kills all processes in the group and waits until they are gone, but not longer than the argument within.
func (o *ChildGroup) KillAll(within time.Duration) {
	if o == nil {
		return
	}
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(time.Millisecond) {
		data, _ := os.ReadFile(filepath.Join(o.dirs["memory"], "cgroup.procs"))
		members := strings.Fields(string(data))
		if len(members) == 0 {
			return
		}
		for _, m := range members {
			if pid, err := strconv.Atoi(m); err == nil && pid > 0 && pid != os.Getpid() {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// Remove removes the group, which must not contain any processes.
func (o *ChildGroup) Remove() {
	if o == nil {
		return
	}
	for _, dir := range o.dirs {
		_ = os.Remove(dir)
	}
}

func writeControl(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// mountPoint describes where a hierarchy of control groups is mounted: dir is the directory, and root is the control
// group that appears there.
type mountPoint struct{ dir, root string }

// groupDir returns the directory of the control group whose path is place. If the mounted part of the hierarchy does
// not contain this group, it returns the mount point itself.
func (m mountPoint) groupDir(place string) string {
	rel, err := filepath.Rel(m.root, place)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		rel = "."
	}
	return path.Join(m.dir, rel)
}

// mountOf returns where a hierarchy of control groups is mounted, according to the text of a file
// /proc/PID/mountinfo.
func mountOf(mounts, kind, controller string) mountPoint {
	for line := range strings.Lines(mounts) {
		before, after, ok := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 3 || right[0] != kind {
			continue
		}
		if controller == "" || containsWord(right[2], controller) {
			return mountPoint{dir: unescapeMount(left[4]), root: unescapeMount(left[3])}
		}
	}
	return mountPoint{}
}

func containsWord(list, word string) bool {
	for _, w := range strings.Split(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// placeOf returns the path of the control group to which this process belongs in the hierarchy of the given
// controller. It finds the path in the argument own, the text of /proc/self/cgroup. The empty controller name stands
// for version 2 of control groups, which has a single hierarchy.
func placeOf(own, controller string) (string, bool) {
	for line := range strings.Lines(own) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if controller == "" && parts[0] == "0" && parts[1] == "" || controller != "" && containsWord(parts[1], controller) {
			return parts[2], true
		}
	}
	return "", false
}
