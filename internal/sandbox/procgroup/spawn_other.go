//go:build !linux

package procgroup

import "os/exec"

// Spawner starts children. They end with the engine because their standard
// input does.
type Spawner struct{}

// New makes a Spawner.
func New(*Groups) *Spawner { return &Spawner{} }

// Start starts cmd without a group.
func (*Spawner) Start(cmd *exec.Cmd) (*Group, error) { return nil, cmd.Start() }

// Close does nothing.
func (*Spawner) Close() {}
