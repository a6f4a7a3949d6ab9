package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"retort/internal/admin"
	"retort/internal/core"
	"retort/internal/engine"
)

// taskCommands defines the command "retort tasks" and its subcommands.
type taskCommands struct{ *app }

func (a taskCommands) command() *cobra.Command {
	c := &cobra.Command{Use: "tasks", Short: "List and manage the jobs in the queue"}
	c.AddCommand(a.listTasksCommand(), a.showTaskCommand(), a.cancelTaskCommand(), a.waitTaskCommand())
	return c
}

func (a taskCommands) queueConfig() engine.Config {
	return engine.Config{Files: a.configs, Home: a.home}
}

func (a taskCommands) listTasksCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "list", Short: "List jobs in the order in which they were added to the queue", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			list, err := admin.ListJobs(a.queueConfig())
			if err != nil {
				return err
			}
			if a.asJSON {
				list.Tasks = append([]engine.JobState{}, list.Tasks...)
				for i := range list.Tasks {
					list.Tasks[i].Outcome = nil
				}
				return a.printJSON(list)
			}
			for _, w := range list.Warnings {
				a.printWarning(w)
			}
			return a.printTasks(list)
		},
	}
	offerJSON(c)
	return c
}

func (a taskCommands) printTasks(list admin.JobList) error {
	if len(list.Tasks) == 0 {
		fmt.Fprintln(a.stderr, "the queue has no jobs")
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tSTATUS\tKIND\tWHO\tSUBMITTED\tTITLE")
	waiting := 0
	for _, t := range list.Tasks {
		status := string(t.Status)
		if t.Position > 0 {
			status = fmt.Sprintf("%s (%d.)", status, t.Position)
		}
		if t.Status == core.TaskQueued {
			waiting++
		}
		fmt.Fprintf(
			w, "%s\t%s\t%s\t%s\t%s ago\t%s\n", t.ID, status, replaceControls(t.Kind), replaceControls(t.Principal),
			time.Since(t.Submitted).Round(time.Second), replaceControls(t.Title),
		)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if waiting > 0 && !list.Attended {
		a.printWarning("no engine is working on the queue: start retort serve, or run one job with retort tasks wait ID")
	}
	return nil
}

func (a taskCommands) showTaskCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "show ID", Short: "Show a job and its result", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := admin.FindJob(a.queueConfig(), args[0])
			if err != nil {
				return err
			}
			if a.asJSON {
				return a.printJSON(t)
			}
			a.describeTask(t)
			return nil
		},
	}
	offerJSON(c)
	return c
}

func (a taskCommands) describeTask(t engine.JobState) {
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(a.stdout, "%-10s %s\n", name, replaceControls(value))
		}
	}
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.Local().Format(time.DateTime)
	}
	line("task", t.ID)
	line("id", t.Name)
	line("status", string(t.Status))
	line("kind", t.Kind)
	line("title", t.Title)
	line("principal", t.Principal)
	line("session", t.Session)
	line("client", t.Client)
	line("submitted", at(t.Submitted))
	line("begun", at(t.Begun))
	line("ended", at(t.Ended))
	if !t.Status.HasEnded() {
		line("deadline", at(t.Deadline))
	}
	if t.Outcome != nil {
		_ = a.printOutcome(*t.Outcome) // the exit code is for who waits
	}
}

func (a taskCommands) cancelTaskCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "cancel ID", Short: "Cancel a job that has not ended", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := admin.CancelJob(cmd.Context(), a.queueConfig(), args[0])
			if err != nil {
				return err
			}
			if a.asJSON {
				return a.printJSON(t)
			}
			if t.Ended.IsZero() {
				fmt.Fprintln(a.stdout, "cancellation requested:", t.ID+" (the job has not ended yet)")
				return nil
			}
			fmt.Fprintln(a.stdout, t.Status, t.ID)
			return nil
		},
	}
	offerJSON(c)
	return c
}

func (a taskCommands) waitTaskCommand() *cobra.Command {
	var patience time.Duration
	c := &cobra.Command{
		Use: "wait ID", Short: "Wait until a job ends, and print its result", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := admin.FindJob(a.queueConfig(), args[0])
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			if patience > 0 {
				var done context.CancelFunc
				ctx, done = context.WithTimeout(ctx, patience)
				defer done()
			}
			t, err := a.awaitJob(ctx, found.ID)
			if err != nil {
				return err
			}
			if t.Outcome == nil {
				return core.Errorf(
					core.KindUpstreamTimeout, "tasks", "the job has not ended: %s", t.Status,
				).WithHint("run retort tasks show %s to see when it has ended", t.ID)
			}
			return a.printOutcome(*t.Outcome)
		},
	}
	offerJSON(c)
	c.Flags().DurationVar(&patience, "timeout", 0,
		"maximum time that the command waits; without this flag, the command waits until the job ends")
	return c
}

func (a taskCommands) awaitJob(ctx context.Context, id string) (engine.JobState, error) {
	_, done := a.startProgress("waiting for the job")
	defer done()
	list, err := admin.ListJobs(a.queueConfig())
	if err != nil {
		return engine.JobState{}, err
	}
	for _, t := range list.Tasks {
		if t.ID == id && t.Status.HasEnded() {
			return t, nil
		}
	}
	e, err := a.openEngine(context.WithoutCancel(ctx), nil)
	if err != nil {
		return engine.JobState{}, err
	}
	defer e.Close()
	if err := e.WorkOn(id); err != nil {
		return engine.JobState{}, err
	}
	return e.WaitTask(ctx, id)
}

// enqueueProgram adds a program to the job queue instead of running it immediately.
func (a taskCommands) enqueueProgram(req core.ExecutionRequest, f runFlags) error {
	req.Limits.Timeout = f.timeout
	j, err := engine.ProgramJob(req)
	if err != nil {
		return err
	}
	return a.enqueueJob(j, f)
}

func (a taskCommands) enqueueJob(j engine.Job, f runFlags) error {
	j.Priority, j.Deadline = f.priority, f.deadline
	t, attended, err := admin.SubmitJob(a.queueConfig(), j)
	if err != nil {
		return err
	}
	if a.asJSON {
		return a.printJSON(t)
	}
	fmt.Fprintln(a.stdout, t.ID)
	if !attended {
		a.printWarning("no engine is working on the queue: start retort serve, or run one job with retort tasks wait ID")
	}
	return nil
}
