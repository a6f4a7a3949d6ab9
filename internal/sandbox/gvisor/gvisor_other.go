//go:build !linux

package gvisor

import (
	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/warmpool"
)

// New returns a backend whose Capabilities say that it is unavailable, because gVisor needs Linux.
func New(Options) *warmpool.Backend {
	have := sandbox.Capabilities{Name: kind.Name, Strength: kind.Strength, Walls: walled, Unavailable: core.Errorf(
		core.KindSandboxUnavailable, Name, "gVisor runs only on Linux",
	).
		WithHint("use Docker, which runs in a Linux machine here: sandboxMode: docker")}
	return warmpool.New(warmpool.Options{Kind: kind, Capabilities: func() sandbox.Capabilities { return have }})
}
