//go:build unix && !linux

package reaper

import (
	"os/exec"
	"os/signal"
	"syscall"
)

const rootDir = "/"

// prepareCommand makes cmd the leader of a new session.
func prepareCommand(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
}

// awaitLeader waits until the leader has ended, and reaps it. On these systems there is no portable way to wait
// without reaping.
func (g processGroup) awaitLeader(cmd *exec.Cmd) { _ = cmd.Wait() }

func (g processGroup) isAlive() bool { return syscall.Kill(-g.pgid, 0) == nil }

// detachHelper starts the helper process in its own session.
func detachHelper(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func ignoreSignals() { signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP) }

// killGroup kills the process group that the process pid leads, if that process began at the time start. If start is
// empty it kills nothing, because the id may belong to another process.
func killGroup(pid int, start string) {
	if start != "" && startTime(pid) == start {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
}
