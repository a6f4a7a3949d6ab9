package engine

import (
	"context"
	"slices"

	"retort/internal/config"
	"retort/internal/home"
	"retort/internal/sandbox"
	"retort/internal/sandbox/guest/vminit"
	"retort/internal/sandbox/interpreter"
	"retort/internal/sandbox/runtimes"
	"retort/internal/sandbox/vm"
)

// SetupMachines prepares everything that the sandbox "vm" needs. It finds a kernel, or downloads one from the
// packages of Debian or Ubuntu, and then starts, snapshots and restores a machine for each runtime. If kernel is not
// empty, it is a folder with boot/vmlinuz-* and lib/modules/* to use instead. progress is called with each step that
// takes long. The error is a *Error with the missing component and how to get it.
func SetupMachines(ctx context.Context, c Config, kernel string, progress func(string)) (*vm.SetupReport, error) {
	loaded, err := c.loadConfig()
	if err != nil {
		return nil, err
	}
	commands, err := c.findRoleCommands()
	if err != nil {
		return nil, err
	}
	s := loaded.Settings
	o := machineOptions(
		s.VM, home.Dir(loaded.Home), commands.guest,
		runtimes.SupportedRuntimes(runtimeCommands(s.Runtimes), s.ExecutionLimits().Memory),
	)
	o.Commands = findHostCommands(s)
	o.Limits, o.Progress = s.ExecutionLimits(), progress
	if kernel != "" {
		o.Kernel = kernel
	}
	return vm.SetupMachines(ctx, o)
}

// newMachineBackend returns the sandbox backend for virtual machines. It reports itself as unavailable until
// SetupMachines has run once. After an upgrade it rebuilds its files on first use.
func newMachineBackend(c *configuration, shared backendOptions) sandbox.Backend {
	o := machineOptions(c.config.Settings.VM, c.home, shared.guest, shared.interpreters)
	o.Limits, o.Network, o.Commands = shared.limits, shared.network, shared.commands
	o.Progress = func(what string) { c.log.Info("virtual machine", "doing", what) }
	return vm.New(o)
}

// machineOptions returns the options that SetupMachines and the machines of an engine share.
func machineOptions(s config.VM, data home.Dir, guest []string, interpreters []interpreter.Interpreter) vm.Options {
	return vm.Options{
		Guest: append(slices.Clone(guest), vminit.RestoredArgument), QEMU: s.QEMU, Firecracker: s.Firecracker,
		Kernel: s.Kernel, Dir: data.Machines(),
		Interpreters: slices.DeleteFunc(slices.Clone(interpreters), func(i interpreter.Interpreter) bool { return i.Runtime != "python" }),
	}
}
