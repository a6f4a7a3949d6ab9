//go:build !linux

package hostcmd

import (
	"os"
	"path"

	"retort/internal/core"
	"retort/internal/sandbox"
)

// Look notes of all programs that settings name that they are not started on this system.
func Look(written []string) Set {
	s := Set{found: map[string]*Command{}}
	for _, w := range written {
		why := Refuse("programs start %s on Linux only, behind its walls", w).WithHint("remove it from the setting commands")
		s.missing = append(s.missing, sandbox.MissingCommand{Command: path.Base(w), Why: why})
	}
	return s
}

// Open opens the file; there is none on this system.
func (c *Command) Open() (*os.File, error) { return nil, os.ErrNotExist }

// Check says whether an open file is the one that was looked at.
func (c *Command) Check(*os.File) error { return os.ErrNotExist }

// Alone says why a command needs more than single files; there is none on this system.
func (c *Command) Alone() *core.Error { return nil }
