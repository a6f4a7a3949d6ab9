package main

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"retort/internal/admin"
	"retort/internal/core"
	"retort/internal/engine"
)

// queryFlags holds the flags of an audit log query.
type queryFlags struct {
	admin.AuditQuery
	since, until string
	kind, status []string
	execution    string
	minRisk      int64
}

func (a auditCommands) queryCommand() *cobra.Command {
	var q queryFlags
	c := &cobra.Command{
		Use: "query", Short: "Search the audit log", Args: cobra.NoArgs,
		Long: `The command lists entries of the audit log, beginning with the newest. With --execution, the command
shows all entries of one execution in chronological order, with code, arguments and messages. A time is
a duration before now (24h, 7d), a date (2026-05-04), or a date with a time (2026-05-04T12:00:00Z).`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config := engine.Config{Files: a.configs, Home: a.home}
			if q.execution != "" {
				page, err := admin.QueryExecution(cmd.Context(), config, q.execution)
				if err != nil {
					return err
				}
				return a.printExecution(page)
			}
			if err := q.completeQuery(time.Now()); err != nil {
				return err
			}
			page, err := admin.QueryAudit(cmd.Context(), config, q.AuditQuery)
			if err != nil {
				return err
			}
			return a.printEntries(page)
		},
	}
	q.addFilterFlags(c)
	c.Flags().IntVar(&q.Limit, "limit", 50, "maximum number of entries to show")
	c.Flags().StringVar(&q.Cursor, "cursor", "",
		"show the next page; the command prints this value at the end of the previous page")
	offerJSON(c)
	return c
}

// momentOf parses the value of a flag as a point in time. The value is a date, a date with a time, or a duration
// before now such as 24h or 7d. An empty value gives the zero time.
func momentOf(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	var days float64
	if n, _ := fmt.Sscanf(text, "%fd", &days); n == 1 && strings.HasSuffix(text, "d") && days >= 0 {
		return now.Add(-time.Duration(days * 24 * float64(time.Hour))), nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, core.Errorf(
		core.KindInvalidArguments, "audit.query", "--%s %q is not a time", flag, text,
	).WithHint("such as 24h, 7d, 2026-05-04 or 2026-05-04T12:00:00Z")
}

func (a auditCommands) printEntries(page admin.AuditPage) error {
	if a.asJSON {
		return a.printJSON(page)
	}
	a.printWarnings(page.Warnings)
	if len(page.Entries) == 0 {
		fmt.Fprintln(a.stderr, "no entry matches")
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TIME\tKIND\tEXECUTION\tTOOL\tSTATUS\tRISK\tMS\t")
	for _, e := range page.Entries {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", e.At.Local().Format(time.DateTime), e.Kind, replaceControls(
			cmp.Or(e.Execution, "-"),
		), replaceControls(cmp.Or(toolOf(e), "-")),
			replaceControls(cmp.Or(e.Status, "-")), riskOf(e), millisOf(e))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if page.Cursor != "" {
		fmt.Fprintf(a.stderr, "more entries: --cursor %s\n", page.Cursor)
	}
	return nil
}

func toolOf(e admin.AuditEntry) string {
	if e.Tool == "" {
		return e.Server
	}
	return e.Server + "." + e.Tool
}

func riskOf(e admin.AuditEntry) string {
	if e.Risk == nil {
		return "-"
	}
	return fmt.Sprint(*e.Risk)
}

func millisOf(e admin.AuditEntry) string {
	if e.Millis == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", e.Millis)
}

// printExecution prints all entries of an execution.
func (a auditCommands) printExecution(page admin.AuditPage) error {
	if a.asJSON {
		return a.printJSON(page)
	}
	a.printWarnings(page.Warnings)
	first := page.Entries[0]
	fmt.Fprintf(a.stdout, "%s  session %s", a.styleText(a.stdout, bold, replaceControls(first.Execution)), replaceControls(cmp.Or(first.Session, "-")))
	if first.Principal != "" {
		fmt.Fprintf(a.stdout, "  principal %s", replaceControls(first.Principal))
	}
	fmt.Fprintln(a.stdout)
	for _, e := range page.Entries {
		parts := []string{
			e.At.Local().Format("2006-01-02 15:04:05.000"), a.styleText(a.stdout, bold, string(e.Kind)), replaceControls(toolOf(e)),
			replaceControls(e.Status),
		}
		if e.Risk != nil {
			parts = append(parts, "risk "+riskOf(e))
		}
		if e.Millis > 0 {
			parts = append(parts, millisOf(e)+" ms")
		}
		fmt.Fprintln(a.stdout, strings.Join(strings.Fields(strings.Join(parts, " ")), " "))
		a.printIndented(string(e.Facts))
		a.printIndented(prettyResult(e.Body))
		if e.Erased {
			fmt.Fprintln(a.stdout, a.styleText(a.stdout, dim, "    (erased)"))
		}
	}
	return nil
}

// addFilterFlags adds the flags that select entries.
func (q *queryFlags) addFilterFlags(c *cobra.Command) {
	flags := c.Flags()
	q.Limit = 1
	flags.StringVar(&q.since, "since", "", "include only entries at or after this time")
	flags.StringVar(&q.until, "until", "", "include only entries before this time")
	flags.StringVar(&q.Session, "session", "", "include only entries of this session")
	flags.StringVar(&q.Principal, "principal", "", "include only entries of this user")
	flags.StringVar(&q.Server, "server", "", "include only calls of this server's tools")
	flags.StringVar(&q.Tool, "tool", "", "include only calls of this tool, written as SERVER.TOOL or TOOL")
	flags.StringSliceVar(&q.status, "status", nil,
		"include only entries with this status, such as ok or denied (repeatable)")
	flags.StringSliceVar(&q.kind, "kind", nil,
		"include only entries of this kind, such as request, call, refusal or end (repeatable)")
	flags.StringVar(&q.execution, "execution", "", "include only entries of the execution with this id")
	flags.Int64Var(&q.minRisk, "min-risk", 0, "include only entries with at least this risk, from 0 to 100")
	flags.StringVar(&q.Text, "text", "",
		"include only entries that contain this text, also in code and arguments; upper and lower case are equal")
}

// completeQuery fills the query from the flags. It returns an error if a flag is invalid.
func (q *queryFlags) completeQuery(now time.Time) (err error) {
	if q.From, err = momentOf("since", q.since, now); err != nil {
		return err
	}
	if q.To, err = momentOf("until", q.until, now); err != nil {
		return err
	}
	if q.Limit < 1 || q.Limit > 10_000 || q.minRisk < 0 || q.minRisk > 100 {
		return core.Errorf(core.KindInvalidArguments, "audit.query", "--limit must be from 1 to 10000, and --min-risk from 0 to 100")
	}
	if server, tool, ok := strings.Cut(q.Tool, "."); ok && q.Server == "" {
		q.Server, q.Tool = server, tool
	}
	q.Kinds, q.Statuses, q.MinRisk = q.kind, q.status, q.minRisk
	return nil
}
