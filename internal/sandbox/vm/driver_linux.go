package vm

import (
	"context"

	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/guest/vminit"
)

// driver is a program that makes machines.
type driver interface {
	// version is part of what a kept machine depends on.
	version() (string, error)
	// walls says what is between a program and the machine.
	walls() []string
	// fit says what the machine has to know of the driver, and gives the parts of the kernel that
	// it needs.
	fit(k *kernel, c *vminit.Config) (modules []string, err error)
	// shares says whether its machines have memory that the engine sees.
	shares() bool
	// ports are the connections with a machine, as far as they are there before it.
	ports() (*ports, error)
	// boot is what a machine is started with from a kernel, behind walls; started has it run, as
	// far as it does not by itself, and keep has it write what it is made of into the folder when
	// it has come to rest.
	boot(i *image, dir string, p *ports) (*confine.Plan, error)
	started(ctx context.Context, i *image, p *ports) error
	keep(ctx context.Context, p *ports, dir string) error
	// restore is what a copy of the machine in a folder is started with; resume has it run.
	restore(i *image, dir string, p *ports) (*confine.Plan, error)
	resume(ctx context.Context, p *ports) error
}
