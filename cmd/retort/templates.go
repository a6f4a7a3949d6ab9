package main

import (
	"cmp"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"retort/internal/agent/templates"
	"retort/internal/home"
)

// templateCommands defines the command "retort templates" and its subcommand.
type templateCommands struct{ *app }

func (a templateCommands) command() *cobra.Command {
	c := &cobra.Command{
		Use: "templates", Short: "List and change the templates of prompts, skeletons, SKILL.md and wrappers", Args: cobra.NoArgs,
		Long: "A project can override them in .retort/templates. Templates that it does not override stay as built in.",
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	eject := &cobra.Command{
		Use: "eject [DIR]", Short: "Write the built-in templates to files that you can edit", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := home.Dir(cmp.Or(a.home, ".retort")).Templates()
			if len(args) == 1 {
				dir = args[0]
			}
			names, refused := templates.WriteBuiltins(dir)
			if refused != nil {
				return refused
			}
			if a.asJSON {
				return a.printJSON(map[string]any{"path": dir, "written": names})
			}
			if len(names) == 0 {
				fmt.Fprintln(a.stderr, "nothing was written: all template files already exist")
			}
			for _, name := range names {
				fmt.Fprintln(a.stdout, dir+string(os.PathSeparator)+name)
			}
			return nil
		},
	}
	offerJSON(eject)
	c.AddCommand(eject)
	return c
}
