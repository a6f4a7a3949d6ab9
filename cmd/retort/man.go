package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"retort/internal/core"
	"retort/internal/engine"
)

// manCommands defines the command "retort man".
type manCommands struct{ *app }

// command returns the hidden command that writes the manual pages of all commands. Releases contain these pages.
func (a manCommands) command() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use: "man --out DIR", Short: "Write the manual pages", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := os.MkdirAll(out, 0o755); err != nil {
				return core.Errorf(core.KindInvalidArguments, "man", "%w", err)
			}
			return writeManual(out, cmd.Root())
		},
	}
	c.Flags().StringVar(&out, "out", "", "folder to which the command writes the files")
	_ = c.MarkFlagRequired("out")
	return c
}

// writeManual writes the manual pages of a command and of its subcommands.
func writeManual(out string, c *cobra.Command) error {
	c.InitDefaultHelpFlag()
	if err := os.WriteFile(filepath.Join(out, manName(c)+".1"), []byte(manPage(c)), 0o644); err != nil {
		return core.Errorf(core.KindInvalidArguments, "man", "%w", err)
	}
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			continue
		}
		if err := writeManual(out, sub); err != nil {
			return err
		}
	}
	return nil
}

// manPage returns the manual page of a command in the language of man(7). The page contains no date, so that equal
// sources give equal pages.
func manPage(c *cobra.Command) string {
	var b strings.Builder
	section := func(title, body string) {
		if body != "" {
			fmt.Fprintf(&b, ".SH %s\n%s\n", title, body)
		}
	}
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"retort %s\" \"Retort\"\n", strings.ToUpper(manText(manName(c))), engine.Version)
	showJSON(c)
	section("NAME", manText(manName(c))+` \- `+manText(c.Short))
	section("SYNOPSIS", `.B `+manText(c.UseLine()))
	section("DESCRIPTION", manText(c.Long))
	section("OPTIONS", manFlags(c.LocalNonPersistentFlags())+manFlags(c.PersistentFlags()))
	section("OPTIONS OF ALL COMMANDS", manFlags(c.InheritedFlags()))
	if c.Example != "" {
		section("EXAMPLES", ".nf\n"+manText(c.Example)+"\n.fi")
	}
	if !c.HasParent() {
		section("EXIT STATUS", manExits)
	}
	section("SEE ALSO", strings.Join(manRelated(c), ",\n"))
	return b.String()
}

const manExits = `.TP
0
success
.TP
1
the program failed
.TP
2
wrong usage or configuration
.TP
3
denied, or waiting for approval
.TP
4
an internal error of Retort`

// manName returns the name of a command's manual page, such as retort\-audit\-query.
func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

func manRelated(c *cobra.Command) (pages []string) {
	if c.HasParent() {
		pages = append(pages, `.BR `+manText(manName(c.Parent()))+` (1)`)
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && !sub.IsAdditionalHelpTopicCommand() {
			pages = append(pages, `.BR `+manText(manName(sub))+` (1)`)
		}
	}
	return pages
}

func manFlags(flags *pflag.FlagSet) string {
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		names := "--" + f.Name
		if f.Shorthand != "" {
			names = "-" + f.Shorthand + ", " + names
		}
		value, usage := pflag.UnquoteUsage(f)
		if f.Value.Type() != "bool" && f.DefValue != "" && f.DefValue != "[]" && f.DefValue != "0" {
			usage += " (" + f.DefValue + " if not given)"
		}
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", manText(strings.TrimSpace(names+" "+value)), manText(usage))
	})
	return b.String()
}

// manText escapes a text so that the man page formatter does not interpret any of it as a request.
func manText(s string) string {
	s = strings.NewReplacer(`\`, `\e`, `-`, `\-`).Replace(strings.TrimSpace(s))
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
