package main

import (
	"github.com/spf13/cobra"

	"retort/internal/core"
)

const (
	jsonFlag       = "json"
	jsonAnnotation = "json" // annotation of commands that can print JSON
)

// addJSON adds the flag --json to all commands. Commands that cannot print JSON reject the flag, and their help does
// not show it.
func (a *app) addJSON(root *cobra.Command) {
	root.PersistentFlags().BoolVar(&a.asJSON, jsonFlag, false, "print the output as JSON")
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if a.asJSON && !offersJSON(c) {
			return core.Errorf(core.KindInvalidArguments, "usage", "%s does not print JSON", c.CommandPath()).WithHint("leave out --json")
		}
		return nil
	}
	printUsage := root.UsageFunc()
	root.SetUsageFunc(func(c *cobra.Command) error {
		showJSON(c)
		return printUsage(c)
	})
}

// offerJSON marks a command as able to print JSON, so that it accepts --json.
func offerJSON(c *cobra.Command) { c.Annotations = map[string]string{jsonAnnotation: "yes"} }

func offersJSON(c *cobra.Command) bool { return c.Annotations[jsonAnnotation] != "" }

// showJSON makes the help of c show --json if c can print JSON, and hides the flag otherwise.
func showJSON(c *cobra.Command) {
	c.Root().PersistentFlags().Lookup(jsonFlag).Hidden = !offersJSON(c)
}
