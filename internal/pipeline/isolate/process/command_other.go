//go:build !linux

package process

import (
	"context"

	"retort/internal/pipeline/isolate"
	"retort/internal/pipeline/isolate/commands"
)

// Start implements isolate.Commander; there are no walls for commands here.
func (s *sandbox) Start(context.Context, isolate.Command) (isolate.Ended, error) {
	return isolate.Ended{}, commands.Refuse("programs start commands on Linux only, behind its walls")
}
