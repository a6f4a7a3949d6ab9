package main

import (
	"context"
	"fmt"
	"os"
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
	c := &cobra.Command{Use: "approvals", Short: "List and answer questions for approval from the Retort processes on this machine"}
	c.AddCommand(a.listApprovalsCommand(), a.showApprovalCommand(), a.approveCommand(), a.denyCommand())
	return c
}

func (a approvalCommands) listApprovalsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "list", Short: "List the questions for approval that wait for an answer", Args: cobra.NoArgs,
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
					replaceControls(f.ActionLine())+askedTimesText(f.Approval),
				)
			}
			return w.Flush()
		},
	}
	offerJSON(c)
	return c
}

// askedTimesText returns text such as ", asked 3 times" for an entry in the list of approvals that stands for several
// equal programs. It returns "" if the entry stands for a single program. It also returns "" if the entry stands for
// calls, because ActionLine counts those.
func askedTimesText(a core.Approval) string {
	if a.Count < 2 || a.IsCall() {
		return ""
	}
	return fmt.Sprintf(", asked %d times", a.Count)
}

func (a approvalCommands) showApprovalCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "show ID", Short: "Show all details of a question for approval", Args: cobra.ExactArgs(1),
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
	var calls int
	c := &cobra.Command{
		Use: "approve ID", Short: "Show a question for approval in the terminal, and approve the call", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			wanted, bad := core.ParseScope(scope)
			if bad != nil {
				return bad
			}
			if calls < 0 || calls > 0 && wanted != core.ScopeRun {
				return core.Errorf(core.KindInvalidArguments, "approvals", "--calls needs a positive number and --scope run")
			}
			f, err := a.findApproval(args[0])
			if err != nil {
				return err
			}
			if shown := f.LeastCalls(); calls > 0 && calls < shown {
				return core.Errorf(core.KindInvalidArguments, "approvals", "--calls is %d but must be at least %d, because the request lists %d calls of a tool", calls, shown, shown)
			}
			if scope != "" && !slices.Contains(f.Scopes(), wanted) && f.Start {
				return core.Errorf(core.KindInvalidArguments, "approvals", "--scope: possible for this request are %s", core.JoinScopes(f.Scopes()))
			}
			tty, err := openTerminal()
			if err != nil {
				return core.Errorf(core.KindPolicy, "approvals", "approval needs a terminal, and this process has none").
					WithHint("run it in a terminal yourself: retort approvals approve %s", f.ID)
			}
			defer tty.Close()
			if !a.confirmApproval(cmd.Context(), tty, replaceControls(f.RenderText()), scopeText(f.Question, wanted, calls)) {
				return core.Errorf(core.KindPolicy, "approvals", "not approved; the request still waits").WithHint("retort approvals deny %s denies it", f.ID)
			}
			if err := f.SendAnswer(core.ApprovalAnswer{Approve: true, Scope: wanted, Calls: calls}); err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, "approved", strings.Join(append([]string{f.ID}, f.Same...), " "))
			return nil
		},
	}
	c.Flags().StringVar(&scope, "scope", "once",
		"scope of the approval: once, run or always; if the question was asked before the program starts, each is "+
			"also possible")
	c.Flags().IntVar(&calls, "calls", 0,
		"with --scope run: approve at most this number of calls of the tool; the calls in the question count, too")
	return c
}

// Limits on the part of a question that is shown at first. The rest is shown when the user asks for it.
const (
	maxQuestionLines = 60
	maxQuestionLine  = 600 // maximum characters per line
)

// confirmApproval shows a question and reports whether the user approves it. It shows only part of a long question,
// and the whole question if the user types v.
func (a approvalCommands) confirmApproval(ctx context.Context, tty *os.File, question, scope string) bool {
	shown, whole := shortenQuestion(question)
	for {
		more := ""
		if !whole {
			more = fmt.Sprintf("This is only a part of the request: it has %d lines and %d bytes. Type v to view all of it.\n", strings.Count(question, "\n")+1, len(question))
		}
		fmt.Fprintf(tty, "%s\n%sApprove it (%s)? Type y or yes: ", shown, more, scope)
		line, err := readLine(ctx, tty)
		switch {
		case err != nil:
			return false
		case line == "v" && !whole:
			shown, whole = question, true
			continue
		}
		return line == "yes" || line == "y"
	}
}

// shortenQuestion returns the first lines of a question, each shortened to maxQuestionLine characters. whole reports
// whether that is the whole question.
func shortenQuestion(question string) (shown string, whole bool) {
	lines := strings.Split(question, "\n")
	whole = len(lines) <= maxQuestionLines
	lines = lines[:min(len(lines), maxQuestionLines)]
	for i, line := range lines {
		if runes := []rune(line); len(runes) > maxQuestionLine {
			lines[i], whole = string(runes[:maxQuestionLine])+fmt.Sprintf("… (%d characters more)", len(runes)-maxQuestionLine), false
		}
	}
	return strings.Join(lines, "\n"), whole
}

func (a approvalCommands) denyCommand() *cobra.Command {
	var note string
	c := &cobra.Command{
		Use: "deny ID", Short: "Deny the call that a question for approval is about", Args: cobra.ExactArgs(1),
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
	c.Flags().StringVar(&note, "note", "", "reason for the denial, which the model can read")
	return c
}

// scopeText describes the scope of an approval of q, with its limit on calls if that is not 0.
func scopeText(q core.Question, scope core.ApprovalScope, calls int) string {
	text, of := scopeTexts[scope], ""
	if q.Start {
		text, of = q.ScopeTitle(scope), " of each tool"
	}
	if calls > 0 {
		return fmt.Sprintf("%s, at most %d calls%s", text, calls, of)
	}
	return text
}

var scopeTexts = map[core.ApprovalScope]string{
	core.ScopeOnce: "this once", core.ScopeRun: "and all calls of this tool for the rest of this run",
	core.ScopeEach:   "start the program, and ask me about each call",
	core.ScopeAlways: "and always, for arguments with the same names and types",
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
