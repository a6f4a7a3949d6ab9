//go:build unix

package reaper

import (
	"os/exec"
	"syscall"
)

// processGroup represents the process group that a child leads.
type processGroup struct{ pgid int }

func newGroup(cmd *exec.Cmd) (processGroup, error) { return processGroup{cmd.Process.Pid}, nil }

func (g processGroup) terminateAll() { _ = syscall.Kill(-g.pgid, syscall.SIGTERM) }
func (g processGroup) killAll()      { _ = syscall.Kill(-g.pgid, syscall.SIGKILL) }
func (g processGroup) closeGroup()   {}
