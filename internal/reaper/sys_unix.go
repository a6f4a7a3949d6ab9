//go:build unix

package reaper

import (
	"os/exec"
	"os/signal"
	"syscall"
)

const rootDir = "/"

// group is the process group that a child leads.
type group struct{ pgid int }

func newGroup(cmd *exec.Cmd) (group, error) { return group{cmd.Process.Pid}, nil }

func (g group) terminate() { _ = syscall.Kill(-g.pgid, syscall.SIGTERM) }
func (g group) kill()      { _ = syscall.Kill(-g.pgid, syscall.SIGKILL) }
func (g group) close()     {}

// detach puts the helper into a session of its own.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func ignoreSignals() { signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP) }

// killGroup kills the group pid if it is still the one whose leader started at
// start. Without a start time nobody can tell, and nobody is killed.
func killGroup(pid int, start string) {
	if start != "" && (startTime(pid) == start || orphaned(pid)) {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
}
