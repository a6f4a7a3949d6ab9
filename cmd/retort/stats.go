package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"retort/internal/admin"
	"retort/internal/core"
	"retort/internal/engine"
)

// groupings lists the allowed values of the flag --by.
var groupings = []string{"day", "server", "tool", "status", "principal"}

// statsCommands defines the command "retort stats".
type statsCommands struct{ *app }

func (a statsCommands) command() *cobra.Command {
	var since, until, by, page string
	var span admin.UsageSpan
	c := &cobra.Command{
		Use: "stats", Short: "Show how many programs ran, how long they took and how many tokens they saved", Args: cobra.NoArgs,
		Example: "  retort stats --since 30d\n  retort stats --since 2026-01-01 --by tool\n  retort stats --since 90d --html stats.html",
		Long: `The command adds up the audit logs of all Retort processes of this data directory, even while they run. A
day begins and ends at midnight UTC. If the settings contain a price for a million tokens, such as
stats: {price: {input: 3.00}}, the command also shows costs.`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if by != "" && !slices.Contains(groupings, by) {
				return core.Errorf(
					core.KindInvalidArguments, "stats", "--by: unknown grouping %q", by,
				).WithHint("choose one of %s", strings.Join(groupings, ", "))
			}
			now := time.Now()
			if span.From, err = momentOf("since", since, now); err != nil {
				return err
			}
			if span.To, err = momentOf("until", until, now); err != nil {
				return err
			}
			say, done := a.startProgress("adding up the audit log")
			say("")
			used, err := admin.SumUsage(cmd.Context(), engine.Config{Files: a.configs, Home: a.home}, span)
			done()
			if err != nil {
				return err
			}
			if !a.asJSON {
				a.printWarnings(used.Warnings)
			}
			if page != "" {
				if err := a.writePage(page, usagePage(used, now)); err != nil {
					return err
				}
			}
			switch {
			case a.asJSON:
				return a.printJSON(used)
			case page != "":
				return nil
			}
			return a.printUsage(used, by)
		},
	}
	c.Flags().StringVar(&since, "since", "",
		"start of the period, as a duration before now such as 30d or 12h, or as a date such as 2026-01-31")
	c.Flags().StringVar(&until, "until", "",
		"end of the period, in the same form as --since; events at this time or later do not count")
	c.Flags().StringVar(&span.Session, "session", "", "count only executions of this session")
	c.Flags().StringVar(&span.Principal, "principal", "", "count only executions of this user")
	c.Flags().StringVar(&by, "by", "", "print only one table: day, server, tool, status or principal")
	offerJSON(c)
	c.Flags().StringVar(&page, "html", "", "write an HTML page with charts to this file")
	return c
}

func (a statsCommands) printUsage(u admin.Usage, by string) error {
	if u.Executions == 0 && u.Entries == 0 {
		fmt.Fprintln(a.stderr, "the audit log has no entries for this selection")
		return nil
	}
	if by == "" {
		a.printTotals(u)
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, t := range []struct {
		name  string
		whole bool // whether the table is shown if --by is not set
		print func(*tabwriter.Writer, admin.Usage)
	}{
		{"status", false, byStatus}, {"day", true, byDay}, {"server", false, byServer}, {"tool", true, byTool},
		{"principal", false, byPrincipal},
	} {
		if t.name == by || by == "" && t.whole {
			if by == "" {
				fmt.Fprintln(w)
			}
			t.print(w, u)
		}
	}
	return w.Flush()
}

func (a statsCommands) printTotals(u admin.Usage) {
	line := func(format string, args ...any) { fmt.Fprintf(a.stdout, format+"\n", args...) }
	line("executions  %s (%s)", formatCount(u.Executions), formatCounts(u.ByStatus))
	if d := u.Duration; d != nil {
		of := ""
		if u.Sampled > 0 {
			of = fmt.Sprintf(" (newest %s only)", formatCount(int64(u.Sampled)))
		}
		line("duration    p50 %s, p90 %s, p99 %s, max %s%s", formatMillis(d.P50), formatMillis(d.P90), formatMillis(d.P99), formatMillis(d.Max), of)
	}
	line(
		"calls       %s, %s with errors, %s refused, %s answered from the cache", formatCount(u.Calls), formatCount(u.Errors),
		formatCount(u.Refusals), formatCount(u.CacheHits),
	)
	if len(u.Approvals) > 0 {
		line("approvals   %s", formatCounts(u.Approvals))
	}
	line("tokens      %s returned, %s avoided%s", formatCount(u.Returned), formatCount(u.Avoided), costSavedText(u.Cost))
	line("audit log   %s entries, %.1f MB", formatCount(u.Entries), float64(u.Bytes)/1e6)
}

// costSavedText returns text that says how much the avoided tokens would have cost. It returns "" if no price is set.
func costSavedText(c *admin.Cost) string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf(" ≈ %s%.2f (at %s%.2f per million)", c.Currency, c.Avoided, c.Currency, c.PerMillion)
}

func formatCount(n int64) string { return groupThousands(int(n)) }

func formatMillis(ms float64) string {
	return time.Duration(ms * float64(time.Millisecond)).Round(100 * time.Microsecond).String()
}

func formatCounts(of map[string]int64) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		all = append(all, fmt.Sprintf("%s %s", formatCount(of[name]), name))
	}
	return strings.Join(all, ", ")
}

func byStatus(w *tabwriter.Writer, u admin.Usage) {
	fmt.Fprintln(w, "STATUS\tEXECUTIONS")
	for _, name := range slices.Sorted(maps.Keys(u.ByStatus)) {
		fmt.Fprintf(w, "%s\t%s\n", name, formatCount(u.ByStatus[name]))
	}
}

func byDay(w *tabwriter.Writer, u admin.Usage) {
	cost := ""
	if u.Cost != nil {
		cost = "\tAVOIDED COST"
	}
	fmt.Fprintf(w, "DAY\tEXECUTIONS\tCALLS\tERRORS\tRETURNED\tAVOIDED%s\n", cost)
	for _, d := range u.Days {
		if u.Cost != nil {
			cost = fmt.Sprintf("\t%s%.2f", u.Cost.Currency, float64(d.Avoided)/1e6*u.Cost.PerMillion)
		}
		fmt.Fprintf(
			w, "%s\t%s\t%s\t%s\t%s\t%s%s\n", d.Day, formatCount(d.Executions), formatCount(d.Calls), formatCount(d.Errors), formatCount(d.Returned),
			formatCount(d.Avoided), cost,
		)
	}
}

func byTool(w *tabwriter.Writer, u admin.Usage) {
	fmt.Fprintln(w, "TOOL\tCALLS\tERRORS\tMEAN\tBYTES")
	for _, t := range u.Tools {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", replaceControls(t.Server+"."+t.Tool), formatCount(t.Calls), formatCount(t.Errors), formatMillis(t.MeanMS), formatCount(t.Bytes))
	}
}

func byServer(w *tabwriter.Writer, u admin.Usage) {
	fmt.Fprintln(w, "SERVER\tCALLS\tERRORS\tMEAN\tBYTES")
	for _, s := range u.Servers {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", replaceControls(s.Server), formatCount(s.Calls), formatCount(s.Errors), formatMillis(s.MeanMS), formatCount(s.Bytes))
	}
}

func byPrincipal(w *tabwriter.Writer, u admin.Usage) {
	fmt.Fprintln(w, "PRINCIPAL\tEXECUTIONS\tFAILED\tRETURNED\tAVOIDED")
	for _, p := range u.Principals {
		name := replaceControls(p.Principal)
		if name == "" {
			name = "(no principal)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", name, formatCount(p.Executions), formatCount(p.Failed), formatCount(p.Returned), formatCount(p.Avoided))
	}
}
