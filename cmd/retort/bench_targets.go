package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"retort/internal/core"
	"retort/internal/devel/bench"
)

// targetFlags holds the flags that select the tool catalogs whose tokens are counted.
type targetFlags struct {
	catalogs  string
	connected bool
}

func (f *targetFlags) addTo(c *cobra.Command) {
	c.Flags().StringVar(&f.catalogs, "catalogs", "",
		"also count the tokens of the tool lists in this folder, which has a file NAME.json for each list")
	c.Flags().BoolVar(&f.connected, "connected", false,
		"also start the configured MCP servers and count the tokens of their tool definitions")
}

func (f *targetFlags) benchOptions(a *app, o bench.Options) bench.Options {
	o.Catalogs = f.catalogs
	if f.connected {
		c := a.retortConfig()
		o.Connected = &c
	}
	return o
}

func (a benchCommands) benchTargetsCommand() *cobra.Command {
	var only []string
	var f targetFlags
	c := &cobra.Command{
		Use: "targets", Short: "Measure the published performance targets of Retort on this machine", Args: cobra.NoArgs,
		Long: `The command measures the published targets of Retort: 98.7 % fewer tokens, the cost of a session,
wrappers in 50 ms, the start of each sandbox, validation in 50 ms, a result in 3 s, and personal data
found by type. Each line names the command that measures the figure, and says what the figure leaves out.
The command counts tokens with the encoding o200k_base, and sends no data from this machine.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			self, err := os.Executable()
			if err != nil {
				return core.Errorf(core.KindInternal, "bench", "%w", err)
			}
			if f.connected && f.catalogs != "" {
				return core.Errorf(core.KindInvalidArguments, "bench", "--connected and --catalogs cannot be combined")
			}
			say, done := a.startProgress("measuring")
			o := f.benchOptions(a.app, bench.Options{Self: self, Progress: say, Only: bench.TargetParts()})
			if len(only) > 0 {
				o.Only = only
			}
			rows, err := bench.Run(cmd.Context(), o)
			var targets []bench.PromisedTarget
			if err == nil {
				say("tokens and personal data")
				targets, err = bench.CompareTargets(cmd.Context(), o, rows)
			}
			done()
			if err != nil {
				return err
			}
			if len(only) > 0 {
				targets = slices.DeleteFunc(targets, func(t bench.PromisedTarget) bool { return t.Met == nil })
			}
			if a.asJSON {
				return a.printJSON(map[string]any{"targets": targets, "os": runtime.GOOS, "arch": runtime.GOARCH, "cpus": runtime.NumCPU()})
			}
			return a.printTargets(targets)
		},
	}
	offerJSON(c)
	c.Flags().StringSliceVar(
		&only, "only", nil,
		"parts to measure in addition to tokens and personal data: "+strings.Join(bench.TargetParts(), ", ")+"; tokens to measure none of them",
	)
	f.addTo(c)
	return c
}

func (a benchCommands) printTargets(targets []bench.PromisedTarget) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TARGET\tPROMISED\tMEASURED\t\tCOMMAND")
	for _, t := range targets {
		verdict := ""
		if t.Met != nil {
			verdict = map[bool]string{true: "met", false: "missed"}[*t.Met]
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", t.Name, t.Promised, t.Measured, verdict, t.Command)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(a.stdout, "\nNot covered by the figures:")
	for _, t := range targets {
		if t.Losses != "" {
			fmt.Fprintf(a.stdout, "- %s: %s\n", t.Name, replaceControls(t.Losses))
		}
	}
	return nil
}
