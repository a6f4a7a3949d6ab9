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
		Short: "Permanently delete the personal data of a person or of a session", Args: cobra.NoArgs,
		Long: `Retort encrypts the real values behind tokens such as [EMAIL_1]. The command destroys the keys of this
encryption, and nobody can restore the values afterwards.

With --subject, the command erases the values of a person in all sessions. Repeat --subject for each
address, number and name of the person. The command does not change files that programs have written.

With --session, the command erases the values of a session. It also erases the files and the saved
values of this session.

In the audit log and its archives, the code, the arguments and the messages of an execution become
unreadable if the execution mentions the person or belongs to the session. The audit log still proves
which tools were called, when, and how each call ended.`,
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
		"e-mail address, phone number, name or other value of the person; the command ignores case, spaces and punctuation",
	)
	c.Flags().StringVar(&what.Session, "session", "", "name of the session whose data the command erases")
	c.Flags().StringVar(&what.Principal, "principal", "", "user to whom the session belongs")
	offerJSON(c)
	c.MarkFlagsMutuallyExclusive("subject", "session")
	return c
}
