package retort

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

// SetupMachines makes what the sandbox "vm" needs: a kernel is found, or fetched from the packages
// of Debian or Ubuntu, and a machine is started, kept and woken for each runtime. Kernel, if it is
// not empty, is a folder with boot/vmlinuz-* and lib/modules/* to be used instead. Progress is told
// what takes long. The error is a *Error that says what is missing and how to get it.
func SetupMachines(ctx context.Context, c Config, kernel string, progress func(string)) (*vm.SetupReport, error) {
	loaded, err := c.load()
	if err != nil {
		return nil, err
	}
	commands, err := c.commands()
	if err != nil {
		return nil, err
	}
	s := loaded.Settings
	o := machineOptions(
		s.VM, home.Dir(loaded.Home), commands.guest,
		runtimes.SupportedRuntimes(runtimeCommands(s.Runtimes), s.Limits().Memory),
	)
	o.Commands = findCommands(s)
	o.Limits, o.Progress = s.Limits(), progress
	if kernel != "" {
		o.Kernel = kernel
	}
	return vm.SetupMachines(ctx, o)
}

// machines are sandboxes of virtual machines. They are said to be missing until SetupMachines has
// run once; after that, what an upgrade makes necessary is made when it is first asked for.
func (p *parts) machines(guest []string, interpreters []interpreter.Interpreter) sandbox.Backend {
	s := p.config.Settings
	o := machineOptions(s.VM, p.home, guest, interpreters)
	o.Limits, o.Network, o.Commands = s.Limits(), p.proxied(), p.commands
	o.Progress = func(what string) { p.log.Info("virtual machine", "doing", what) }
	return vm.New(o)
}

// machineOptions are what the machines of an engine and those of SetupMachines have in common.
func machineOptions(s config.VM, data home.Dir, guest []string, interpreters []interpreter.Interpreter) vm.Options {
	return vm.Options{
		Guest: append(slices.Clone(guest), vminit.RestoredArgument), QEMU: s.QEMU, Firecracker: s.Firecracker,
		Kernel: s.Kernel, Dir: data.Machines(),
		Interpreters: slices.DeleteFunc(slices.Clone(interpreters), func(i interpreter.Interpreter) bool { return i.Runtime != "python" }),
	}
}
