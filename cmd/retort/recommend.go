package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"retort/internal/admin"
)

// recommendCommands defines the command "retort recommend".
type recommendCommands struct{ *app }

func (a recommendCommands) command() *cobra.Command {
	var since string
	var update bool
	c := &cobra.Command{
		Use: "recommend", Short: "Recommend changes to your setup, based on the audit log", Args: cobra.NoArgs,
		Example: "  retort recommend\n  retort recommend --since 90d --json\n  retort recommend --update",
		Long: `The command reads the audit log and the list of your MCP servers. It reports servers that nobody calls,
tools that fail, tools whose answers Retort could cache, programs that are worth saving as skills, and
searches without results. The command starts no server.

With --update, the command downloads the list of servers from the registry in the setting
recommend.registry. If a search had no result, the command looks for servers in this list that fit the
search. Without --update, the command downloads nothing.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			from, err := momentOf("since", since, time.Now())
			if err != nil {
				return err
			}
			if update {
				n, err := admin.UpdateRegistry(cmd.Context(), a.retortConfig())
				if err != nil {
					return err
				}
				fmt.Fprintf(a.stderr, "the registry lists %d servers\n", n)
			}
			r, err := admin.Recommend(cmd.Context(), a.retortConfig(), from)
			if err != nil {
				return err
			}
			if a.asJSON {
				return a.printJSON(r)
			}
			a.printWarnings(r.Warnings)
			return a.printAdvice(r)
		},
	}
	c.Flags().StringVar(&since, "since", "30d",
		"start of the period, as a duration before now such as 24h or 30d, or as a date")
	c.Flags().BoolVar(&update, "update", false,
		"first download the list of servers from the registry in the setting recommend.registry")
	offerJSON(c)
	return c
}

func (a recommendCommands) printAdvice(r admin.Recommendations) error {
	if len(r.Advice) == 0 {
		fmt.Fprintf(a.stderr, "no recommendations from %d entries\n", r.Entries)
		return nil
	}
	for _, one := range r.Advice {
		fmt.Fprintf(
			a.stdout, "%s  %s\n  %s\n", a.styleText(a.stdout, bold, strings.ReplaceAll(string(one.Kind), "_", " ")),
			replaceControls(one.Subject), replaceControls(one.Says),
		)
		for _, s := range one.Servers {
			fmt.Fprintf(a.stdout, "  - %s: %s %s\n", replaceControls(s.Name), replaceControls(s.Description), replaceControls(s.URL))
		}
		fmt.Fprintf(a.stdout, "  → %s\n", replaceControls(one.Do))
	}
	return nil
}
