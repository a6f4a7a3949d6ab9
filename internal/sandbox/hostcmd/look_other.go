//go:build !linux

package hostcmd

import (
	"os"
	"path"

	"retort/internal/core"
	"retort/internal/sandbox"
)

// FindCommands records every command as unavailable, because commands cannot be started on this system.
func FindCommands(written []string) CommandSet {
	s := CommandSet{found: map[string]*HostCommand{}}
	for _, w := range written {
		why := RefusedError("programs can start %s only on Linux, in its sandboxes", w).WithHint("remove it from the setting commands")
		s.missing = append(s.missing, sandbox.MissingCommand{Command: path.Base(w), Why: why})
	}
	return s
}

// Open returns an error, because commands cannot be started on this system.
func (c *HostCommand) Open() (*os.File, error) { return nil, os.ErrNotExist }

// CheckFile returns an error, because commands cannot be started on this system.
func (c *HostCommand) CheckFile(*os.File) error { return os.ErrNotExist }

// CheckStandalone returns nil. It is never needed, because commands cannot be started on this system.
func (c *HostCommand) CheckStandalone() *core.Error { return nil }
