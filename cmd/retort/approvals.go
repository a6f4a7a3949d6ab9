package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"retort/internal/admin"
	"retort/internal/core"
	"retort/internal/engine"
	"retort/internal/pipeline/approval"
)

// approvalCommands defines the command "retort approvals" and its subcommands.
type approvalCommands struct{ *app }

func (a approvalCommands) command() *cobra.Command {
	c := &cobra.Command{Use: "approvals", Short: "List and answer approval requests of the engines on this machine"}
	c.AddCommand(a.listApprovalsCommand(), a.showApprovalCommand(), a.approveCommand(), a.denyCommand())
	return c
}

func (a approvalCommands) listApprovalsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "list", Short: "List approval requests", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			found, err := a.listWaiting()
			if err != nil {
				return err
			}
			if a.asJSON {
				return a.printJSON(map[string]any{"approvals": found})
			}
			if len(found) == 0 {
				fmt.Fprintln(a.stderr, "no approval request is waiting")
				return nil
			}
			w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "ID\tEXPIRES IN\tCLIENT\tWANTS TO")
			for _, f := range found {
				fmt.Fprintf(
					w, "%s\t%s\t%s\t%s\n", replaceControls(f.ID), time.Until(f.Expires).Round(time.Second), replaceControls(f.Client),
					replaceControls(f.ActionLine())+askedTimesText(f.Count),
				)
			}
			return w.Flush()
		},
	}
	offerJSON(c)
	return c
}

// askedTimesText returns text that says how many equal questions one entry of the list stands for. It returns "" if
// count is less than 2.
func askedTimesText(count int) string {
	if count < 2 {
		return ""
	}
	return fmt.Sprintf(", asked %d times", count)
}

func (a approvalCommands) showApprovalCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "show ID", Short: "Show an approval request in full", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := a.findApproval(args[0])
			if err != nil {
				return err
			}
			if a.asJSON {
				return a.printJSON(f)
			}
			fmt.Fprint(a.stdout, replaceControls(f.RenderText()))
			return nil
		},
	}
	offerJSON(c)
	return c
}

func (a approvalCommands) approveCommand() *cobra.Command {
	var scope string
	c := &cobra.Command{
		Use: "approve ID", Short: "Show approval requests and answer them, in a terminal", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			wanted, bad := core.ParseScope(scope)
			if bad != nil {
				return bad
			}
			f, err := a.findApproval(args[0])
			if err != nil {
				return err
			}
			tty, err := openTerminal()
			if err != nil {
				return core.Errorf(core.KindPolicy, "approvals", "approval needs a terminal, and this process has none").
					WithHint("run it in a terminal yourself: retort approvals approve %s", f.ID)
			}
			defer tty.Close()
			fmt.Fprintf(tty, "%s\nApprove it (%s)? Type yes: ", replaceControls(f.RenderText()), scopeTexts[wanted])
			line, err := readLine(cmd.Context(), tty)
			if err != nil || line != "yes" {
				return core.Errorf(core.KindPolicy, "approvals", "not approved; the request still waits").WithHint("retort approvals deny %s denies it", f.ID)
			}
			if err := f.SendAnswer(core.ApprovalAnswer{Approve: true, Scope: wanted}); err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, "approved", strings.Join(append([]string{f.ID}, f.Same...), " "))
			return nil
		},
	}
	c.Flags().StringVar(&scope, "scope", "once", "scope of the approval: once, run or always")
	return c
}

func (a approvalCommands) denyCommand() *cobra.Command {
	var note string
	c := &cobra.Command{
		Use: "deny ID", Short: "Say no", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := a.findApproval(args[0])
			if err != nil {
				return err
			}
			if err := f.SendAnswer(core.ApprovalAnswer{Note: note}); err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, "denied", strings.Join(append([]string{f.ID}, f.Same...), " "))
			return nil
		},
	}
	c.Flags().StringVar(&note, "note", "", "reason for the denial; the model sees it")
	return c
}

var scopeTexts = map[core.ApprovalScope]string{
	core.ScopeOnce: "this once", core.ScopeRun: "and all calls of this tool for the rest of this run",
	core.ScopeAlways: "and always, for arguments of this shape",
}

func (a approvalCommands) listWaiting() ([]approval.FoundApproval, error) {
	found, err := admin.ListApprovals(engine.Config{Files: a.configs, Home: a.home})
	if len(found) == 0 {
		return found, err
	}
	slices.SortStableFunc(found, func(one, other approval.FoundApproval) int { return other.Danger() - one.Danger() })
	return found, nil
}

func (a approvalCommands) findApproval(id string) (approval.FoundApproval, error) {
	found, err := a.listWaiting()
	if err != nil {
		return approval.FoundApproval{}, err
	}
	for _, f := range found {
		if f.ID == id || slices.Contains(f.Same, id) {
			return f, nil
		}
	}
	return approval.FoundApproval{}, core.Errorf(core.KindInvalidArguments, "approvals", "no approval request has the id %q", id).
		WithHint("run retort approvals list to see all waiting requests; this one may have been answered or expired")
}
