package vm

import (
	"context"

	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/guest/vminit"
)

// driver controls a virtual machine monitor: QEMU or Firecracker.
type driver interface {
	// version identifies what a saved machine depends on.
	version() (string, error)
	// walls describes what separates a program from the host.
	walls() []string
	// fit adapts the machine's configuration to the driver and returns the kernel modules that it needs.
	fit(k *kernel, c *vminit.Config) (modules []string, err error)
	// shares reports whether its machines can share memory with the engine.
	shares() bool
	// ports makes those connections with a machine that must exist before it is started.
	ports() (*ports, error)
	// boot returns the confinement and the command line that start a machine from a kernel. started completes its
	// start, if the command line does not. keep saves the idle machine into the folder.
	boot(i *image, dir string, p *ports) (*confine.Plan, error)
	started(ctx context.Context, i *image, p *ports) error
	keep(ctx context.Context, p *ports, dir string) error
	// restore returns the confinement and the command line that start a copy of the machine in a folder. resume lets
	// the copy run.
	restore(i *image, dir string, p *ports) (*confine.Plan, error)
	resume(ctx context.Context, p *ports) error
}
