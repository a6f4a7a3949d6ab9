//go:build !linux

package procgroup

import "os/exec"

// ChildSpawner starts children. They end with the engine, because their standard input is then closed.
type ChildSpawner struct{}

// New returns a ChildSpawner.
func New(*GroupSet) *ChildSpawner { return &ChildSpawner{} }

// Start starts cmd without a group.
func (*ChildSpawner) Start(cmd *exec.Cmd) (*ChildGroup, error) { return nil, cmd.Start() }

// Close does nothing.
func (*ChildSpawner) Close() {}
