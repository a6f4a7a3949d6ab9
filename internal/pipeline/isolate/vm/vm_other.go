//go:build !linux

package vm

import (
	"context"

	"retort/internal/pipeline/isolate"
	"retort/internal/pipeline/isolate/standby"
	"retort/internal/run"
)

// New makes a backend that says that it is not for this system. Close must be called.
func New(Options) *standby.Backend {
	have := isolate.Capabilities{Name: Name, Strength: isolate.Machine, Unavailable: elsewhere()}
	return standby.New(standby.Options{Name: Name, Capabilities: func() isolate.Capabilities { return have }})
}

// Setup says that machines are not for this system.
func Setup(context.Context, Options) (*Report, error) { return nil, elsewhere() }

func elsewhere() *run.Error {
	return run.Errorf(run.KindSandboxUnavailable, Name, "machines are made on Linux only in this version").WithHint("use another sandbox: sandboxMode: auto")
}
