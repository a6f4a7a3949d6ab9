package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"retort/internal/admin"
	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/engine"
)

// workspaceCommands defines the command "retort workspace" and its subcommands.
type workspaceCommands struct{ *app }

func (a workspaceCommands) command() *cobra.Command {
	c := &cobra.Command{Use: "workspace", Short: "List, export and remove the files that programs have stored"}
	c.AddCommand(a.listWorkspaceCommand(), a.exportWorkspaceCommand(), a.collectGarbageCommand())
	return c
}

func (a workspaceCommands) listWorkspaceCommand() *cobra.Command {
	var session, glob string
	c := &cobra.Command{
		Use: "ls", Short: "List all sessions that have files, or list the files of a single session", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config := engine.Config{Files: a.configs, Home: a.home}
			if session == "" && glob == "" {
				uses, err := admin.ListWorkspaces(config)
				if err != nil {
					return err
				}
				return a.printSessions(uses)
			}
			list, err := admin.ListWorkspaceFiles(config, session, glob)
			if err != nil {
				return err
			}
			return a.printFiles(list)
		},
	}
	c.Flags().StringVar(&session, "session", "", "list the files of the session with this name")
	c.Flags().StringVar(&glob, "glob", "", "list only files that match this pattern, such as *.csv or results/**")
	offerJSON(c)
	return c
}

func (a workspaceCommands) exportWorkspaceCommand() *cobra.Command {
	var session, glob string
	c := &cobra.Command{
		Use: "export DIR", Short: "Write the files of a session to a new folder, with real personal values in place of tokens", Args: cobra.ExactArgs(1),
		Long: `The command writes the files of a session to a new folder. In the new files, the real values replace
tokens such as [EMAIL_1]. The files are meant for a person, so the command first asks for confirmation in
a terminal.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			tty, err := openTerminal()
			if err != nil {
				return core.Errorf(
					core.KindPolicy, "workspace.export",
					"personal values are written only after a confirmation in a terminal, and this process does not have one",
				).
					WithHint("run it in a terminal yourself: retort workspace export %s", args[0])
			}
			defer tty.Close()
			fmt.Fprintf(tty, "This writes files with personal values to %s. Type yes to continue: ", replaceControls(args[0]))
			if line, err := readLine(cmd.Context(), tty); err != nil || line != "yes" {
				return core.Errorf(core.KindPolicy, "workspace.export", "nothing was written")
			}
			out, err := admin.ExportWorkspace(engine.Config{Files: a.configs, Home: a.home}, session, glob, args[0])
			if err != nil {
				return err
			}
			if a.asJSON {
				return a.printJSON(out)
			}
			fmt.Fprintf(a.stdout, "%d files, %d bytes\n", out.Files, out.Bytes)
			return nil
		},
	}
	c.Flags().StringVar(&session, "session", "",
		"export the files of this session; without this flag, the command exports the files of the session named default")
	c.Flags().StringVar(&glob, "glob", "", "export only files that match this pattern, such as *.csv or results/**")
	offerJSON(c)
	return c
}

func (a workspaceCommands) printSessions(uses []admin.WorkspaceUse) error {
	if a.asJSON {
		return a.printJSON(map[string]any{"sessions": append([]admin.WorkspaceUse{}, uses...)})
	}
	if len(uses) == 0 {
		fmt.Fprintln(a.stderr, "no session has files")
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SESSION\tFILES\tFOLDERS\tBYTES\tLAST CHANGED\t")
	for _, u := range uses {
		changed, busy := "", ""
		if !u.Used.IsZero() {
			changed = u.Used.Local().Format(time.DateTime)
		}
		if u.Busy {
			busy = "in use"
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\t%s\n", replaceControls(u.Session), u.Files, u.Folders, u.Bytes, changed, busy)
	}
	return w.Flush()
}

func (a workspaceCommands) printFiles(list engine.FileList) error {
	if a.asJSON {
		return a.printJSON(list)
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, f := range list.Files {
		fmt.Fprintf(w, "%s\t%d\t%s\n", f.Modified, f.Bytes, replaceControls(f.Path))
	}
	return w.Flush()
}

func (a workspaceCommands) collectGarbageCommand() *cobra.Command {
	var dry bool
	kept := config.Settings{}.WithDefaults().Workspace
	c := &cobra.Command{
		Use: "gc", Short: "Remove files that are older than the settings allow", Args: cobra.NoArgs,
		Long: fmt.Sprintf(`The command removes results that were too large to return, after the time in workspace.results (%d days).
It removes a whole session after the time in workspace.sessions without use (%d days). If all saved
results together are larger than workspace.size (%d GB), it removes the oldest results. The command does
not remove files that a running program uses. While Retort serves clients, it does the same every hour.`,
			kept.Results/(24*time.Hour), kept.Sessions/(24*time.Hour), kept.Size>>30),
		RunE: func(*cobra.Command, []string) error {
			swept, err := admin.SweepWorkspaces(engine.Config{Files: a.configs, Home: a.home}, dry)
			if err != nil {
				return err
			}
			if a.asJSON {
				return a.printJSON(swept)
			}
			verb := "removed"
			if dry {
				verb = "would remove"
			}
			fmt.Fprintf(
				a.stdout, "%s: %d files, %d bytes, %d complete sessions; %d bytes remain\n", verb, swept.Files, swept.Bytes,
				len(swept.Sessions), swept.Left,
			)
			for _, name := range swept.Busy {
				fmt.Fprintf(a.stderr, "in use, so not removed: %s\n", replaceControls(name))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "print what the command would remove, without removing it")
	offerJSON(c)
	return c
}
