package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"retort/internal/admin"
)

// configCommands defines the command "retort config" and its subcommand.
type configCommands struct{ *app }

func (a configCommands) command() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Inspect the configuration"}
	show := &cobra.Command{
		Use: "show", Short: "Print which files were read and which policies result from them", Args: cobra.NoArgs,
		Long: "Print which files were read, and the settings of sandboxes, levels, network and\ncommands. network_policy, permission_levels and sandbox_options are printed in their translated form.",
		RunE: func(*cobra.Command, []string) error {
			m, err := admin.ExplainConfig(a.retortConfig())
			if err != nil {
				return err
			}
			for _, w := range m.Warnings {
				a.printWarning(w)
			}
			if a.asJSON {
				return a.printJSON(m)
			}
			for _, f := range m.Files {
				fmt.Fprintln(a.stdout, "# read:", f)
			}
			_, err = fmt.Fprint(a.stdout, m.Settings)
			return err
		},
	}
	offerJSON(show)
	c.AddCommand(show)
	return c
}
