//go:build !linux

package hostcmd

import (
	"os"
	"path"

	"retort/internal/core"
	"retort/internal/sandbox"
)

// Look records for all programs that they cannot be started on this system.
func Look(written []string) Set {
	s := Set{found: map[string]*Command{}}
	for _, w := range written {
		why := Refuse("programs start %s on Linux only, in its sandboxes", w).WithHint("remove it from the setting commands")
		s.missing = append(s.missing, sandbox.MissingCommand{Command: path.Base(w), Why: why})
	}
	return s
}

// Open returns an error: there are no commands on this system.
func (c *Command) Open() (*os.File, error) { return nil, os.ErrNotExist }

// Check returns an error: there are no commands on this system.
func (c *Command) Check(*os.File) error { return os.ErrNotExist }

// Alone returns nil: there are no commands on this system.
func (c *Command) Alone() *core.Error { return nil }
