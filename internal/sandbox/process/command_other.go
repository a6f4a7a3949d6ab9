//go:build !linux

package process

import (
	"context"

	"retort/internal/sandbox"
	"retort/internal/sandbox/hostcmd"
)

// Start implements sandbox.Commander; there are no walls for commands here.
func (s *childSandbox) Start(context.Context, sandbox.Command) (sandbox.Ended, error) {
	return sandbox.Ended{}, hostcmd.Refuse("programs start commands on Linux only, behind its walls")
}
