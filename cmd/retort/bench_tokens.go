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
		Use: "tokens", Short: "Compare the tokens of tasks with and without Retort", Args: cobra.NoArgs,
		Example: "  retort bench tokens\n  retort bench tokens --html tokens.html",
		Long: `The command performs nine tasks in four ways with the sample servers, and counts the tokens of each way.
The first way is direct calls with all tool definitions in the context. The second way is direct calls
with the client's own tool search. The third and the fourth way are programs, with all tools of Retort
or with only the first four. The command makes all calls of the tasks. No model takes part, because the
decisions of the model are scripted. The command counts tokens with the encoding o200k_base.`,
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
	c.Flags().StringVar(&page, "html", "", "write an HTML page with charts to this file")
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
