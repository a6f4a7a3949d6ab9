package main

import (
	"cmp"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"retort"
	"retort/internal/core"
)

func (a *app) verify() *cobra.Command {
	var files []string
	var key string
	c := &cobra.Command{
		Use: "verify", Short: "Prove that nobody has changed the record", Args: cobra.NoArgs,
		Long: `Recomputes the hash and the code of each entry, archives included, holds the record against
all signed checkpoints, and looks whether each execution is told once from its beginning to
its end. It ends with 1 and names the first entry that does not hold, and what happened.
Checkpoints that were kept on another machine (audit.checkpoint) also show what somebody did
who has taken over this one. Who has not the person's key gives the public one with --key;
each checkpoint names it. Engines may go on meanwhile.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			public, err := publicKey(key)
			if err != nil {
				return err
			}
			say, done := a.progress("verifying")
			v, err := retort.VerifyRecord(cmd.Context(), retort.Config{Files: a.configs, Home: a.home}, retort.Proof{
				Checkpoints: files, Key: public, Progress: func(n int64) { say(fmt.Sprintf("%s entries", thousands(int(n)))) },
			})
			done()
			if err != nil {
				return err
			}
			return a.printVerdict(v)
		},
	}
	c.Flags().StringArrayVar(&files, "checkpoints", nil, "a file with checkpoints that were kept elsewhere (repeatable)")
	c.Flags().StringVar(&key, "key", "", "the public key that checkpoints are signed with, base64")
	offerJSON(c)
	return c
}

func publicKey(text string) (ed25519.PublicKey, error) {
	if text == "" {
		return nil, nil
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, core.Errorf(
			core.KindInvalidArguments, "audit.verify", "--key is not a public key",
		).WithHint("it is the field key of a checkpoint: 44 characters of base64")
	}
	return key, nil
}

func (a *app) printVerdict(v retort.RecordVerdict) error {
	var code error
	if !v.OK {
		code = exitError(exitFailed)
	}
	if a.asJSON {
		if err := a.printJSON(v); err != nil {
			return err
		}
		return code
	}
	for _, note := range v.Notes {
		fmt.Fprintln(a.stderr, a.style(a.stderr, amber, "note:"), printable(note))
	}
	if v.OK {
		fmt.Fprintf(
			a.stdout, "%s · entries: %s, chains: %d, checkpoints: %s\n", a.style(a.stdout, green, "the record holds"),
			thousands(int(v.Entries)), len(v.Chains), thousands(int(v.Checkpoints)),
		)
		return nil
	}
	fmt.Fprintf(a.stdout, "%s %s: %s\n", a.style(a.stdout, red, "the record does not hold:"), v.First.What, printable(v.First.Says))
	for _, f := range v.Findings {
		if f != *v.First {
			fmt.Fprintf(a.stdout, "  %s: %s\n", f.What, printable(f.Says))
		}
	}
	return code
}

func (a *app) acceptClock() *cobra.Command {
	return &cobra.Command{
		Use: "accept-clock", Short: "Say that the clock is right, though it is behind the record", Args: cobra.NoArgs,
		Long: `Calls that may have effects are refused while the clock is more than two minutes behind
the newest entry of the record. If the clock is right now, and was wrong when that entry was
written, engines of this user believe it after this, for an hour. It is recorded.`,
		RunE: func(*cobra.Command, []string) error {
			if err := retort.AcceptClock(retort.Config{Files: a.configs, Home: a.home}); err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "engines believe for an hour that the clock, which shows %s, is right\n", time.Now().Format(time.DateTime))
			return nil
		},
	}
}

// asking holds the flags of an audit log query.
type asking struct {
	retort.RecordQuery
	since, until string
	kind, status []string
	execution    string
	minRisk      int64
}

func (a *app) query() *cobra.Command {
	var q asking
	c := &cobra.Command{
		Use: "query", Short: "Ask the record", Args: cobra.NoArgs,
		Long: `Lists entries, newest first. --execution shows one execution whole, in the order of time,
with its code, arguments and messages. A time is a length before now (24h, 7d), a date
(2026-05-04) or a date with a time (2026-05-04T12:00:00Z).`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config := retort.Config{Files: a.configs, Home: a.home}
			if q.execution != "" {
				page, err := retort.RecordedExecution(cmd.Context(), config, q.execution)
				if err != nil {
					return err
				}
				return a.printStory(page)
			}
			if err := q.complete(time.Now()); err != nil {
				return err
			}
			page, err := retort.QueryRecord(cmd.Context(), config, q.RecordQuery)
			if err != nil {
				return err
			}
			return a.printEntries(page)
		},
	}
	q.filters(c)
	c.Flags().IntVar(&q.Limit, "limit", 50, "how many entries")
	c.Flags().StringVar(&q.Cursor, "cursor", "", "go on where the page before ended")
	offerJSON(c)
	return c
}

// filters adds the flags that select entries.
func (q *asking) filters(c *cobra.Command) {
	flags := c.Flags()
	q.Limit = 1
	flags.StringVar(&q.since, "since", "", "from this time on")
	flags.StringVar(&q.until, "until", "", "before this time")
	flags.StringVar(&q.Session, "session", "", "of this session")
	flags.StringVar(&q.Principal, "principal", "", "of this principal")
	flags.StringVar(&q.Server, "server", "", "calls of this server's tools")
	flags.StringVar(&q.Tool, "tool", "", "calls of this tool; SERVER.TOOL or TOOL")
	flags.StringSliceVar(&q.status, "status", nil, "how it ended, such as ok or denied (repeatable)")
	flags.StringSliceVar(&q.kind, "kind", nil, "such as request, call, refusal, end (repeatable)")
	flags.StringVar(&q.execution, "execution", "", "one execution, whole")
	flags.Int64Var(&q.minRisk, "min-risk", 0, "with this risk or more, 0 to 100")
	flags.StringVar(&q.Text, "text", "", "with this text, in whatever case, in code and arguments too")
}

// complete completes the query from the flags, and checks them.
func (q *asking) complete(now time.Time) (err error) {
	if q.From, err = momentOf("since", q.since, now); err != nil {
		return err
	}
	if q.To, err = momentOf("until", q.until, now); err != nil {
		return err
	}
	if q.Limit < 1 || q.Limit > 10_000 || q.minRisk < 0 || q.minRisk > 100 {
		return core.Errorf(core.KindInvalidArguments, "audit.query", "--limit is from 1 to 10000, --min-risk from 0 to 100")
	}
	if server, tool, ok := strings.Cut(q.Tool, "."); ok && q.Server == "" {
		q.Server, q.Tool = server, tool
	}
	q.Kinds, q.Statuses, q.MinRisk = q.kind, q.status, q.minRisk
	return nil
}

// momentOf parses a point in time, given as a duration before now or as a date.
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

func (a *app) printEntries(page retort.RecordPage) error {
	if a.asJSON {
		return a.printJSON(page)
	}
	a.warnAll(page.Warnings)
	if len(page.Entries) == 0 {
		fmt.Fprintln(a.stderr, "no entry matches")
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TIME\tKIND\tEXECUTION\tTOOL\tSTATUS\tRISK\tMS\t")
	for _, e := range page.Entries {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", e.At.Local().Format(time.DateTime), e.Kind, printable(
			cmp.Or(e.Execution, "-"),
		), printable(cmp.Or(toolOf(e), "-")),
			printable(cmp.Or(e.Status, "-")), riskOf(e), millisOf(e))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if page.Cursor != "" {
		fmt.Fprintf(a.stderr, "there is more: --cursor %s\n", page.Cursor)
	}
	return nil
}

func (a *app) warnAll(warnings []string) {
	for _, w := range warnings {
		a.warn(printable(w))
	}
}

func toolOf(e retort.RecordEntry) string {
	if e.Tool == "" {
		return e.Server
	}
	return e.Server + "." + e.Tool
}

func riskOf(e retort.RecordEntry) string {
	if e.Risk == nil {
		return "-"
	}
	return fmt.Sprint(*e.Risk)
}

func millisOf(e retort.RecordEntry) string {
	if e.Millis == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", e.Millis)
}

// printStory prints all entries of an execution.
func (a *app) printStory(page retort.RecordPage) error {
	if a.asJSON {
		return a.printJSON(page)
	}
	a.warnAll(page.Warnings)
	first := page.Entries[0]
	fmt.Fprintf(a.stdout, "%s  session %s", a.style(a.stdout, bold, printable(first.Execution)), printable(cmp.Or(first.Session, "-")))
	if first.Principal != "" {
		fmt.Fprintf(a.stdout, "  principal %s", printable(first.Principal))
	}
	fmt.Fprintln(a.stdout)
	for _, e := range page.Entries {
		parts := []string{
			e.At.Local().Format("2006-01-02 15:04:05.000"), a.style(a.stdout, bold, string(e.Kind)), printable(toolOf(e)),
			printable(e.Status),
		}
		if e.Risk != nil {
			parts = append(parts, "risk "+riskOf(e))
		}
		if e.Millis > 0 {
			parts = append(parts, millisOf(e)+" ms")
		}
		fmt.Fprintln(a.stdout, strings.Join(strings.Fields(strings.Join(parts, " ")), " "))
		a.indented(string(e.Facts))
		a.indented(pretty(e.Body))
		if e.Erased {
			fmt.Fprintln(a.stdout, a.style(a.stdout, dim, "    (erased)"))
		}
	}
	return nil
}

func (a *app) indented(text string) {
	if text == "" {
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintln(a.stdout, a.style(a.stdout, dim, "    "+printable(line)))
	}
}
