package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"retort/internal/admin"
	"retort/internal/base/seal"
	"retort/internal/core"
	"retort/internal/engine"
)

// exportFlags holds the flags of an audit log export.
type exportFlags struct {
	queryFlags
	admin.AuditExport
	output, cursor string
}

func (a auditCommands) exportCommand() *cobra.Command {
	var x exportFlags
	c := &cobra.Command{
		Use: "export --format jsonl|ocsf|cef|csv", Short: "Export the audit log for other systems", Args: cobra.NoArgs,
		Long: `The command writes the entries of the audit log, beginning with the oldest. The entries of each Retort
process stay in their order. The formats are:
  jsonl  the entries themselves, one JSON object in each line
  ocsf   events of the Open Cybersecurity Schema Framework 1.2.0, one JSON object in each line
  cef    events in the Common Event Format, one event in each line
  csv    a table for spreadsheets; text that a spreadsheet would take for a formula is escaped
An export contains code, arguments and messages only with --bodies.

With --cursor FILE, the command stores the position of the last exported entry in FILE, and the next
export with this file contains only newer entries. If you export every hour, each entry is exported
once. If somebody kills the command before it has stored the position, the next export contains the same
entries again. Without --cursor, the command prints the position on standard error. To continue at this
position, pass it with --after. The position also counts entries that the filters leave out.

The command writes the file in --output completely or not at all.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := x.completeQuery(time.Now()); err != nil {
				return err
			}
			if x.execution != "" {
				x.Executions = []string{x.execution}
			}
			x.AuditExport.Filter, x.AuditExport.Text = x.AuditQuery.Filter, x.AuditQuery.Text
			return a.exportAuditLog(cmd, &x)
		},
	}
	x.addFilterFlags(c)
	c.Flags().StringVar(&x.Format, "format", "jsonl", "format of the export: jsonl, ocsf, cef or csv")
	c.Flags().StringVar(&x.output, "output", "", "write the output to this file instead of standard output")
	c.Flags().BoolVar(&x.Bodies, "bodies", false, "also export the code, arguments and messages of entries")
	c.Flags().StringVar(&x.After, "after", "",
		"export only entries after this position, which an earlier export printed")
	c.Flags().StringVar(&x.cursor, "cursor", "",
		"file that stores the position of the last exported entry; the command exports only newer entries")
	c.MarkFlagsMutuallyExclusive("after", "cursor")
	return c
}

func (a auditCommands) exportAuditLog(cmd *cobra.Command, x *exportFlags) error {
	unlock, err := x.lockCursor()
	if err != nil {
		return err
	}
	defer unlock()
	say, done := a.startProgress("exporting")
	defer done()
	x.Progress = func(n int64) { say(groupThousands(int(n)) + " entries") }
	var out admin.ExportResult
	err = writeFileOrStdout(a.stdout, x.output, x.cursor != "", func(w io.Writer) (err error) {
		out, err = admin.ExportAudit(cmd.Context(), engine.Config{Files: a.configs, Home: a.home}, w, x.AuditExport)
		return err
	})
	done()
	if err != nil {
		return err
	}
	a.printWarnings(out.Warnings)
	if x.cursor == "" {
		fmt.Fprintf(a.stderr, "%s entries; cursor: %s\n", groupThousands(int(out.Entries)), out.Cursor)
		return nil
	}
	if err := seal.ReplaceFile(x.cursor, []byte(out.Cursor+"\n")); err != nil {
		return core.Errorf(
			core.KindInternal, "audit.export",
			"the cursor cannot be stored, so the next export will repeat this one: %w", err,
		)
	}
	fmt.Fprintf(a.stderr, "%s entries\n", groupThousands(int(out.Entries)))
	return nil
}

// lockCursor reads the position of the previous export from the cursor file. It also locks the file against other
// exports until unlock is called.
func (x *exportFlags) lockCursor() (unlock func(), err error) {
	if x.cursor == "" {
		return func() {}, nil
	}
	unlock, err = seal.Lock(x.cursor+".lock", time.Second)
	if err != nil {
		return nil, core.Errorf(
			core.KindInvalidArguments, "audit.export", "another export uses the cursor %s, or it cannot be locked: %w",
			x.cursor, err,
		).WithHint("wait until the other export has ended")
	}
	text, err := os.ReadFile(x.cursor)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		unlock()
		return nil, core.Errorf(core.KindInvalidArguments, "audit.export", "%w", err)
	}
	x.After = strings.TrimSpace(string(text))
	return unlock, nil
}

// writeFileOrStdout passes standard output to write if path is empty. Otherwise it writes the file at path completely
// or not at all. If isNew is true, it fails if the file already exists.
func writeFileOrStdout(stdout *os.File, path string, isNew bool, write func(io.Writer) error) error {
	if path == "" {
		return write(stdout)
	}
	failed := func(err error) error {
		return core.Errorf(
			core.KindInvalidArguments, "audit.export", "%s cannot be written: %w", path, err,
		).WithHint("name a file in an existing folder that you can write to")
	}
	if _, err := os.Lstat(path); err == nil && isNew {
		return core.Errorf(core.KindInvalidArguments, "audit.export", "%s already exists and would be overwritten", path).
			WithHint("give each output file a different name, for example with the date")
	}
	var own error
	err := seal.ReplaceWith(path, seal.ReplaceOptions{Temporary: ".retort-export-*"}, func(w io.Writer) error {
		own = write(w)
		return own
	})
	if err != nil && own == nil {
		return failed(err)
	}
	return err
}
