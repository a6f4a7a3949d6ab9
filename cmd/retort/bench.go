package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"retort/internal/bench"
	"retort/internal/run"
)

func (a *app) bench() *cobra.Command {
	var asJSON bool
	var upstream int
	var only []string
	c := &cobra.Command{
		Use: "bench", Short: "Measure what the engine costs on this machine", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if upstream > 0 {
				bench.Serve(upstream, a.stdin, a.stdout)
				return nil
			}
			self, err := os.Executable()
			if err != nil {
				return run.Errorf(run.KindInternal, "bench", "%w", err)
			}
			say, done := a.progress("measuring")
			rows, err := bench.Run(cmd.Context(), bench.Options{Self: self, Progress: say, Only: only})
			done()
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(map[string]any{"rows": rows, "os": runtime.GOOS, "arch": runtime.GOARCH, "cpus": runtime.NumCPU()})
			}
			return a.printBench(rows)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringSliceVar(&only, "only", nil, "parts to measure: "+strings.Join(bench.Parts(), ", "))
	c.Flags().IntVar(&upstream, "upstream", 0, "be an MCP server with so many made-up tools")
	_ = c.Flags().MarkHidden("upstream")
	c.AddCommand(a.benchTokens())
	return c
}

func (a *app) printBench(rows []bench.Row) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MEASURED\tMEDIAN\tWORST\tRUNS\tTARGET")
	for _, r := range rows {
		worst, runs, target := "", "", ""
		if r.Runs > 0 {
			worst, runs = fmt.Sprintf("%.2f", r.Worst), fmt.Sprint(r.Runs)
		}
		if r.Target > 0 {
			target = fmt.Sprintf("≤ %g", r.Target)
			if !r.Met() {
				target += " missed"
			}
		}
		fmt.Fprintf(w, "%s\t%.2f %s\t%s\t%s\t%s\n", r.Name, r.Median, r.Unit, worst, runs, target)
	}
	return w.Flush()
}
