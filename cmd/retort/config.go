package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"retort/internal/admin"
	"retort/internal/config"
)

// configCommands defines the command "retort config" and its subcommands.
type configCommands struct{ *app }

func (a configCommands) command() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Inspect the configuration"}
	c.AddCommand(a.show(), a.check(), a.schema())
	return c
}

func (a configCommands) show() *cobra.Command {
	var defaults bool
	c := &cobra.Command{
		Use: "show", Short: "Print the settings in effect, each with the file that sets it", Args: cobra.NoArgs,
		Long: `The command prints which configuration files Retort has read, the settings that differ from their
defaults, and the settings that control what programs may do. A comment after a setting gives the file
and the line that sets it. The command prints *** in place of keys, secrets, headers, paths of webhooks,
and arguments of commands that may contain secrets. Retort translates the setting network_policy to other
settings, and the command prints these other settings.`,
		Example: `  retort config show             the settings of this folder
  retort config show --defaults  all settings, also those with their defaults`,
		RunE: func(*cobra.Command, []string) error {
			m, err := admin.ExplainConfig(a.retortConfig(), defaults)
			if err != nil {
				return err
			}
			return a.printExplanation(m, m.Settings)
		},
	}
	c.Flags().BoolVar(&defaults, "defaults", false,
		"print all settings, including the settings that have their default values")
	offerJSON(c)
	return c
}

func (a configCommands) check() *cobra.Command {
	c := &cobra.Command{
		Use: "check [FILE...]", Short: "Check configuration files, and print all errors in them",
		Long: `The command checks configuration files, and prints all errors with their file, line and column. FILE is
a retort.yaml, or a client's file with MCP servers. Without FILE, the command checks the files that Retort
would read in this folder. The command starts no server. It checks the names of servers only if it also
checks the file that lists these servers. If a file has an error, the exit code is 2.`,
		Example: `  retort config check              the files that retort would read here
  retort config check retort.yaml  one file`,
		RunE: func(_ *cobra.Command, files []string) error {
			from := a.retortConfig()
			if len(files) > 0 {
				from.Files = files
			}
			m, err := admin.ExplainConfig(from, false)
			if err != nil {
				return err
			}
			result := "ok\n"
			if len(m.Files) == 0 {
				result = "there are no configuration files; retort install CLIENT takes over the servers of a client\n"
			}
			if len(m.Broken) > 0 {
				result = ""
			}
			if err := a.printExplanation(m, result); err != nil || len(m.Broken) == 0 {
				return err
			}
			return exitError(exitUsage)
		},
	}
	offerJSON(c)
	return c
}

// printExplanation prints warnings, the names of the files that were read, and text.
func (a configCommands) printExplanation(m admin.ConfigExplanation, text string) error {
	for _, w := range m.Warnings {
		a.printWarning(w)
	}
	if a.asJSON {
		return a.printJSON(m)
	}
	for _, b := range m.Broken {
		fmt.Fprintln(a.stderr, a.styleText(a.stderr, red, "error:"), legibleLine(b))
	}
	for _, f := range m.Files {
		fmt.Fprintln(a.stdout, "# read:", f)
	}
	_, err := fmt.Fprint(a.stdout, text)
	return err
}

func (a configCommands) schema() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of retort.yaml", Args: cobra.NoArgs,
		Long: `The command prints the JSON Schema of retort.yaml. Editors can use the schema to complete and check the
settings. For this, the file retort.yaml must begin with this line:

  # yaml-language-server: $schema=retort.schema.json`,
		Example: "  retort config schema > retort.schema.json",
		RunE: func(*cobra.Command, []string) error {
			text, err := config.SettingsSchema()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.stdout, "%s\n", text)
			return err
		},
	}
}
