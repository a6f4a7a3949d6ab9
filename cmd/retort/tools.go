package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"retort/internal/core"
	"retort/internal/engine"
)

// toolCommands defines the commands "retort search", "retort describe", "retort call" and "retort tools".
type toolCommands struct{ *app }

func (a toolCommands) toolsCommand() *cobra.Command {
	var changed, yes bool
	var trust []string
	var export string
	c := &cobra.Command{
		Use: "tools [SERVER]", Short: "Show the MCP servers, their tools, their token costs and whether they work", Args: cobra.MaximumNArgs(1),
		Example: "  retort tools --changed\n  retort tools --trust github.create_issue\n" +
			"  retort tools --export ./tools_registry",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withEngine(cmd, func(e *engine.Engine) error {
				switch {
				case len(trust) > 0:
					return a.trustChanges(cmd, e, append(trust, args...), yes)
				case changed:
					return a.printChanges(cmd, e, args)
				}
				a.waitForServers(cmd.Context(), e, 15*time.Second)
				if export != "" {
					return a.exportTools(export, e)
				}
				if len(args) == 1 {
					return a.printServer(cmd, e, args[0])
				}
				servers := e.ListServers()
				if a.asJSON {
					return a.printJSON(map[string]any{"servers": servers})
				}
				if len(servers) == 0 {
					fmt.Fprintln(a.stderr, noServersHint)
					return nil
				}
				return a.printServers(servers)
			})
		},
	}
	offerJSON(c)
	c.Flags().BoolVar(&changed, "changed", false,
		"show how the definitions of tools have changed since you trusted them")
	c.Flags().StringArrayVar(&trust, "trust", nil,
		"show how the tools of SERVER, or the tool SERVER.TOOL, have changed, and trust the current definitions "+
			"(repeatable)")
	c.Flags().StringVar(&export, "export", "",
		"write the definitions of all tools, with learned types, to this folder, which the setting "+
			"toolDefinitions can read")
	c.Flags().BoolVar(&yes, "yes", false, "with --trust: trust the definitions without asking for confirmation")
	return c
}

// exportTools writes the definitions of all tools to a folder. The definitions contain the types of answers that
// Retort has learned.
func (a toolCommands) exportTools(out string, e *engine.Engine) error {
	root, err := openFolder(out)
	if err != nil {
		return core.Errorf(core.KindInvalidArguments, "tools", "%w", err)
	}
	defer root.Close()
	files, learned := e.ExportDefinitions(), 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := writeInFolder(root, name, files[name]); err != nil {
			return core.Errorf(core.KindInvalidArguments, "tools", "%w", err)
		}
	}
	for _, s := range e.ListServers() {
		learned += s.Learned
	}
	fmt.Fprintf(a.stdout, "%d definitions in %s, %d of them with learned answer types\n", len(files), out, learned)
	return nil
}

func (a toolCommands) printServers(servers []engine.ServerInfo) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERVER\tTOOLS\tLEARNED\tTOKENS\tCATEGORY\tSTATE")
	tools, learned, tokens := 0, 0, 0
	for _, s := range servers {
		state := s.State
		if s.Error != nil {
			state += ": " + firstLine(s.Error.Message)
		} else if s.Cached {
			state += " (cached)"
		}
		if n := len(s.Changed); n > 0 {
			state += fmt.Sprintf(", %d changed", n)
		}
		if n := len(s.Flagged); n > 0 {
			state += fmt.Sprintf(", %d flagged", n)
		}
		if n := len(s.Withheld); n > 0 {
			state += fmt.Sprintf(", %d withheld", n)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\n", replaceControls(s.Name), s.Tools, s.Learned, groupThousands(s.Tokens), s.Category, replaceControls(state))
		tools, learned, tokens = tools+s.Tools, learned+s.Learned, tokens+s.Tokens
	}
	fmt.Fprintf(w, "total\t%d\t%d\t%s\t\t\n", tools, learned, groupThousands(tokens))
	return w.Flush()
}

// noServersHint is the hint for configurations without servers.
const noServersHint = "no servers are configured; to use the servers of an MCP client, run retort install CLIENT; " +
	"to try sample servers, run retort init --demo"

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

func (a toolCommands) printServer(cmd *cobra.Command, e *engine.Engine, server string) error {
	found, err := e.Search(cmd.Context(), core.ToolQuery{Server: server, Limit: 1000, Detail: core.DetailDescription})
	if err != nil {
		return err
	}
	if name, _, err := e.ResolveName(server); err == nil {
		server = name
	}
	changes := e.ListChanges(server)
	flags, withheld := map[string][]engine.Flag{}, []string{}
	for _, t := range e.ListFlagged(server) {
		flags[server+"."+t.Tool] = t.Flags
		if t.Withheld != "" {
			withheld = append(withheld, server+"."+t.Tool)
		}
	}
	if a.asJSON {
		return a.printJSON(struct {
			core.FoundTools
			Changed  []changeJSON             `json:"changed,omitempty"`
			Flags    map[string][]engine.Flag `json:"flags,omitempty"`
			Withheld []string                 `json:"withheld,omitempty"`
		}{found, toChangeJSON(e, changes), flags, withheld})
	}
	if err := a.printFound(found, fmt.Sprintf("%d more; find them with retort search", found.More)); err != nil {
		return err
	}
	for _, c := range changes {
		fmt.Fprintf(
			a.stdout, "%s  has changed since it was trusted (%s); see retort tools --changed %s\n",
			a.styleText(a.stdout, amber, replaceControls(c.Server+"."+c.Tool)), c.Policy, replaceControls(c.Server),
		)
	}
	for _, name := range withheld {
		fmt.Fprintf(a.stdout, "%s  is withheld from models, because its definition cannot be shown to them\n", a.styleText(a.stdout, amber, replaceControls(name)))
	}
	a.printFlags(flags)
	return nil
}

// printFlags prints the flags of tool definitions as warnings. A flag describes one suspicious text in a definition.
func (a toolCommands) printFlags(flags map[string][]engine.Flag) {
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		for _, f := range flags[name] {
			a.printWarning(replaceControls(name + ": " + f.String()))
		}
	}
}
