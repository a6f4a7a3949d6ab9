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
		Use: "ask TASK", Short: "Carry out a task that you describe in words", Args: cobra.ArbitraryArgs,
		Long: `The command finds the tools for the task, and a model writes a program that uses these tools. Retort
checks and runs the program. If the program fails, the model gets the error and writes another program.
The setting model in retort.yaml chooses the model. If there is no model, the command prints the tool
definitions and the beginning of a program, with which you can write the program yourself.`,
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
	c.Flags().StringVar(&f.id, "id", "",
		"id of the job, which commands such as retort tasks show accept; without this flag, Retort generates an id")
	c.Flags().StringVar(&f.lang, "lang", "", "language of the program: ts, js or py")
	c.Flags().StringVar(&f.session, "session", "", "name of the session whose files and saved values the program uses")
	c.Flags().StringSliceVar(&f.tools, "tools", nil,
		"tools or servers that the program may use, separated by commas; the program can use no others")
	c.Flags().StringVar(&f.inputs, "inputs", "", "JSON object that the program receives as the variable inputs")
	c.Flags().StringVar(&f.code, "code", "",
		"file with the program for the task; no model writes a program then, and the program may use only the "+
			"tools in --tools")
	c.Flags().BoolVar(&f.queue, "queue", false,
		"put the task into the queue, and print the id of its job, which retort tasks accepts")
	c.Flags().IntVar(&f.priority, "priority", 0,
		"with --queue: priority of the job, from -10 to 10; jobs with a higher priority run first")
	c.Flags().DurationVar(&f.deadline, "deadline", 0,
		"with --queue: if the job has not ended after this time, Retort cancels the job; the default is one "+
			"day")
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
