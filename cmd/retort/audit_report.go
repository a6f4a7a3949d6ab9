package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"retort/internal/admin"
	"retort/internal/engine"
)

func (a auditCommands) reportCommand() *cobra.Command {
	var from, to, standard, format, output string
	c := &cobra.Command{
		Use:   "report --from DATE --to DATE --standard gdpr|soc2|hipaa|summary",
		Short: "Report on a period from the audit log", Args: cobra.NoArgs,
		Long: `Reports what happened in a period, whether the audit log is intact, and what the settings are now.
For a standard, it also lists the controls: what Retort does for each, what the audit log shows about it, and
what you have to do yourself. It lists what is not covered. Next to each number is the query that lists its
entries. The report does not read code, arguments and messages.

A time is a duration before now (30d), a date, or a date with a time. The period includes the day of --to. The
command exits with 0 even if the audit log failed verification; the report says so.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := periodOf(from, to, time.Now())
			if err != nil {
				return err
			}
			say, done := a.startProgress("reporting")
			defer done()
			p.Progress = func(what string, n int64) { say(fmt.Sprintf("%s: %s entries", what, groupThousands(int(n)))) }
			return writeFileOrStdout(a.stdout, output, false, func(w io.Writer) error {
				r, err := admin.ReportAudit(cmd.Context(), engine.Config{Files: a.configs, Home: a.home}, admin.ReportStandard(standard), p)
				done()
				if err != nil {
					return err
				}
				return r.Write(w, admin.ReportFormat(format))
			})
		},
	}
	c.Flags().StringVar(&from, "from", "30d", "at or after this time")
	c.Flags().StringVar(&to, "to", "0s", "before this time; a date includes its whole day")
	c.Flags().StringVar(&standard, "standard", "summary", "gdpr, soc2, hipaa or summary")
	c.Flags().StringVar(&format, "format", "markdown", "markdown, html or json")
	c.Flags().StringVar(&output, "output", "", "write to this file instead of standard output")
	return c
}

// periodOf parses the values of the flags --from and --to as a period. If the end is a date, the period includes that
// day.
func periodOf(from, to string, now time.Time) (p admin.ReportPeriod, err error) {
	if p.From, err = momentOf("from", from, now); err != nil {
		return p, err
	}
	if p.To, err = momentOf("to", to, now); err != nil {
		return p, err
	}
	if _, err := time.Parse(time.DateOnly, to); err == nil {
		p.To = p.To.AddDate(0, 0, 1)
	}
	return p, nil
}
