//go:build !linux

package process

import (
	"context"

	"retort/internal/sandbox"
	"retort/internal/sandbox/hostcmd"
)

// Start implements sandbox.CommandStarter. It always returns an error, because commands cannot be confined on this
// system.
func (s *childSandbox) Start(context.Context, sandbox.HostCommand) (sandbox.CommandResult, error) {
	return sandbox.CommandResult{}, hostcmd.RefusedError("programs can start commands only on Linux, in its sandboxes")
}
