package vm

import (
	"context"

	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/guest/vminit"
)

// machineDriver controls a virtual machine monitor, which is QEMU or Firecracker.
type machineDriver interface {
	// driverVersion returns a text, such as the monitor's version, that changes whenever a machine that was saved
	// earlier could no longer be resumed.
	driverVersion() (string, error)
	// confinement describes to users what separates a program from the host.
	confinement() []string
	// kernelModules returns the kernel modules that a machine needs under this monitor. It also sets the fields of
	// the machine's configuration c that depend on the monitor.
	kernelModules(k *guestKernel, c *vminit.MachineConfig) (modules []string, err error)
	// supportsSharedMemory reports whether the monitor's machines can share memory with the engine.
	supportsSharedMemory() bool
	// makePorts creates those connections to a machine and its monitor that must exist before the monitor is started.
	makePorts() (*machinePorts, error)
	// bootPlan returns the confinement and command line of a monitor that boots the machine of the image i. After the
	// monitor has been started, configureMachine configures and starts the machine, unless the command line already
	// does so. Later, saveMachine saves the idle machine into the folder dir.
	bootPlan(i *machineImage, dir string, p *machinePorts) (*confine.SandboxPlan, error)
	configureMachine(ctx context.Context, i *machineImage, p *machinePorts) error
	saveMachine(ctx context.Context, p *machinePorts, dir string) error
	// restorePlan returns the confinement and command line of a monitor that restores a copy of the machine saved in
	// the folder dir. After the monitor has been started, resumeMachine lets the copy run.
	restorePlan(i *machineImage, dir string, p *machinePorts) (*confine.SandboxPlan, error)
	resumeMachine(ctx context.Context, p *machinePorts) error
}
