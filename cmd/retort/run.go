package main

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/engine"
)

// runFlags holds the flags of retort run.
type runFlags struct {
	code, lang, sandbox, runtime, session string
	timeout                               time.Duration
	dry, show                             bool
	noCache, queue                        bool
	care                                  careFlags
	priority                              int
	deadline                              time.Duration
}

// sandboxUsage returns the help text of the flag --sandbox, which lists the names of the sandbox backends.
func sandboxUsage() string {
	names := config.SandboxNames()
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// runCommands defines the command "retort run".
type runCommands struct{ *app }

func (a runCommands) command() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use: "run FILE | - | -e CODE", Short: "Run a program, and print its result", Args: cobra.MaximumNArgs(1),
		Example: "  retort run -e 'return (await github.listIssues({owner: \"o\", repo: \"r\"})).length'",
		RunE: func(cmd *cobra.Command, args []string) error {
			req, err := a.buildRequest(f, args)
			if err != nil {
				return err
			}
			if f.show && !term.IsTerminal(int(a.stdout.Fd())) {
				return core.Errorf(
					core.KindPolicy, "run", "--show-pii works only in the user's own terminal, and this output is not a terminal",
				).WithHint("leave it out")
			}
			if f.queue {
				if f.show || f.dry {
					return core.Errorf(core.KindInvalidArguments, "run", "--queue cannot be combined with --dry-run or --show-pii")
				}
				return taskCommands(a).enqueueProgram(req, f)
			}
			e, err := a.openEngine(cmd.Context(), func(c *engine.Config) { c.Limits.Timeout, c.Reserve = f.timeout, engine.ReserveOne })
			if err != nil {
				return err
			}
			defer e.Close()
			o := a.executeWithProgress(cmd.Context(), e, req)
			if f.show {
				if o, err = e.Show(req.Session, o); err != nil {
					return err
				}
			}
			if f.dry && !a.asJSON && len(o.Approvals) > 0 {
				return a.afterDryRun(cmd.Context(), e, o)
			}
			return a.printOutcome(o)
		},
	}
	f.addTo(c.Flags())
	offerJSON(c)
	return c
}

// addTo defines the flags of "retort run".
func (f *runFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVarP(&f.code, "eval", "e", "", "run this text as the program")
	flags.StringVar(&f.lang, "lang", "",
		"language of the program: ts, js or py; without this flag, Retort detects the language from the file's "+
			"name or the syntax")
	flags.StringVar(&f.sandbox, "sandbox", "", sandboxUsage())
	flags.StringVar(&f.runtime, "runtime", "",
		"runtime for a TypeScript or JavaScript program: quickjs, node, bun or deno")
	flags.StringVar(&f.session, "session", "", "name of the session whose files and saved values the program uses")
	flags.DurationVar(&f.timeout, "timeout", 0,
		"time limit of the program; time in which the program waits for approval does not count")
	flags.BoolVar(&f.show, "show-pii", false,
		"show real personal values instead of tokens such as [EMAIL_1]; only possible in a terminal")
	flags.BoolVar(&f.queue, "queue", false,
		"put the program into the queue, and print the id of its job, which retort tasks accepts")
	flags.IntVar(&f.priority, "priority", 0,
		"with --queue: priority of the job, from -10 to 10; jobs with a higher priority run first")
	flags.DurationVar(&f.deadline, "deadline", 0,
		"with --queue: if the job has not ended after this time, Retort cancels the job")
	flags.BoolVar(&f.noCache, "no-cache", false,
		"make every call of the program, even if the cache contains its result")
	f.care.addTo(flags)
	flags.BoolVar(&f.dry, "dry-run", false,
		"run the program, but send only calls that read; then list the other calls, and ask in a terminal whether "+
			"to make them")
}

// afterDryRun shows the result of a dry run. If there is a terminal, it asks whether to run the program with the
// listed effects.
func (a runCommands) afterDryRun(ctx context.Context, e *engine.Engine, o core.Outcome) error {
	o.Warnings = o.Warnings[:len(o.Warnings)-1] // how to approve it: this engine ends here
	asking := a.withTerminalApproval(ctx)
	if core.ChannelOf(asking) == nil {
		o.Approvals = nil
		a.printWarning("no call with effects was made; in a terminal, retort run --dry-run asks whether to run the program with exactly these effects")
		return a.printOutcome(o)
	}
	shown := o
	shown.Effects = nil // in the question
	if err := a.printOutcome(shown); err != nil {
		return err
	}
	return a.printOutcome(e.Resume(asking, o.ExecutionID, approvalPatience))
}

// approvalPatience limits the wait for a person's answer. It is longer than the maximum of the setting
// approval.timeout, so that the setting determines the limit in practice.
const approvalPatience = 31 * 24 * time.Hour

// maxProgramBytes limits the size of a program that is read from a file or standard input. The check of the program
// applies a lower limit later.
const maxProgramBytes = 16 << 20

func (a runCommands) buildRequest(f runFlags, args []string) (core.ExecutionRequest, error) {
	req := core.ExecutionRequest{
		Session: f.session, Sandbox: f.sandbox, Runtime: f.runtime, Client: "retort run", DryRun: f.dry,
		NoCache: f.noCache,
	}
	if err := f.care.applyTo(&req); err != nil {
		return req, err
	}
	given := 0
	if f.code != "" {
		given, req.Code = given+1, f.code
	}
	if len(args) == 1 {
		text, err := a.readProgram(args[0])
		if err != nil {
			return req, err
		}
		given, req.Code = given+1, text
		if args[0] != "-" {
			req.Name = filepath.Base(args[0])
		}
	}
	if given != 1 {
		return req, core.Errorf(core.KindInvalidArguments, "run", "give one program: a file, - for standard input, or -e CODE")
	}
	lang, err := parseLanguage(f.lang, req.Name)
	req.Language = lang
	return req, err
}
