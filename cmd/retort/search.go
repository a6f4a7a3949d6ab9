package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"retort"
	"retort/internal/core"
)

func (a *app) search() *cobra.Command {
	var q core.ToolQuery
	var detail string
	c := &cobra.Command{
		Use: "search QUERY", Short: "Find tools by what they do", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.ask(cmd, func(e *retort.Engine) error {
				q.Text, q.Detail = strings.Join(args, " "), core.SearchDetail(detail)
				found, err := e.Search(cmd.Context(), q)
				if err != nil {
					return err
				}
				if a.asJSON {
					return a.printJSON(found)
				}
				return a.printFound(found)
			})
		},
	}
	c.Flags().StringVar(&detail, "detail", "description", "name, description (or summary) or full")
	c.Flags().StringVar(&q.Server, "server", "", "only tools of this server")
	c.Flags().StringVar(&q.Category, "category", "", "only tools of this category")
	c.Flags().IntVar(&q.Limit, "limit", 10, "at most so many tools")
	offerJSON(c)
	return c
}

// settle waits for the servers, at most for patience, and shows the names of those it is waiting for.
func (a *app) settle(ctx context.Context, e *retort.Engine, patience time.Duration, servers ...string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	say, done := a.progress("connecting")
	defer done()
	watch := time.AfterFunc(900*time.Millisecond, func() { say("waiting for " + strings.Join(e.Pending(), ", ")) })
	defer watch.Stop()
	e.Settle(ctx, servers...)
}

// ask is like with, and shows progress while f runs.
func (a *app) ask(cmd *cobra.Command, f func(*retort.Engine) error) error {
	return a.with(cmd, func(e *retort.Engine) error {
		_, done := a.progress("asking the servers")
		defer done()
		return f(e)
	})
}

// with runs f with an engine, which it closes afterwards.
func (a *app) with(cmd *cobra.Command, f func(*retort.Engine) error) error {
	e, err := a.open(cmd.Context(), func(c *retort.Config) { c.Reserve = retort.ReserveNone })
	if err != nil {
		return err
	}
	defer e.Close()
	return f(e)
}

func (a *app) printFound(found core.FoundTools) error {
	for _, w := range found.Warnings {
		a.warn(printable(w))
	}
	for _, t := range found.Tools {
		if t.RegistryOnly {
			t.Name += " (registry only: no server to call)"
		}
		switch {
		case t.Definition != "":
			fmt.Fprintln(a.stdout, printable(t.Definition))
		case t.Description != "":
			fmt.Fprintf(a.stdout, "%s  %s\n", a.style(a.stdout, bold, printable(t.Name)), printable(t.Description))
		default:
			fmt.Fprintln(a.stdout, printable(t.Name))
		}
	}
	for _, s := range found.Skills {
		fmt.Fprintf(a.stdout, "%s  %s\n", a.style(a.stdout, bold, "skill "+s.Name), printable(s.Description))
	}
	if rest := found.Total - len(found.Tools); rest > 0 {
		fmt.Fprintln(a.stderr, a.style(a.stderr, dim, fmt.Sprintf("%d more; --limit shows them", rest)))
	}
	if found.Total == 0 && len(found.Skills) == 0 {
		fmt.Fprintln(a.stderr, "no tool matches; retort tools lists all connected tools")
	}
	return nil
}

type describedJSON struct {
	Definitions []retort.Definition      `json:"definitions"`
	Flags       map[string][]retort.Flag `json:"flags,omitempty"` // by the name asked for
}

func (a *app) describe() *cobra.Command {
	var lang, category string
	c := &cobra.Command{
		Use: "describe SERVER.TOOL...", Short: "Print the typed definition of tools", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.ask(cmd, func(e *retort.Engine) error {
				l, err := language(lang, "")
				if err != nil {
					return err
				}
				definitions, err := e.DescribeIn(cmd.Context(), category, args, l)
				if err != nil {
					return err
				}
				flags := map[string][]retort.Flag{}
				for _, name := range args {
					if server, tool, err := e.Find(name); err == nil && len(e.Flags(server, tool)) > 0 {
						flags[name] = e.Flags(server, tool)
					}
				}
				if a.asJSON {
					return a.printJSON(describedJSON{definitions, flags})
				}
				for _, d := range definitions {
					fmt.Fprintln(a.stdout, printable(d.Definition))
				}
				a.printFlags(flags)
				return nil
			})
		},
	}
	c.Flags().StringVar(&lang, "lang", "ts", "ts or py")
	c.Flags().StringVar(&category, "category", "", "only tools of this category")
	offerJSON(c)
	return c
}

func (a *app) call() *cobra.Command {
	var noCache bool
	var session string
	c := &cobra.Command{
		Use: "call SERVER.TOOL [JSON]", Short: "Make one call", Args: cobra.RangeArgs(1, 2),
		Example: `  retort call github.listIssues '{"owner": "o", "repo": "r"}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			arguments := json.RawMessage("{}")
			if len(args) == 2 {
				arguments = json.RawMessage(args[1])
			}
			if !json.Valid(arguments) {
				return core.Errorf(core.KindInvalidArguments, "call", "the arguments are not JSON: %s", args[1]).
					WithHint(`write them as one object in quotes: '{"name": "value"}'`)
			}
			return a.ask(cmd, func(e *retort.Engine) error {
				return a.printOutcome(
					unresumed(
						e.Call(a.asked(cmd.Context()), core.ExecutionRequest{Session: session, Client: "retort call", NoCache: noCache}, args[0], arguments),
					),
				)
			})
		},
	}
	offerJSON(c)
	c.Flags().StringVar(&session, "session", "", "session whose workspace is used")
	c.Flags().BoolVar(&noCache, "no-cache", false, "make the call, whatever the cache holds")
	return c
}

func (a *app) tools() *cobra.Command {
	var changed, yes bool
	var trust []string
	c := &cobra.Command{
		Use: "tools [SERVER]", Short: "What is connected, what it costs, how it is", Args: cobra.MaximumNArgs(1),
		Example: "  retort tools --changed\n  retort tools --trust github.create_issue",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd, func(e *retort.Engine) error {
				switch {
				case len(trust) > 0:
					return a.trust(cmd, e, append(trust, args...), yes)
				case changed:
					return a.changed(cmd, e, args)
				}
				a.settle(cmd.Context(), e, 15*time.Second)
				if len(args) == 1 {
					return a.printServer(cmd, e, args[0])
				}
				servers := e.Servers()
				if a.asJSON {
					return a.printJSON(map[string]any{"servers": servers})
				}
				return a.printServers(servers)
			})
		},
	}
	offerJSON(c)
	c.Flags().BoolVar(&changed, "changed", false, "how tools differ from what was trusted")
	c.Flags().StringArrayVar(&trust, "trust", nil, "trust SERVER or SERVER.TOOL as it is now, after a look (repeatable)")
	c.Flags().BoolVar(&yes, "yes", false, "with --trust: without asking")
	return c
}

func (a *app) printServers(servers []retort.ServerInfo) error {
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
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\n", printable(s.Name), s.Tools, s.Learned, thousands(s.Tokens), s.Category, printable(state))
		tools, learned, tokens = tools+s.Tools, learned+s.Learned, tokens+s.Tokens
	}
	fmt.Fprintf(w, "total\t%d\t%d\t%s\t\t\n", tools, learned, thousands(tokens))
	return w.Flush()
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

func (a *app) printServer(cmd *cobra.Command, e *retort.Engine, server string) error {
	found, err := e.Search(cmd.Context(), core.ToolQuery{Server: server, Limit: 1000, Detail: core.DetailDescription})
	if err != nil {
		return err
	}
	if name, _, err := e.Find(server); err == nil {
		server = name
	}
	changes := e.Changes(server)
	flags, withheld := map[string][]retort.Flag{}, []string{}
	for _, t := range e.Flagged(server) {
		flags[server+"."+t.Tool] = t.Flags
		if t.Withheld != "" {
			withheld = append(withheld, server+"."+t.Tool)
		}
	}
	if a.asJSON {
		return a.printJSON(struct {
			core.FoundTools
			Changed  []changeJSON             `json:"changed,omitempty"`
			Flags    map[string][]retort.Flag `json:"flags,omitempty"`
			Withheld []string                 `json:"withheld,omitempty"`
		}{found, described(e, changes), flags, withheld})
	}
	if err := a.printFound(found); err != nil {
		return err
	}
	for _, c := range changes {
		fmt.Fprintf(
			a.stdout, "%s  has changed since it was trusted (%s); retort tools --changed %s\n",
			a.style(a.stdout, amber, printable(c.Server+"."+c.Tool)), c.Policy, printable(c.Server),
		)
	}
	for _, name := range withheld {
		fmt.Fprintf(a.stdout, "%s  is withheld from models: its definition can't be shown to them\n", a.style(a.stdout, amber, printable(name)))
	}
	a.printFlags(flags)
	return nil
}

// printFlags prints a warning for each suspicious content in definitions.
func (a *app) printFlags(flags map[string][]retort.Flag) {
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		for _, f := range flags[name] {
			a.warn(printable(name + ": " + f.String()))
		}
	}
}
