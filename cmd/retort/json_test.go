package main

import (
	"testing"

	"github.com/spf13/cobra"
)

// TestOnlyTheRootDefinesJSON checks that no subcommand defines its own --json flag. It would hide the flag of the root
// command, and the program reads only that one.
func TestOnlyTheRootDefinesJSON(t *testing.T) {
	offered := 0
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		if c.LocalNonPersistentFlags().Lookup(jsonFlag) != nil {
			t.Errorf("%s defines --%s", c.CommandPath(), jsonFlag)
		}
		if offersJSON(c) {
			offered++
		}
		for _, sub := range c.Commands() {
			check(sub)
		}
	}
	check((&app{}).rootCommand())
	if offered < 30 {
		t.Errorf("%d commands print JSON", offered)
	}
}
