//go:build !linux

package commands

import "os"

// Look finds the programs that settings name, by names or absolute paths. It is not there on
// this system.
func Look(written []string) (Set, error) {
	if len(written) > 0 {
		return Set{}, Refuse("commands: programs start commands on Linux only, behind its walls").WithHint("remove the setting")
	}
	return Set{}, nil
}

// Open opens the file; there is none on this system.
func (c *Command) Open() (*os.File, error) { return nil, os.ErrNotExist }

// Check says whether an open file is the one that was looked at.
func (c *Command) Check(*os.File) error { return os.ErrNotExist }
