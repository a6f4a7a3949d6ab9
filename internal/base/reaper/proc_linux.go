package reaper

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ProcessStat holds fields of /proc/PID/stat.
type ProcessStat struct {
	PID, Parent, Group, Session int
	Terminal                    int // device number of the controlling terminal; 0 means none
	Foreground                  int // process group that is in the foreground of the controlling terminal
	Start                       uint64
	State                       byte
}

// TicksPerSecond is the number of clock ticks per second. ProcessStat.Start counts ticks since the machine booted.
const TicksPerSecond = 100

func (s ProcessStat) isDead() bool { return s.State == 'Z' || s.State == 'X' }

// ReadStat reads the ProcessStat of a process. It returns an error if the process does not exist.
func ReadStat(pid int) (ProcessStat, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ProcessStat{}, err
	}
	return parseStat(pid, data)
}

// parseStat parses a line in the format of proc_pid_stat(5). The second field is the program's name in parentheses.
// The name itself may contain any characters, including parentheses.
func parseStat(pid int, data []byte) (ProcessStat, error) {
	const start = 19 // counted from the field after the name
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) <= start {
		return ProcessStat{}, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	s := ProcessStat{PID: pid, State: fields[0][0]}
	for i, into := range []*int{&s.Parent, &s.Group, &s.Session, &s.Terminal, &s.Foreground} {
		n, err := strconv.Atoi(fields[1+i])
		if err != nil {
			return ProcessStat{}, fmt.Errorf("/proc/%d/stat is not as documented: %w", pid, err)
		}
		*into = n
	}
	n, err := strconv.ParseUint(fields[start], 10, 64)
	if err != nil {
		return ProcessStat{}, fmt.Errorf("/proc/%d/stat is not as documented: %w", pid, err)
	}
	s.Start = n
	return s, nil
}

// childrenOf returns the ids of the children of a process, including zombies. It may miss a child that is born or
// adopted during the call.
func childrenOf(pid int) (children []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	if len(lists) > 0 {
		return children
	}
	for _, other := range processIDs() { // a kernel without CONFIG_PROC_CHILDREN
		if s, err := ReadStat(other); err == nil && s.Parent == pid {
			children = append(children, other)
		}
	}
	return children
}

// processHandle refers to a process to which signals can be sent. It never refers to another process, even if one gets
// the same id later.
type processHandle struct{ fd, pid int }

// openChild returns a handle of the process pid. It returns an error if that process is not a child of parent.
func openChild(parent, pid int) (processHandle, error) {
	h := processHandle{-1, pid}
	fd, err := unix.PidfdOpen(pid, 0)
	if err == nil {
		h.fd = fd
	} else if err != unix.ENOSYS { // which is the answer before Linux 5.3
		return h, err
	}
	if s, err := ReadStat(pid); err != nil || s.Parent != parent {
		h.closeHandle()
		return h, unix.ESRCH
	}
	return h, nil
}

func (h processHandle) sendSignal(signal unix.Signal) error {
	if h.fd < 0 {
		return unix.Kill(h.pid, signal)
	}
	return unix.PidfdSendSignal(h.fd, signal, nil, 0)
}

func (h processHandle) closeHandle() {
	if h.fd >= 0 {
		_ = unix.Close(h.fd)
	}
}

// openBelow returns handles of all descendants of a process. Parents come before their children.
func openBelow(parent int) (all []processHandle) {
	for _, pid := range childrenOf(parent) {
		if h, err := openChild(parent, pid); err == nil {
			all = append(append(all, h), openBelow(pid)...)
		}
	}
	return all
}

// hasThread reports whether a process has a thread with one of the given names.
func hasThread(pid int, names ...string) bool {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/comm", pid))
	return slices.ContainsFunc(files, func(file string) bool {
		name, err := os.ReadFile(file)
		return err == nil && slices.Contains(names, strings.TrimSpace(string(name)))
	})
}
