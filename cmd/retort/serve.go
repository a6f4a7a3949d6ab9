package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"retort/internal/core"
	"retort/internal/engine"
)

// serveCommands defines the command "retort serve".
type serveCommands struct{ *app }

func (a serveCommands) command() *cobra.Command {
	var surface, http string
	var fixed bool
	c := &cobra.Command{
		Use: "serve", Short: "Run Retort as an MCP server on standard input and output", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if surface != "full" && surface != "lean" {
				return core.Errorf(core.KindInvalidArguments, "serve", "--surface must be full or lean, not %q", surface)
			}
			e, err := a.openEngine(context.WithoutCancel(cmd.Context()), func(c *engine.Config) { c.NoReload = fixed })
			if err != nil {
				return err
			}
			defer e.Close()
			e.ShareProcessors()
			if http != "" {
				return a.serveHTTP(cmd.Context(), e, http, surface == "lean")
			}
			return e.Serve(cmd.Context(), a.stdin, a.stdout, surface == "lean")
		},
	}
	c.Flags().StringVar(&surface, "surface", "full",
		"which of Retort's own tools clients see: full for all tools, or lean for the first four")
	c.Flags().BoolVar(&fixed, "no-reload", false, "ignore changes to the configuration files while Retort runs")
	c.Flags().StringVar(&http, "http", "",
		"serve over HTTP at this address, such as 127.0.0.1:7337; with the value on, Retort uses the address in "+
			"the settings")
	return c
}

// serveHTTP serves clients over HTTP until a signal arrives. It then finishes running requests.
func (a serveCommands) serveHTTP(ctx context.Context, e *engine.Engine, address string, lean bool) error {
	if address == "on" {
		address = ""
	}
	l, err := e.Listen(engine.ListenOptions{Addr: address, Lean: lean})
	if err != nil {
		return err
	}
	fmt.Fprintln(a.stderr, "retort listens on", l.URL())
	return l.Serve(ctx)
}
