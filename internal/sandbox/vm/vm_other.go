//go:build !linux

package vm

import (
	"context"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/warmpool"
)

// New makes a backend that says that it is not for this system. Close must be called.
func New(Options) *warmpool.Backend {
	have := sandbox.Capabilities{Name: Name, Strength: sandbox.Machine, Unavailable: elsewhere()}
	return warmpool.New(warmpool.Options{Name: Name, Capabilities: func() sandbox.Capabilities { return have }})
}

// Setup says that machines are not for this system.
func Setup(context.Context, Options) (*Report, error) { return nil, elsewhere() }

func elsewhere() *core.Error {
	return core.Errorf(core.KindSandboxUnavailable, Name, "machines are made on Linux only in this version").WithHint("use another sandbox: sandboxMode: auto")
}
