//go:build !linux

package process

import (
	"context"

	"retort/internal/pipeline/isolate"
)

type command struct{}

// LookCommands finds the programs that settings name, by names or absolute paths. It is not
// there on this system.
func LookCommands(written []string) (Commands, error) {
	if len(written) > 0 {
		return Commands{}, noCommand("commands: programs start commands on Linux only, behind its walls").WithHint("remove the setting")
	}
	return Commands{}, nil
}

// Start implements isolate.Commander; there are no walls for commands here.
func (s *sandbox) Start(context.Context, isolate.Command) (isolate.Ended, error) {
	return isolate.Ended{}, noCommand("programs start commands on Linux only, behind its walls")
}
