package main

import (
	"github.com/spf13/cobra"

	"retort/internal/core"
)

const (
	jsonFlag       = "json"
	jsonAnnotation = "json" // of the commands that can print JSON
)

// addJSON adds the flag --json to all commands. Commands that cannot print JSON refuse the flag, and their help does
// not show it.
func (a *app) addJSON(root *cobra.Command) {
	root.PersistentFlags().BoolVar(&a.asJSON, jsonFlag, false, "print JSON")
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

// offerJSON marks a command as one that can print JSON, so that it accepts --json.
func offerJSON(c *cobra.Command) { c.Annotations = map[string]string{jsonAnnotation: "yes"} }

func offersJSON(c *cobra.Command) bool { return c.Annotations[jsonAnnotation] != "" }

// showJSON shows --json in help texts if the command c offers JSON, and hides it otherwise.
func showJSON(c *cobra.Command) {
	c.Root().PersistentFlags().Lookup(jsonFlag).Hidden = !offersJSON(c)
}
