package vm

import (
	"context"

	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/guest/vminit"
)

// machineDriver controls a virtual machine monitor: QEMU or Firecracker.
type machineDriver interface {
	// driverVersion identifies what a saved machine depends on.
	driverVersion() (string, error)
	// confinement describes what separates a program from the host.
	confinement() []string
	// kernelModules adapts the machine's configuration to the driver and returns the kernel modules that it needs.
	kernelModules(k *guestKernel, c *vminit.MachineConfig) (modules []string, err error)
	// supportsSharedMemory reports whether its machines can share memory with the engine.
	supportsSharedMemory() bool
	// makePorts makes those connections with a machine that must exist before it is started.
	makePorts() (*machinePorts, error)
	// bootPlan returns the confinement and the command line that start a machine from a kernel. started completes its
	// start, if the command line does not. keep saves the idle machine into the folder.
	bootPlan(i *machineImage, dir string, p *machinePorts) (*confine.SandboxPlan, error)
	configureMachine(ctx context.Context, i *machineImage, p *machinePorts) error
	saveMachine(ctx context.Context, p *machinePorts, dir string) error
	// restorePlan returns the confinement and the command line that start a copy of the machine in a folder. resume lets
	// the copy run.
	restorePlan(i *machineImage, dir string, p *machinePorts) (*confine.SandboxPlan, error)
	resumeMachine(ctx context.Context, p *machinePorts) error
}
