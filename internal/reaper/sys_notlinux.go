//go:build unix && !linux

package reaper

import (
	"os/exec"
	"syscall"
)

// prepare makes cmd the leader of a session.
func prepare(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
}

type spawner struct{}

func (spawner) start(cmd *exec.Cmd) error { return cmd.Start() }
func (spawner) close()                    {}

// awaitLeader returns when the leader has ended. It reaps it: the systems that
// this file is for have no portable way to wait without.
func (g group) awaitLeader(cmd *exec.Cmd) { _ = cmd.Wait() }

func (g group) alive() bool { return syscall.Kill(-g.pgid, 0) == nil }

// orphaned cannot be told from a recycled number here.
func orphaned(int) bool { return false }
