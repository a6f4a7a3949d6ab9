package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"retort"
	"retort/internal/core"
	"retort/internal/pipeline/approval"
)

func (a *app) approvals() *cobra.Command {
	c := &cobra.Command{Use: "approvals", Short: "What waits for a person, in the engines that run here"}
	c.AddCommand(a.listApprovals(), a.showApproval(), a.approve(), a.deny())
	return c
}

func (a *app) listApprovals() *cobra.Command {
	c := &cobra.Command{
		Use: "list", Short: "List what waits", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			found, err := a.waiting()
			if err != nil {
				return err
			}
			if a.asJSON {
				return a.printJSON(map[string]any{"approvals": found})
			}
			if len(found) == 0 {
				fmt.Fprintln(a.stderr, "nothing waits for a person")
				return nil
			}
			w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "ID\tEXPIRES IN\tCLIENT\tWANTS TO")
			for _, f := range found {
				fmt.Fprintf(
					w, "%s\t%s\t%s\t%s\n", printable(f.ID), time.Until(f.Expires).Round(time.Second), printable(f.Client),
					printable(f.ActionLine())+times(f.Count),
				)
			}
			return w.Flush()
		},
	}
	offerJSON(c)
	return c
}

// times describes how many equal questions are listed as one; "" for a single one.
func times(count int) string {
	if count < 2 {
		return ""
	}
	return fmt.Sprintf(", asked %d times", count)
}

func (a *app) showApproval() *cobra.Command {
	c := &cobra.Command{
		Use: "show ID", Short: "Show what waits in full", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := a.find(args[0])
			if err != nil {
				return err
			}
			if a.asJSON {
				return a.printJSON(f)
			}
			fmt.Fprint(a.stdout, printable(f.RenderText()))
			return nil
		},
	}
	offerJSON(c)
	return c
}

func (a *app) approve() *cobra.Command {
	var scope string
	c := &cobra.Command{
		Use: "approve ID", Short: "Show what waits and approve it, in a terminal", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			wanted, bad := core.ParseScope(scope)
			if bad != nil {
				return bad
			}
			f, err := a.find(args[0])
			if err != nil {
				return err
			}
			tty, err := terminal()
			if err != nil {
				return core.Errorf(core.KindPolicy, "approvals", "approval is given in a terminal, and this process has none").
					WithHint("run it in a terminal yourself: retort approvals approve %s", f.ID)
			}
			defer tty.Close()
			fmt.Fprintf(tty, "%s\nApprove it (%s)? Type yes: ", printable(f.RenderText()), scopes[wanted])
			line, err := readLine(cmd.Context(), tty)
			if err != nil || line != "yes" {
				return core.Errorf(core.KindPolicy, "approvals", "not approved; it still waits").WithHint("retort approvals deny %s denies it", f.ID)
			}
			if err := f.Decide(core.ApprovalAnswer{Approve: true, Scope: wanted}); err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, "approved", strings.Join(append([]string{f.ID}, f.Same...), " "))
			return nil
		},
	}
	c.Flags().StringVar(&scope, "scope", "once", "how far the yes goes: once, run or always")
	return c
}

func (a *app) deny() *cobra.Command {
	var note string
	c := &cobra.Command{
		Use: "deny ID", Short: "Say no", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := a.find(args[0])
			if err != nil {
				return err
			}
			if err := f.Decide(core.ApprovalAnswer{Note: note}); err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, "denied", strings.Join(append([]string{f.ID}, f.Same...), " "))
			return nil
		},
	}
	c.Flags().StringVar(&note, "note", "", "why not; the model is told")
	return c
}

var scopes = map[core.ApprovalScope]string{
	core.ScopeOnce: "this once", core.ScopeRun: "and calls of this tool for the rest of this run",
	core.ScopeAlways: "and always, with arguments of this shape",
}

func (a *app) waiting() ([]approval.FoundApproval, error) {
	found, err := retort.Pending(retort.Config{Files: a.configs, Home: a.home})
	if len(found) == 0 {
		return found, err
	}
	return found, nil
}

func (a *app) find(id string) (approval.FoundApproval, error) {
	found, err := a.waiting()
	if err != nil {
		return approval.FoundApproval{}, err
	}
	for _, f := range found {
		if f.ID == id || slices.Contains(f.Same, id) {
			return f, nil
		}
	}
	return approval.FoundApproval{}, core.Errorf(core.KindInvalidArguments, "approvals", "nothing waits with the id %q", id).
		WithHint("retort approvals list lists all waiting approvals; this one may have been answered or expired")
}

// terminal opens the controlling terminal of this process, even if its standard input and output are redirected. A
// process that a program or an agent started in the background has none.
func terminal() (*os.File, error) { return os.OpenFile("/dev/tty", os.O_RDWR, 0) }

// asked returns a context whose executions ask at the terminal, if any.
func (a *app) asked(ctx context.Context) context.Context {
	tty, err := terminal()
	if err != nil {
		return ctx
	}
	_ = tty.Close() // opened when somebody is asked
	var one sync.Mutex
	ctx = core.WithPeer(ctx, &core.ClientPeer{ID: "terminal", Pages: true, Ask: a.askPage(&one)})
	return core.WithChannel(core.WithBrowser(ctx, nil), func(ctx context.Context, q core.Approval) (core.ApprovalAnswer, bool) {
		one.Lock()
		defer one.Unlock()
		a.asking.Store(true)
		defer a.asking.Store(false)
		tty, err := terminal()
		if err != nil {
			return core.ApprovalAnswer{}, false
		}
		defer tty.Close()
		answer, ok := askAt(ctx, tty, q)
		answer.By = "terminal"
		return answer, ok
	})
}

// askPage returns a function that asks the user at the terminal to open a page for a server.
func (a *app) askPage(one *sync.Mutex) func(context.Context, core.ServerRequest) (json.RawMessage, *core.Error) {
	return func(ctx context.Context, q core.ServerRequest) (json.RawMessage, *core.Error) {
		one.Lock()
		defer one.Unlock()
		a.asking.Store(true)
		defer a.asking.Store(false)
		nobody := core.Errorf(core.KindPolicy, "approvals", "nobody can be asked: a terminal shows pages to open, and nothing else")
		tty, err := terminal()
		if err != nil || q.Page == "" {
			return nil, nobody
		}
		defer tty.Close()
		var said struct{ Message string }
		_ = json.Unmarshal(q.Params, &said) // what is no text is not shown
		fmt.Fprintf(tty, "\r\x1b[K\n%s wants you to open a page for its tool %s; it is not Retort that asks:\n%s\n\n%s\n",
			printable(q.Server), printable(q.Tool), printable(said.Message), printable(q.Page))
		answer, ok := choose(ctx, tty, "y = it is open · n = no", core.Approval{})
		switch {
		case !ok:
			return nil, nobody
		case answer.Approve:
			return json.RawMessage(`{"action":"accept"}`), nil
		}
		return json.RawMessage(`{"action":"decline"}`), nil
	}
}

// askAt shows a question and asks until the user has chosen an answer.
func askAt(ctx context.Context, tty *os.File, q core.Approval) (core.ApprovalAnswer, bool) {
	choices := "y = yes, once · n = no"
	if q.Login != "" {
		choices = "y = it is open · n = no"
	}
	if q.HasScopes() {
		choices = "y = yes, once · r = yes, and for the rest of this run · a = always, with arguments of this shape · n = no"
	}
	fmt.Fprintf(tty, "\r\x1b[K\n%s\n", printable(q.RenderText()))
	return choose(ctx, tty, choices, q)
}

// choose asks until the user types one of the choices.
func choose(ctx context.Context, tty *os.File, choices string, q core.Approval) (core.ApprovalAnswer, bool) {
	for {
		fmt.Fprintf(tty, "%s\n? ", choices)
		line, err := readLine(ctx, tty)
		if err != nil {
			return core.ApprovalAnswer{}, false
		}
		switch first, rest, _ := strings.Cut(line, " "); {
		case first == "y" || first == "yes":
			return core.ApprovalAnswer{Approve: true}, true
		case q.HasScopes() && first == "r":
			return core.ApprovalAnswer{Approve: true, Scope: core.ScopeRun}, true
		case q.HasScopes() && first == "a":
			return core.ApprovalAnswer{Approve: true, Scope: core.ScopeAlways}, true
		case first == "n" || first == "no":
			return core.ApprovalAnswer{Note: rest}, true
		}
	}
}

// readLine reads a line from a terminal and trims it.
func readLine(ctx context.Context, tty *os.File) (string, error) {
	stop := context.AfterFunc(ctx, func() { _ = tty.SetReadDeadline(time.Now()) })
	defer stop()
	var line []byte
	in := bufio.NewReaderSize(onebyone{tty}, 16)
	for {
		b, err := in.ReadByte()
		if err != nil {
			return "", cmp.Or(ctx.Err(), err)
		}
		if b == '\n' {
			return strings.TrimSpace(string(line)), nil
		}
		if len(line) < 4096 {
			line = append(line, b)
		}
	}
}

// onebyone reads one byte at a time, so that input after the line remains for the next reader.
type onebyone struct{ r io.Reader }

func (o onebyone) Read(p []byte) (int, error) { return o.r.Read(p[:min(1, len(p))]) }

// unresumed returns the Outcome of a command. If it is pending, it gets a hint that the execution ends with the
// command.
func unresumed(o core.Outcome) core.Outcome {
	if o.Status == core.StatusPendingApproval && o.Error != nil {
		o.Error = o.Error.WithHint(
			"run it in a terminal and answer there; or set approval.wait, and answer with retort approvals while it waits. The program ended here, without the call",
		)
	}
	return o
}
