package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"retort/internal/admin"
	"retort/internal/core"
	"retort/internal/engine"
)

// auditCommands defines the command "retort audit" and its subcommands.
type auditCommands struct{ *app }

func (a auditCommands) command() *cobra.Command {
	c := &cobra.Command{Use: "audit", Short: "Query, verify, export and erase the audit log"}
	c.AddCommand(a.queryCommand(), a.verifyCommand(), a.exportCommand(), a.reportCommand(), a.acceptClockCommand(), a.eraseCommand())
	return c
}

func (a auditCommands) eraseCommand() *cobra.Command {
	var what admin.EraseRequest
	c := &cobra.Command{
		Use:   "erase (--subject TEXT ... | --session NAME)",
		Short: "Delete the values behind tokens, of a person or of a session, for good", Args: cobra.NoArgs,
		Long: `Destroys the keys with which the values behind tokens are encrypted. The values cannot be restored.

With --subject, the values of a person are erased in all sessions. Give all of the person's addresses, numbers
and names. Files that programs have written are not changed.

With --session, the values of a session are erased. Its files and saved values are erased, too.

In the audit log and its archives, the code, the arguments and the messages become unreadable for all executions
that mention the person or belong to the session. The log still proves what was done, when, with which tool, and
how it ended.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(what.Subjects) == 0 && what.Session == "" {
				return core.Errorf(
					core.KindInvalidArguments, "audit.erase", "nothing to erase was given",
				).WithHint("give a person's data with --subject, or a session with --session")
			}
			erased, err := admin.Erase(engine.Config{Files: a.configs, Home: a.home}, what)
			if err != nil {
				return err
			}
			if a.asJSON {
				return a.printJSON(erased)
			}
			fmt.Fprintf(a.stdout, "values erased: %d, sessions that contained them: %d\n", erased.Values, erased.Sessions)
			if erased.Recorded > 0 {
				fmt.Fprintf(a.stdout, "executions and sessions whose recorded code, arguments and messages are erased: %d\n", erased.Recorded)
			}
			if erased.Files > 0 {
				fmt.Fprintf(a.stdout, "files erased: %d\n", erased.Files)
			}
			return nil
		},
	}
	c.Flags().StringArrayVar(
		&what.Subjects, "subject", nil,
		"an address, number or name of the person; case, spaces and punctuation are ignored",
	)
	c.Flags().StringVar(&what.Session, "session", "", "everything that belongs to this session")
	c.Flags().StringVar(&what.Principal, "principal", "", "principal of the session")
	offerJSON(c)
	c.MarkFlagsMutuallyExclusive("subject", "session")
	return c
}
