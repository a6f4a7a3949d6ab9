package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"retort/internal/admin"
	"retort/internal/core"
	"retort/internal/engine"
)

// skillCommands defines the command "retort skills" and its subcommands.
type skillCommands struct{ *app }

func (a skillCommands) command() *cobra.Command {
	c := &cobra.Command{
		Use: "skills", Short: "Find, show, save and run skills, which are saved programs", Args: cobra.NoArgs,
		Long: `Skills are saved programs. Other programs can import the functions of a skill. Retort stores the skills of
a project in the folder .retort/skills, which you can commit. Retort stores your own skills in a folder of
your user. Each skill is a folder with SKILL.md, and with skill.ts or skill.py.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.listSkillsCommand(), a.showSkillCommand(), a.saveSkillCommand(), a.runSkillCommand(), a.removeSkillCommand(), a.exportSkillCommand(), a.importSkillCommand())
	return c
}

func (a skillCommands) listSkillsCommand() *cobra.Command {
	var tags []string
	c := &cobra.Command{
		Use: "list [QUERY]", Aliases: []string{"search"}, Short: "List all skills, or search for skills",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withEngine(cmd, func(e *engine.Engine) error {
				list, err := e.ListSkills(strings.Join(args, " "), tags)
				if err != nil {
					return err
				}
				if a.asJSON {
					return a.printJSON(map[string]any{"skills": list})
				}
				return a.printSkills(list)
			})
		},
	}
	offerJSON(c)
	c.Flags().StringSliceVar(&tags, "tags", nil, "show only skills with these tags, separated by commas")
	return c
}

func (a skillCommands) printSkills(list []engine.SkillInfo) error {
	if len(list) == 0 {
		fmt.Fprintln(a.stderr, "no skills are saved; save one with retort skills save FILE --name NAME --description TEXT")
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SKILL\tLANGUAGE\tVERSION\tFROM\tDESCRIPTION")
	for _, s := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", s.Name, s.Language, s.Version, s.Origin, replaceControls(firstLine(s.Description)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, s := range list {
		for _, warning := range s.Warnings {
			a.printWarning(replaceControls(s.Name + ": " + warning))
		}
	}
	return nil
}

func (a skillCommands) showSkillCommand() *cobra.Command {
	var version string
	c := &cobra.Command{
		Use: "show NAME", Short: "Print a skill and its code", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withEngine(cmd, func(e *engine.Engine) error {
				s, err := e.ShowSkill(args[0], version)
				if err != nil {
					return err
				}
				if a.asJSON {
					return a.printJSON(s)
				}
				fmt.Fprintf(a.stdout, "%s\n\n%s", a.escapeForTerminal(a.stdout, s.Usage), a.escapeForTerminal(a.stdout, s.Code))
				fmt.Fprintln(
					a.stderr,
					a.styleText(
						a.stderr, dim,
						fmt.Sprintf("%s · version %s · from %s · stored versions: %s", s.Language, s.Version, s.Origin, strings.Join(s.Versions, " ")),
					),
				)
				for _, warning := range s.Warnings {
					a.printWarning(replaceControls(warning))
				}
				return nil
			})
		},
	}
	offerJSON(c)
	c.Flags().StringVar(&version, "version", "", "show this version of the skill")
	return c
}

func (a skillCommands) saveSkillCommand() *cobra.Command {
	var lang, from string
	var d engine.SkillDraft
	c := &cobra.Command{
		Use: "save FILE | - | --from EXECUTION", Short: "Check a program, and save its functions as a skill", Args: cobra.MaximumNArgs(1),
		Example: "  retort skills save find.ts --name find-events --description 'Finds events by title' --tags calendar,search\n" +
			"  retort skills save --from 7k2m4n6p8q0rs --name copy-notes --description 'Copies a document into the notes of a record'",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case from != "" && len(args) == 0:
				return a.saveFrom(cmd, from, d)
			case from != "" || len(args) == 0:
				return core.Errorf(core.KindInvalidArguments, "skills.save", "give one of: a file, - for standard input, or --from EXECUTION")
			}
			code, err := a.readProgram(args[0])
			if err != nil {
				return err
			}
			if d.Language, err = parseLanguage(lang, args[0]); err != nil {
				return err
			}
			if d.Name == "" && args[0] != "-" {
				d.Name = strings.TrimSuffix(filepath.Base(args[0]), filepath.Ext(args[0]))
			}
			d.Code = code
			return a.withEngineProgress(cmd, func(e *engine.Engine) error {
				return a.printSaved(withResumeHint(e.SaveSkill(a.withTerminalApproval(cmd.Context()), core.ExecutionRequest{Client: "retort skills"}, d)))
			})
		},
	}
	c.Flags().StringVar(&d.Name, "name", "",
		"name of the skill; without this flag, the skill gets the name of the file")
	c.Flags().StringVar(&d.Description, "description", "",
		"one sentence that says what the skill does and when to use the skill")
	c.Flags().StringSliceVar(&d.Tags, "tags", nil, "tags of the skill, separated by commas")
	c.Flags().StringVar(&lang, "lang", "",
		"language of the skill: ts or py; without this flag, Retort detects the language from the file's name or "+
			"the syntax")
	c.Flags().StringVar(&from, "from", "",
		"save the program of the successful execution with this id; parameters replace literal values in the program")
	c.Flags().BoolVar(&d.ForUser, "user", false, "save the skill for all of your projects, not in this project")
	offerJSON(c)
	return c
}

// saveFrom saves a program that has already run as a skill. It reads the program from the audit log by the id of its
// execution.
func (a skillCommands) saveFrom(cmd *cobra.Command, execution string, d engine.SkillDraft) error {
	ran, err := admin.FindProgram(cmd.Context(), engine.Config{Files: a.configs, Home: a.home}, execution)
	if err != nil {
		return err
	}
	return a.withEngineProgress(cmd, func(e *engine.Engine) error {
		o, lifted, err := e.SaveSkillFrom(a.withTerminalApproval(cmd.Context()), core.ExecutionRequest{Client: "retort skills"}, ran, d)
		if err != nil {
			return err
		}
		if o.Status == core.StatusOK && len(lifted) > 0 {
			fmt.Fprintln(a.stderr, "parameters:", replaceControls(strings.Join(lifted, ", ")))
		}
		return a.printSaved(withResumeHint(o))
	})
}

// printSaved prints the result of saving a skill.
func (a skillCommands) printSaved(o core.Outcome) error {
	if o.Status != core.StatusOK || a.asJSON && o.Result == nil {
		return a.printOutcome(o)
	}
	var saved engine.SavedSkill
	if err := json.Unmarshal(o.Result, &saved); err != nil {
		return err
	}
	if a.asJSON {
		return a.printJSON(saved)
	}
	state := "saved"
	if saved.Unchanged {
		state = "unchanged"
	}
	fmt.Fprintf(a.stdout, "%s %s, version %s\n%s\n", state, saved.Name, saved.Version, replaceControls(saved.Use))
	for _, warning := range saved.Warnings {
		a.printWarning(replaceControls(warning))
	}
	return nil
}

func (a skillCommands) runSkillCommand() *cobra.Command {
	var f runFlags
	var given []string
	c := &cobra.Command{
		Use: "run NAME [FUNCTION]", Short: "Run a function of a skill", Args: cobra.RangeArgs(1, 2),
		Example: "  retort skills run find-events --arg title=Review --arg most=3",
		RunE: func(cmd *cobra.Command, args []string) error {
			values, err := argumentsGiven(given)
			if err != nil {
				return err
			}
			function := strings.Join(args[1:], "")
			e, err := a.openEngine(cmd.Context(), func(c *engine.Config) { c.Limits.Timeout, c.Reserve = f.timeout, engine.ReserveOne })
			if err != nil {
				return err
			}
			defer e.Close()
			req, err := e.CallOfSkill(cmd.Context(), args[0], function, values)
			if err != nil {
				return err
			}
			req.Session, req.Sandbox, req.Client = f.session, f.sandbox, "retort skills run"
			return a.printOutcome(a.executeWithProgress(cmd.Context(), e, req))
		},
	}
	c.Flags().StringArrayVar(&given, "arg", nil,
		"argument of the function, as NAME=VALUE; a value that is not valid JSON counts as text (repeatable)")
	c.Flags().StringVar(&f.session, "session", "", "name of the session whose files and saved values the program uses")
	c.Flags().StringVar(&f.sandbox, "sandbox", "", sandboxUsage())
	c.Flags().DurationVar(&f.timeout, "timeout", 0,
		"time limit of the program; time in which the program waits for approval does not count")
	offerJSON(c)
	return c
}

// argumentsGiven parses --arg flags of the form NAME=VALUE. A value that is valid JSON is used as JSON, any other
// value as a string. To pass text that is also valid JSON, such as a house number, the user must quote it.
func argumentsGiven(given []string) (map[string]json.RawMessage, error) {
	values := map[string]json.RawMessage{}
	for _, g := range given {
		name, value, ok := strings.Cut(g, "=")
		if !ok || name == "" {
			return nil, core.Errorf(core.KindInvalidArguments, "skills.run", "--arg %q is not NAME=VALUE", g)
		}
		raw := json.RawMessage(value)
		if !json.Valid(raw) {
			text, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			raw = text
		}
		values[name] = raw
	}
	return values, nil
}

func (a skillCommands) removeSkillCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "rm NAME", Short: "Remove all versions of a skill", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withEngine(cmd, func(e *engine.Engine) error {
				s, err := e.RemoveSkill(args[0])
				if err != nil {
					return err
				}
				if a.asJSON {
					return a.printJSON(map[string]any{"removed": s})
				}
				_, err = fmt.Fprintf(a.stdout, "removed %s (from %s)\n", s.Name, s.Origin)
				return err
			})
		},
	}
	offerJSON(c)
	return c
}

func (a skillCommands) exportSkillCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "export NAME DIR", Short: "Export a skill as a folder in the Agent Skills format", Args: cobra.ExactArgs(2),
		Long: `The command writes a skill to DIR, as a folder that Claude Code and other clients can read. The skill
using-retort comes with Retort. It explains to a model how to find tools and write programs.`,
		Example: "  retort skills export using-retort .claude/skills",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withEngine(cmd, func(e *engine.Engine) error {
				folder, err := e.ExportSkill(args[0], args[1])
				if err != nil {
					return err
				}
				if a.asJSON {
					return a.printJSON(map[string]any{"path": folder})
				}
				_, err = fmt.Fprintln(a.stdout, folder)
				return err
			})
		},
	}
	offerJSON(c)
	return c
}

func (a skillCommands) importSkillCommand() *cobra.Command {
	var user bool
	c := &cobra.Command{
		Use: "import DIR", Short: "Import a skill from a folder in the Agent Skills format", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withEngineProgress(cmd, func(e *engine.Engine) error {
				return a.printSaved(
					withResumeHint(e.ImportSkill(a.withTerminalApproval(cmd.Context()), core.ExecutionRequest{Client: "retort skills"}, args[0], user)),
				)
			})
		},
	}
	c.Flags().BoolVar(&user, "user", false, "save the skill for all of your projects, not in this project")
	offerJSON(c)
	return c
}
