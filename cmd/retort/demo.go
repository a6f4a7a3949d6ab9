package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"retort/internal/core"
	"retort/internal/devel/demo"
	"retort/internal/engine"
)

// demoCommands defines the commands "retort demo" and "retort demo-server".
type demoCommands struct{ *app }

func (a demoCommands) demoServerCommand() *cobra.Command {
	return &cobra.Command{
		Use: "demo-server NAME", Short: "Run a bundled MCP server on standard input and output", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return demo.ServeByName(cmd.Context(), args[0], a.stdin, a.stdout)
		},
	}
}

func (a demoCommands) command() *cobra.Command {
	c := &cobra.Command{
		Use: "demo", Short: "Run a demonstration of Retort with sample servers", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := os.MkdirTemp("", "retort-demo-")
			if err != nil {
				return core.Errorf(core.KindInternal, "demo", "%w", err)
			}
			defer os.RemoveAll(home)
			servers, err := demoServers()
			if err != nil {
				return err
			}
			log, err := a.newLogger()
			if err != nil {
				return err
			}
			// The demo answers the questions itself, and one of its programs asks about 71 calls at once.
			const settings = "approval: {questions: 1000}\n"
			e, err := engine.Open(cmd.Context(), engine.Config{
				NoFiles: true, Settings: settings, Home: home, Keys: home, Servers: servers, Log: log,
			})
			if err != nil {
				return err
			}
			defer e.Close()
			return a.runDemo(core.WithChannel(cmd.Context(), approveAll), e)
		},
	}
	offerJSON(c)
	return c
}

// approveAll approves every question, and later calls of the same tool in the same execution. That is safe, because
// the bundled servers have no data to lose. Approving each of the thousand calls separately would take 20 seconds,
// because every question waits briefly for equal questions.
func approveAll(context.Context, core.Approval) (core.ApprovalAnswer, bool) {
	return core.ApprovalAnswer{Approve: true, Scope: core.ScopeRun}, true
}

// demoServers returns the configuration of the bundled servers. Each is a child process of this binary, started with
// "demo-server".
func demoServers() ([]engine.Server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, core.Errorf(core.KindInternal, "demo", "%w", err)
	}
	var servers []engine.Server
	for _, name := range demo.ServerNames() {
		servers = append(servers, engine.Server{Name: name, Command: self, Args: []string{"demo-server", name}})
	}
	return servers, nil
}

// runDemo runs the example programs one after another. It shows what each program returned, and how many tokens each
// one kept out of the model's context.
func (a demoCommands) runDemo(ctx context.Context, e *engine.Engine) error {
	a.waitForServers(ctx, e, time.Minute)
	servers := e.ListServers()
	tools, tokens := 0, 0
	for _, s := range servers {
		tools, tokens = tools+s.Tools, tokens+s.Tokens
	}
	var outcomes []core.Outcome
	if !a.asJSON {
		fmt.Fprintf(a.stdout, "%d servers, %d tools; their definitions have %s tokens.\n", len(servers), tools, groupThousands(tokens))
	}
	for i, p := range demo.ExamplePrograms() {
		o := a.executeWithProgress(ctx, e, core.ExecutionRequest{Code: p.Code, Name: p.Name + ".ts", Client: "retort demo"})
		outcomes = append(outcomes, o)
		if !a.asJSON {
			a.printDemoProgram(i+1, p, o)
		}
		if o.Status != core.StatusOK {
			a.printError(o.Error)
			return outcomeCode(o)
		}
	}
	if a.asJSON {
		return a.printJSON(map[string]any{"outcomes": outcomes})
	}
	a.printTokenLedger(outcomes)
	return nil
}

func (a demoCommands) printDemoProgram(n int, p demo.ExampleProgram, o core.Outcome) {
	fmt.Fprintf(a.stdout, "\n%s\n%s\n\n", a.styleText(a.stdout, bold, fmt.Sprintf("%d. %s", n, p.Title)), p.About)
	fmt.Fprintln(a.stdout, indentLines(a.styleText(a.stdout, dim, strings.TrimSpace(p.Code)), "    "))
	fmt.Fprint(a.stdout, indentLines(o.Output, "  │ "))
	if o.Result != nil {
		fmt.Fprintln(a.stdout, indentLines(prettyResult(o.Result), "  → "))
	}
	fmt.Fprintln(a.stdout, " ", a.styleText(a.stdout, green, outcomeSummary(o)))
}

func indentLines(text, by string) string {
	if text == "" {
		return ""
	}
	end := ""
	if strings.HasSuffix(text, "\n") {
		text, end = strings.TrimSuffix(text, "\n"), "\n"
	}
	return by + strings.ReplaceAll(text, "\n", "\n"+by) + end
}

func (a demoCommands) printTokenLedger(outcomes []core.Outcome) {
	var returned, data, definitions, calls int
	for _, o := range outcomes {
		returned += o.Stats.Tokens.Returned
		data += o.Stats.Tokens.AvoidedData
		definitions += o.Stats.Tokens.AvoidedDefinitions
		calls += o.Stats.ToolCalls
	}
	fmt.Fprintf(a.stdout, "\n%s\n", a.styleText(a.stdout, bold, "Token balance (o200k_base)"))
	for _, row := range []struct {
		what string
		n    int
	}{
		{"returned to the model", returned},
		{"avoided: tool definitions, once per session", definitions},
		{"avoided: arguments and results of " + groupThousands(calls) + " tool calls", data},
	} {
		fmt.Fprintf(a.stdout, "  %10s  %s\n", groupThousands(row.n), row.what)
	}
}
