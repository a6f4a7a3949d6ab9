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
		Use: "setup", Short: "Prepare virtual machines for the sandbox vm", Args: cobra.NoArgs,
		Long: `Finds a kernel, or downloads one from the packages of Debian or Ubuntu without installing it.
Starts a machine for each runtime, and one for commands if the settings allow any, and saves the memory of each.
Resumes a copy of each machine to check that it works. Programs then run in copies of these machines
(sandboxMode: vm, or auto). You can repeat the command: machines that exist and work are kept.`,
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
	c.Flags().StringVar(&kernel, "kernel", "", "folder with boot/vmlinuz-* and lib/modules/*, such as an unpacked package")
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
