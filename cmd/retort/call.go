package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"retort/internal/core"
	"retort/internal/engine"
)

func (a toolCommands) call() *cobra.Command {
	var noCache bool
	var session string
	c := &cobra.Command{
		Use: "call SERVER.TOOL [JSON]", Short: "Call a single tool of an MCP server", Args: cobra.RangeArgs(1, 2),
		Example: `  retort call github.listIssues '{"owner": "o", "repo": "r"}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			arguments := json.RawMessage("{}")
			if len(args) == 2 {
				arguments = json.RawMessage(args[1])
			}
			if !json.Valid(arguments) {
				return core.Errorf(core.KindInvalidArguments, "call", "the arguments are not JSON: %s", args[1]).
					WithHint(`write the arguments as one quoted JSON object: '{"name": "value"}'`)
			}
			return a.withEngineProgress(cmd, func(e *engine.Engine) error {
				return a.printOutcome(
					withResumeHint(
						e.Call(a.withTerminalApproval(cmd.Context()), core.ExecutionRequest{Session: session, Client: "retort call", NoCache: noCache}, args[0], arguments),
					),
				)
			})
		},
	}
	offerJSON(c)
	c.Flags().StringVar(&session, "session", "", "name of the session whose files and saved values the program uses")
	c.Flags().BoolVar(&noCache, "no-cache", false, "make the call even if the cache contains its result")
	return c
}
