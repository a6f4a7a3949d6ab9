//go:build !linux

package gvisor

import (
	"retort/internal/pipeline/isolate"
	"retort/internal/pipeline/isolate/standby"
	"retort/internal/run"
)

// New makes a backend that says that it is for Linux.
func New(Options) *standby.Backend {
	have := isolate.Capabilities{Name: Name, Strength: isolate.UserKernel, Walls: walled, Unavailable: run.Errorf(run.KindSandboxUnavailable, Name, "gVisor is for Linux").
		WithHint("use Docker, which runs in a Linux machine here: sandboxMode: docker")}
	return standby.New(standby.Options{Name: Name, Capabilities: func() isolate.Capabilities { return have }})
}
