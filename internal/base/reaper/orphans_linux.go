package reaper

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// AdoptOrphans makes this process, instead of init, adopt its orphaned descendants. If a server kills its keeper (the
// process that watches it), the server's daemons then become children of this process, which kills them. Call it only
// in programs that start all their processes with os/exec or a Reaper. Any other child may be reaped as an orphan.
func AdoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

func adoptsOrphans() bool {
	var set int32
	err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&set)), 0, 0, 0)
	return err == nil && set != 0
}

// adoptedChildren returns the children that this process has adopted. It omits children that this process has started
// itself. It recognizes them because os/exec holds a process descriptor for each of them until it was waited for. If
// the system has no process descriptors, adoptedChildren returns no children.
func adoptedChildren() (children []ProcessStat) {
	all := childrenOf(os.Getpid())
	for range 2 { // a child that was born just now may get its descriptor a moment later
		held, ok := heldProcesses()
		if !ok {
			return nil
		}
		all = slices.DeleteFunc(all, func(pid int) bool { return held[pid] })
	}
	for _, pid := range all {
		if s, err := ReadStat(pid); err == nil && s.Parent == os.Getpid() {
			children = append(children, s)
		}
	}
	return children
}

// heldProcesses returns the ids of the processes for which this process has a process descriptor.
func heldProcesses() (held map[int]bool, ok bool) {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return nil, false
	}
	defer unix.Close(fd)
	held = map[int]bool{}
	infos, _ := filepath.Glob("/proc/self/fdinfo/*")
	for _, info := range infos {
		text, _ := os.ReadFile(info)
		for line := range strings.Lines(string(text)) {
			if value, found := strings.CutPrefix(line, "Pid:"); found {
				pid, _ := strconv.Atoi(strings.TrimSpace(value))
				held[pid] = true
			}
		}
	}
	return held, held[os.Getpid()]
}

// killOrphans kills the orphans of a killed keeper, the process that watched a child. This process has adopted the
// orphans. begun is the start time of the keeper. killOrphans spares processes in this process's own session. It can
// do so safely: the keeper's child is in another session, and no process can join an existing session.
func killOrphans(begun uint64) {
	if !adoptsOrphans() || begun == 0 {
		return
	}
	own, _ := unix.Getsid(0)
	for end := time.Now().Add(stopPatience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		left := 0
		children := adoptedChildren()
		for _, s := range children {
			if s.Session == own || s.Start < begun {
				continue
			}
			if unix.Kill(s.PID, unix.SIGKILL) != unix.EPERM {
				left++
			}
			_, _ = syscall.Wait4(s.PID, nil, unix.WNOHANG|unix.WALL, nil)
		}
		if left == 0 {
			return
		}
	}
}

// sweepInterval is the interval between two searches for adopted children that have died.
const sweepInterval = 10 * time.Second

// startSweep starts reaping dead adopted children periodically, if this process adopts orphans.
func (s *systemStarter) startSweep() {
	if !adoptsOrphans() {
		return
	}
	s.quit, s.swept = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(s.swept)
		dead := map[string]bool{} // in the last round
		for !waitFor(s.quit, sweepInterval) {
			dead = reapDead(dead)
		}
	}()
}

// reapDead reaps the adopted children that were already dead at the previous call; before contains them. It returns
// the children that have died since then. Pass them to the next call.
func reapDead(before map[string]bool) map[string]bool {
	now := map[string]bool{}
	children := adoptedChildren()
	for _, s := range children {
		id := fmt.Sprint(s.PID, " ", s.Start)
		switch {
		case !s.isDead():
		case before[id]:
			_, _ = syscall.Wait4(s.PID, nil, unix.WNOHANG|unix.WALL, nil)
		default:
			now[id] = true
		}
	}
	return now
}
