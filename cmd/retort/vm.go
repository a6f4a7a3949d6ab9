package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"retort/internal/engine"
	"retort/internal/sandbox/vm"
)

// vmCommands defines the command "retort vm" and its subcommand.
type vmCommands struct{ *app }

func (a vmCommands) command() *cobra.Command {
	c := &cobra.Command{Use: "vm", Short: "Manage the virtual machines for programs"}
	c.AddCommand(a.setupMachinesCommand())
	return c
}

func (a vmCommands) setupMachinesCommand() *cobra.Command {
	var kernel string
	c := &cobra.Command{
		Use: "setup", Short: "Prepare the virtual machines that the sandbox vm uses", Args: cobra.NoArgs,
		Long: `The command looks for a Linux kernel on this machine. If it finds no kernel, it downloads one from a
package of Debian or Ubuntu. It does not install this kernel on the machine. The command starts a virtual machine for each
runtime, and saves the memory of this machine. If the settings allow commands, the command also prepares a
virtual machine for commands. To check each saved machine, the command resumes a copy of it. With
sandboxMode vm or auto, programs run in such copies. You can repeat the command. It keeps saved machines
that work.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			say, done := a.startProgress("preparing")
			defer done()
			report, err := engine.SetupMachines(cmd.Context(), engine.Config{Files: a.configs, Home: a.home}, kernel, say)
			done()
			if err != nil {
				return err
			}
			if a.asJSON {
				return a.printJSON(report)
			}
			a.printMachines(report)
			return nil
		},
	}
	c.Flags().StringVar(&kernel, "kernel", "",
		"folder with the files boot/vmlinuz-* and lib/modules/* of a kernel, such as an unpacked package")
	offerJSON(c)
	return c
}

func (a vmCommands) printMachines(r *vm.SetupReport) {
	a.printMark(true, replaceControls(r.Program))
	a.printMark(true, "kernel: "+replaceControls(r.Kernel)+" ("+replaceControls(r.Origin)+")")
	a.printMark(true, "processor: "+replaceControls(r.Why))
	for _, m := range r.Machines {
		woken := time.Duration(m.Woken) * time.Millisecond
		a.printMark(true, fmt.Sprintf("machine for %s: a copy starts in %v; %d MB in %s", m.Runtime, woken, m.Bytes>>20, replaceControls(m.Dir)))
	}
	for _, m := range r.Missing {
		a.printAbsent("runtime "+m.Runtime, m.Why)
	}
	fmt.Fprintln(a.stdout, "programs run in it with sandboxMode: vm or --sandbox vm, and with sandboxMode: auto if they require it")
}
