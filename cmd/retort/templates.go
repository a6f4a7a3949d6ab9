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
		Use: "templates", Short: "List the templates of the texts that models read", Args: cobra.NoArgs,
		Long: `Templates are the texts from which Retort makes prompts, beginnings of programs, SKILL.md files and
wrappers. A project can replace a built-in template with a file in .retort/templates. Retort uses its
built-in template for every other text.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	eject := &cobra.Command{
		Use: "eject [DIR]", Short: "Write the built-in templates to files, so that you can edit them", Args: cobra.MaximumNArgs(1),
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
