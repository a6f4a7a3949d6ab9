package vm

import (
	"context"

	"retort/internal/pipeline/isolate/process/walls"
)

// driver is a program that makes machines.
type driver interface {
	// version is part of what a kept machine depends on.
	version() (string, error)
	// boot is what a machine is started with from a kernel, behind walls; keep has it write
	// what it is made of into the folder when it has come to rest.
	boot(i *image, dir string, p *ports) (*walls.Plan, error)
	keep(ctx context.Context, p *ports, dir string) error
	// restore is what a copy of the machine in a folder is started with; resume has it run.
	restore(i *image, dir string, p *ports) (*walls.Plan, error)
	resume(p *ports) error
}
