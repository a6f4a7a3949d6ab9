package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"retort/internal/core"
	"retort/internal/engine"
)

// askFlags holds the flags of retort ask.
type askFlags struct {
	id, lang, session, inputs, code string
	tools                           []string
	queue                           bool
	priority                        int
	deadline                        time.Duration
}

// askCommands defines the command "retort ask".
type askCommands struct{ *app }

func (a askCommands) command() *cobra.Command {
	var f askFlags
	c := &cobra.Command{
		Use: "ask TASK", Short: "Do a task that is described in words", Args: cobra.ArbitraryArgs,
		Long: "Finds the tools for a task, lets a model write a program that uses them, checks it, runs it, and gives\n" +
			"it back to the model if it fails. The setting model in retort.yaml chooses the model; without one,\nask prints what is needed to write the program.",
		Example: "  retort ask 'put the number of words of document abc123 into the notes of record 00Q5f000001abcXYZ'",
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.taskOf(f, args)
			if err != nil {
				return err
			}
			if f.queue {
				return a.enqueueTask(t, f)
			}
			e, err := a.openEngine(cmd.Context(), func(c *engine.Config) { c.Reserve = engine.ReserveOne })
			if err != nil {
				return err
			}
			defer e.Close()
			say, done := a.startProgress("asking")
			defer done()
			t.Progress = func(s engine.TaskStep) { say(fmt.Sprintf("%s: %s", s.Phase, s.Text)) }
			o := withResumeHint(e.ExecuteTask(a.withTerminalApproval(cmd.Context()), t))
			done()
			return a.printTask(o)
		},
	}
	c.Flags().StringVar(&f.id, "id", "", "id for the job, as used by retort tasks show; generated if not given")
	c.Flags().StringVar(&f.lang, "lang", "", "language of the program: ts, js or py")
	c.Flags().StringVar(&f.session, "session", "", "session whose workspace the program uses")
	c.Flags().StringSliceVar(&f.tools, "tools", nil, "the only tools or servers that the program may use, separated by commas")
	c.Flags().StringVar(&f.inputs, "inputs", "", "a JSON object that the program receives as inputs")
	c.Flags().StringVar(&f.code, "code", "", "a file with the program: no model writes one, and the program may use only the tools in --tools")
	c.Flags().BoolVar(&f.queue, "queue", false, "put the agent task into the queue and print the id of its job; see retort tasks")
	c.Flags().IntVar(&f.priority, "priority", 0, "with --queue: -10 to 10, higher numbers run sooner")
	c.Flags().DurationVar(&f.deadline, "deadline", 0, "with --queue: time from now after which the job is cancelled; a day if not given")
	offerJSON(c)
	return c
}

// enqueueTask adds the task to the job queue instead of performing it immediately.
func (a askCommands) enqueueTask(t engine.Task, f askFlags) error {
	j, err := engine.TaskJob(t)
	if err != nil {
		return err
	}
	return taskCommands(a).enqueueJob(j, runFlags{priority: f.priority, deadline: f.deadline})
}

func (a askCommands) taskOf(f askFlags, args []string) (engine.Task, error) {
	t := engine.Task{ID: f.id, Description: strings.Join(args, " "), RequiredTools: f.tools, Session: f.session, Client: "retort ask"}
	if f.inputs != "" {
		if t.Inputs = json.RawMessage(f.inputs); !json.Valid(t.Inputs) {
			return t, core.Errorf(core.KindInvalidArguments, "ask", "--inputs is not valid JSON")
		}
	}
	name := ""
	if f.code != "" {
		text, err := a.readProgram(f.code)
		if err != nil {
			return t, err
		}
		name, t.Code = filepath.Base(f.code), text
	}
	lang, err := parseLanguage(f.lang, name)
	t.Language = lang
	return t, err
}

// printTask prints the Outcome of a task, together with the program that the model wrote. If no model is configured,
// it prints the skeleton and the tool definitions from which the user can write the program.
func (a askCommands) printTask(o core.Outcome) error {
	if a.asJSON {
		return taskExitError(o, a.printOutcome(o))
	}
	if o.TaskContext != nil {
		fmt.Fprint(a.stdout, a.escapeForTerminal(a.stdout, o.Skeleton))
		for _, d := range o.Definitions {
			fmt.Fprintf(a.stderr, "%s\n", replaceControls(d.Definition))
		}
	}
	if o.Program != "" {
		fmt.Fprintln(a.stderr, a.styleText(a.stderr, dim, replaceControls(strings.TrimRight(o.Program, "\n"))))
	}
	for _, c := range o.Calls {
		a.printWarning(replaceControls(fmt.Sprintf("already called: %s.%s(%s)", c.Server, c.Tool, c.Arguments)))
	}
	err := a.printOutcome(o)
	if m := o.Stats.Model; m != nil {
		about := ""
		if m.Estimated {
			about = "about "
		}
		line := fmt.Sprintf(
			"%s: %d programs, %s%s tokens read, %s written", m.Name, o.Attempts, about, groupThousands(m.InputTokens),
			groupThousands(m.OutputTokens),
		)
		if m.Cost > 0 {
			line += fmt.Sprintf(", %s%.4f", m.Currency, m.Cost)
		}
		fmt.Fprintln(a.stderr, a.styleText(a.stderr, dim, replaceControls(line)))
	}
	return taskExitError(o, err)
}

// taskExitError returns the error of the command for its exit code. Usually this is err. If the Outcome has a
// TaskContext because no model is configured, it is the exit code for a configuration error.
func taskExitError(o core.Outcome, err error) error {
	if o.TaskContext != nil {
		return exitError(exitUsage)
	}
	return err
}
