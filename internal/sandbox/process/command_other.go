//go:build !linux

package process

import (
	"context"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/hostcmd"
)

// startCommand always returns an error, because commands cannot be confined on this system.
func (b *Backend) startCommand(context.Context, sandbox.HostCommand, core.Limits) (sandbox.CommandResult, error) {
	return sandbox.CommandResult{}, hostcmd.RefusedError("programs can start commands only on Linux, in its sandboxes")
}
