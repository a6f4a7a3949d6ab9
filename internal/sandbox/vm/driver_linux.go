package vm

import (
	"context"

	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/guest/vminit"
)

// machineDriver controls a virtual machine monitor, which is QEMU or Firecracker.
type machineDriver interface {
	// driverVersion returns a text that changes whenever a saved machine could no longer be resumed. It contains, for
	// example, the monitor's version.
	driverVersion() (string, error)
	// confinement describes to users what separates a program from the host.
	confinement() []string
	// kernelModules returns the kernel modules that a machine needs under this monitor. It also sets the fields of
	// the machine's configuration c that depend on the monitor.
	kernelModules(k *guestKernel, c *vminit.MachineConfig) (modules []string, err error)
	// supportsSharedMemory reports whether the monitor's machines can share memory with the engine.
	supportsSharedMemory() bool
	// makePorts creates the connections to a machine that must exist before the machine is started.
	makePorts() (*machinePorts, error)
	// bootPlan returns the confinement and command line of a monitor that boots a machine. configureMachine then
	// configures and starts the machine, if the command line does not do so. saveMachine saves the idle machine into
	// the folder dir.
	bootPlan(i *machineImage, dir string, p *machinePorts) (*confine.SandboxPlan, error)
	configureMachine(ctx context.Context, i *machineImage, p *machinePorts) error
	saveMachine(ctx context.Context, p *machinePorts, dir string) error
	// restorePlan returns the confinement and command line of a monitor that starts a copy of the machine saved in
	// the folder dir. resumeMachine then lets the copy run.
	restorePlan(i *machineImage, dir string, p *machinePorts) (*confine.SandboxPlan, error)
	resumeMachine(ctx context.Context, p *machinePorts) error
}
