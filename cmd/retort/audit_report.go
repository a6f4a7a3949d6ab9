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
		Short: "Write a report about a period, based on the audit log", Args: cobra.NoArgs,
		Long: `The report says what happened in a period, whether the audit log is intact, and which settings apply
now. For a standard such as gdpr, the report also lists the controls of the standard. For each control,
the report says what Retort does, what the audit log shows, and what you have to do yourself. The report
also lists what it does not cover. Each number in the report comes with the query that lists its entries.
The report does not read code, arguments and messages.

A time is a duration before now (30d), a date, or a date with a time. If --to is a date, the period
includes this day. If the audit log is not intact, the report says so, and the exit code is still 0.`,
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
	c.Flags().StringVar(&from, "from", "30d", "include only entries at or after this time")
	c.Flags().StringVar(&to, "to", "0s",
		"include only entries before this time; if you give a date, the whole day is included")
	c.Flags().StringVar(&standard, "standard", "summary",
		"content of the report: the controls of gdpr, soc2 or hipaa, or only a summary")
	c.Flags().StringVar(&format, "format", "markdown", "format of the report: markdown, html or json")
	c.Flags().StringVar(&output, "output", "", "write the output to this file instead of standard output")
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
