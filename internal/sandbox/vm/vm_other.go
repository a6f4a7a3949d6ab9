//go:build !linux

package vm

import (
	"context"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/warmpool"
)

// New returns a backend whose Capabilities say that it is unavailable, because this system has no virtual machines.
// The caller must close it.
func New(Options) *warmpool.Backend {
	have := sandbox.Capabilities{Name: kind.Name, Strength: kind.Strength, Unavailable: unsupportedError()}
	return warmpool.New(warmpool.Options{Kind: kind, Capabilities: func() sandbox.Capabilities { return have }})
}

// SetupMachines returns an error, because this system has no virtual machines.
func SetupMachines(context.Context, Options) (*SetupReport, error) { return nil, unsupportedError() }

func unsupportedError() *core.Error {
	return core.Errorf(
		core.KindSandboxUnavailable, Name, "virtual machines need Linux in this version",
	).WithHint("use another sandbox: sandboxMode: auto")
}
