//go:build unix

package reaper

import (
	"os/exec"
	"syscall"
)

// group represents the process group that a child leads.
type group struct{ pgid int }

func newGroup(cmd *exec.Cmd) (group, error) { return group{cmd.Process.Pid}, nil }

func (g group) terminate() { _ = syscall.Kill(-g.pgid, syscall.SIGTERM) }
func (g group) kill()      { _ = syscall.Kill(-g.pgid, syscall.SIGKILL) }
func (g group) close()     {}
