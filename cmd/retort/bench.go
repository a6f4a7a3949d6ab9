package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"retort/internal/core"
	"retort/internal/devel/bench"
)

// benchCommands defines the command "retort bench" and its subcommands.
type benchCommands struct{ *app }

func (a benchCommands) command() *cobra.Command {
	var upstream int
	var only []string
	var t targetFlags
	c := &cobra.Command{
		Use: "bench", Short: "Measure how much time and memory Retort needs on this machine", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if upstream > 0 {
				bench.ServeTools(upstream, a.stdin, a.stdout)
				return nil
			}
			self, err := os.Executable()
			if err != nil {
				return core.Errorf(core.KindInternal, "bench", "%w", err)
			}
			say, done := a.startProgress("measuring")
			o := bench.Options{Self: self, Progress: say, Only: only}
			rows, err := bench.Run(cmd.Context(), o)
			var targets []bench.PromisedTarget
			if err == nil && len(only) == 0 {
				say("targets")
				targets, err = bench.CompareTargets(cmd.Context(), t.benchOptions(a.app, o), rows)
			}
			done()
			if err != nil {
				return err
			}
			if a.asJSON {
				return a.printJSON(map[string]any{
					"rows": rows, "targets": targets, "os": runtime.GOOS, "arch": runtime.GOARCH, "cpus": runtime.NumCPU(),
				})
			}
			if err := a.printBench(rows); err != nil || len(targets) == 0 {
				return err
			}
			fmt.Fprintln(a.stdout)
			return a.printTargets(targets)
		},
	}
	offerJSON(c)
	c.Flags().StringSliceVar(&only, "only", nil, "parts to measure: "+strings.Join(bench.PartNames(), ", "))
	c.Flags().IntVar(&upstream, "upstream", 0, "run as an MCP server with this number of generated tools")
	_ = c.Flags().MarkHidden("upstream")
	t.addTo(c)
	c.AddCommand(a.benchTokensCommand(), a.benchTargetsCommand())
	return c
}

func (a benchCommands) printBench(rows []bench.ResultRow) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MEASURED\tMEDIAN\tWORST\tRUNS\tTARGET")
	for _, r := range rows {
		worst, runs, target := "", "", ""
		if r.Runs > 0 {
			worst, runs = fmt.Sprintf("%.2f", r.Worst), fmt.Sprint(r.Runs)
		}
		if r.Target > 0 {
			target = fmt.Sprintf("≤ %g", r.Target)
			if !r.IsMet() {
				target += " missed"
			}
		}
		fmt.Fprintf(w, "%s\t%.2f %s\t%s\t%s\t%s\n", r.Name, r.Median, r.Unit, worst, runs, target)
	}
	return w.Flush()
}
