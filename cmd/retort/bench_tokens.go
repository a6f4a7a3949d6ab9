package main

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"retort/internal/core"
	"retort/internal/devel/bench"
)

func (a benchCommands) benchTokensCommand() *cobra.Command {
	var page string
	var only []string
	c := &cobra.Command{
		Use: "tokens", Short: "Measure what code execution saves and costs", Args: cobra.NoArgs,
		Example: "  retort bench tokens\n  retort bench tokens --html tokens.html",
		Long: `Performs nine tasks in four ways against the bundled servers: by direct calls with all definitions in the
context, by direct calls with a tool search of the client, and by programs, with all tools of Retort or
only the first four. All calls are really made; the decisions of the model are scripted. Tokens are those of o200k_base.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if page != "" {
				if err := mayWritePage(page); err != nil {
					return err
				}
			}
			self, err := os.Executable()
			if err != nil {
				return core.Errorf(core.KindInternal, "bench", "%w", err)
			}
			say, done := a.startProgress("measuring")
			works, err := bench.MeasureWorkloads(cmd.Context(), bench.Options{Self: self, Progress: say, Only: only})
			done()
			if err != nil {
				return err
			}
			if page != "" {
				if err := a.writePage(page, bench.TokenPage(works, time.Now())); err != nil {
					return err
				}
			}
			if a.asJSON {
				return a.printJSON(map[string]any{"workloads": works, "tokenizer": "o200k_base"})
			}
			if page != "" {
				return nil
			}
			return a.printWorkloads(works)
		},
	}
	offerJSON(c)
	c.Flags().StringVar(&page, "html", "", "write a page with charts to this file")
	c.Flags().StringArrayVar(&only, "only", nil, "measure only the task with this name, typed as it stands here (repeatable): "+strings.Join(bench.WorkloadNames(), "; "))
	return c
}

func (a benchCommands) printWorkloads(works []bench.Workload) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	for i, one := range works {
		fmt.Fprintf(w, "%s%s\n", newlineUnlessFirst(i), a.styleText(a.stdout, bold, fmt.Sprintf("%d. %s", i+1, one.Name)))
		fmt.Fprintln(w, one.Task)
		fmt.Fprintln(w, "definitions\tread\twritten\ttool calls\tround trips\twall ms\tpeak context\t")
		for _, c := range one.Costs {
			fmt.Fprintf(
				w, "%s\t%s\t%s\t%s\t%d\t%.0f\t%s\t  %s\n", groupThousands(c.Definitions), groupThousands(c.Read), groupThousands(c.Written),
				groupThousands(c.Calls), c.RoundTrips, c.WallMS, groupThousands(c.Peak), c.Way,
			)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		for _, verdict := range one.ListVerdicts() {
			fmt.Fprintf(a.stdout, "  %s\n", verdict)
		}
	}
	return nil
}

func newlineUnlessFirst(i int) string {
	if i == 0 {
		return ""
	}
	return "\n"
}
