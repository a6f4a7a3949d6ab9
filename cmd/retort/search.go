package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"retort/internal/core"
	"retort/internal/engine"
)

func (a toolCommands) searchCommand() *cobra.Command {
	var q core.ToolQuery
	var detail, lang string
	c := &cobra.Command{
		Use: "search QUERY", Short: "Search the tools of all MCP servers", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withEngineProgress(cmd, func(e *engine.Engine) error {
				l, err := parseLanguage(lang, "")
				if err != nil {
					return err
				}
				q.Text, q.Detail, q.Language = strings.Join(args, " "), core.SearchDetail(detail), l
				found, err := e.Search(cmd.Context(), q)
				if err != nil {
					return err
				}
				if a.asJSON {
					return a.printJSON(found)
				}
				if len(e.ListServers()) == 0 && found.Total == 0 && len(found.Skills) == 0 {
					fmt.Fprintln(a.stderr, noServersHint)
					return nil
				}
				return a.printFound(found, moreFound(found, q.Limit))
			})
		},
	}
	c.Flags().StringVar(&detail, "detail", "description",
		"details to show of each tool: name, description (or summary) or full")
	c.Flags().StringVar(&lang, "lang", "ts", "language of the tool definitions: ts or py")
	c.Flags().StringVar(&q.Server, "server", "", "show only tools of this server")
	c.Flags().StringVar(&q.Category, "category", "", "show only tools of this category")
	c.Flags().IntVar(&q.Limit, "limit", 10, "maximum number of tools to show")
	offerJSON(c)
	return c
}

// moreFound returns text that says how many more tools match, and how to see them.
func moreFound(found core.FoundTools, limit int) string {
	if len(found.Tools)+len(found.Others) == limit {
		return fmt.Sprintf("%d more; raise --limit to see them", found.More)
	}
	return fmt.Sprintf("%d more match less well; use other words, or list all with retort tools SERVER", found.More)
}

// printFound prints the tools. If there are more tools, it also prints the text more.
func (a toolCommands) printFound(found core.FoundTools, more string) error {
	for _, w := range found.Warnings {
		a.printWarning(replaceControls(w))
	}
	for _, t := range found.Tools {
		if t.RegistryOnly {
			t.Name += " (registry only: no server to call)"
		}
		switch {
		case t.Definition != "":
			fmt.Fprintln(a.stdout, replaceControls(t.Definition))
		case t.Description != "":
			fmt.Fprintf(a.stdout, "%s  %s\n", a.styleText(a.stdout, bold, replaceControls(t.Name)), replaceControls(t.Description))
		default:
			fmt.Fprintln(a.stdout, replaceControls(t.Name))
		}
	}
	for _, call := range found.Others {
		fmt.Fprintln(a.stdout, replaceControls(call))
	}
	for _, s := range found.Skills {
		fmt.Fprintf(a.stdout, "%s  %s\n", a.styleText(a.stdout, bold, "skill "+s.Name), replaceControls(s.Description))
	}
	if found.More > 0 {
		fmt.Fprintln(a.stderr, a.styleText(a.stderr, dim, more))
	}
	if found.Total == 0 && len(found.Skills) == 0 {
		fmt.Fprintln(a.stderr, "no tool matches; retort tools lists all connected tools")
	}
	return nil
}

type describedJSON struct {
	Definitions []engine.Definition      `json:"definitions"`
	Flags       map[string][]engine.Flag `json:"flags,omitempty"` // flags by the name that the user asked for
}

func (a toolCommands) describeCommand() *cobra.Command {
	var lang, category, arguments string
	var sample bool
	c := &cobra.Command{
		Use: "describe SERVER.TOOL...", Short: "Print the definitions of tools, with types", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withEngineProgress(cmd, func(e *engine.Engine) error {
				l, err := parseLanguage(lang, "")
				if err != nil {
					return err
				}
				if sample {
					return a.printSample(cmd, e, core.SampleRequest{Category: category, Language: l, Arguments: json.RawMessage(arguments)}, args)
				}
				definitions, err := e.DescribeIn(cmd.Context(), category, args, l)
				if err != nil {
					return err
				}
				flags := map[string][]engine.Flag{}
				for _, name := range args {
					if server, tool, err := e.ResolveName(name); err == nil && len(e.FlagsOf(server, tool)) > 0 {
						flags[name] = e.FlagsOf(server, tool)
					}
				}
				if a.asJSON {
					return a.printJSON(describedJSON{definitions, flags})
				}
				for _, d := range definitions {
					fmt.Fprintln(a.stdout, replaceControls(d.Definition))
				}
				a.printFlags(flags)
				return nil
			})
		},
	}
	c.Flags().StringVar(&lang, "lang", "ts", "language of the definitions: ts or py")
	c.Flags().StringVar(&category, "category", "", "show only tools of this category")
	c.Flags().BoolVar(&sample, "sample", false,
		"call the tool once, and include the type of its result; only possible if the tool only reads")
	c.Flags().StringVar(&arguments, "arguments", "{}", "with --sample: arguments of the call, as a JSON object")
	offerJSON(c)
	return c
}

// printSample prints the definition of a tool with the type of its result. It learns the type from one call of the
// tool.
func (a toolCommands) printSample(cmd *cobra.Command, e *engine.Engine, s core.SampleRequest, names []string) error {
	if len(names) != 1 {
		return core.Errorf(core.KindInvalidArguments, "describe", "--sample takes one tool, not %d", len(names))
	}
	if !json.Valid(s.Arguments) {
		return core.Errorf(core.KindInvalidArguments, "describe", "the arguments are not JSON: %s", s.Arguments)
	}
	s.Name = names[0]
	o := e.Sample(a.withTerminalApproval(cmd.Context()), core.ExecutionRequest{Client: "retort describe"}, s)
	if !o.Success() {
		return a.printOutcome(withResumeHint(o))
	}
	var d engine.Definition
	if err := json.Unmarshal(o.Result, &d); err != nil {
		return err
	}
	if a.asJSON {
		return a.printJSON(describedJSON{Definitions: []engine.Definition{d}})
	}
	fmt.Fprintln(a.stdout, replaceControls(d.Definition))
	return nil
}
