//go:build !linux

package procgroup

import "os/exec"

// ChildSpawner starts children. They end with the engine, because the engine's end closes their standard input.
type ChildSpawner struct{}

// New returns a ChildSpawner.
func New(*GroupSet) *ChildSpawner { return &ChildSpawner{} }

// Start starts cmd. It returns no group, because this system has no control groups.
func (*ChildSpawner) Start(cmd *exec.Cmd) (*ChildGroup, error) { return nil, cmd.Start() }

// Close does nothing, because a ChildSpawner has no resources on this system.
func (*ChildSpawner) Close() {}
