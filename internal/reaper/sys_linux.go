package reaper

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// prepare makes cmd the leader of a session that the kernel kills when the
// thread that starts it ends.
func prepare(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

// spawner starts processes from one thread that lives as long as they may: the
// signal that the kernel sends at the parent's death is sent when the thread
// that forked ends, and Go ends threads as it likes.
type spawner struct {
	mu    sync.Mutex
	tasks chan func()
}

func (s *spawner) start(cmd *exec.Cmd) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tasks == nil {
		s.tasks = make(chan func())
		go func(tasks <-chan func()) {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			for task := range tasks {
				task()
			}
		}(s.tasks)
	}
	result := make(chan error)
	s.tasks <- func() { result <- cmd.Start() }
	return <-result
}

func (s *spawner) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tasks != nil {
		close(s.tasks)
		s.tasks = nil
	}
}

// awaitLeader returns when the leader has ended, without reaping it.
func (g group) awaitLeader(*exec.Cmd) {
	for {
		err := unix.Waitid(unix.P_PID, g.pgid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}

// alive reports whether a process of the group is running; a zombie is not.
func (g group) alive() bool {
	for _, s := range members(g.pgid) {
		if s.state != 'Z' && s.state != 'X' {
			return true
		}
	}
	return false
}

// orphaned reports whether the leader of the group is gone while other
// processes are still in the session that it began. As long as they are, the
// kernel gives its number to nobody else.
func orphaned(pgid int) bool {
	found := members(pgid)
	for _, s := range found {
		if s.pid == pgid || s.session != pgid {
			return false
		}
	}
	return len(found) > 0
}

// startTime is the time at which a process started, in clock ticks since boot;
// empty if there is no such process.
func startTime(pid int) string {
	s, err := readStat(pid)
	if err != nil {
		return ""
	}
	return s.start
}

// stat is what /proc/PID/stat says of a process.
type stat struct {
	pid, pgrp, session int
	state              byte
	start              string
}

func members(pgid int) []stat {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var found []stat
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if s, err := readStat(pid); err == nil && s.pgrp == pgid {
			found = append(found, s)
		}
	}
	return found
}

func readStat(pid int) (stat, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, err
	}
	return parseStat(pid, data)
}

// parseStat reads a line of proc_pid_stat(5). The second field is the name of
// the program in parentheses and may hold anything, parentheses too.
func parseStat(pid int, data []byte) (stat, error) {
	const state, pgrp, session, start = 0, 2, 3, 19 // counted from the field after the name
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) <= start {
		return stat{}, fmt.Errorf("reaper: /proc/%d/stat has %d fields", pid, len(fields))
	}
	s := stat{pid: pid, state: fields[state][0], start: string(fields[start])}
	var err1, err2 error
	s.pgrp, err1 = strconv.Atoi(string(fields[pgrp]))
	s.session, err2 = strconv.Atoi(string(fields[session]))
	if err1 != nil || err2 != nil {
		return stat{}, fmt.Errorf("reaper: /proc/%d/stat is not as documented", pid)
	}
	return s, nil
}
