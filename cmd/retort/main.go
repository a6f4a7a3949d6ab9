// Command retort is one MCP server in front of all of a person's MCP servers.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	"retort/internal/base/memory"
	"retort/internal/base/reaper"
	"retort/internal/core"
	"retort/internal/engine"
)

// Exit codes. Scripts depend on their values, so these never change.
const (
	exitOK       = 0 // the command succeeded
	exitFailed   = 1 // the program or the call failed
	exitUsage    = 2 // the arguments or the configuration are wrong
	exitDenied   = 3 // a rule or a person refused the program or call, or it waits for approval
	exitInternal = 4 // Retort itself failed
)

// firstCollection is the heap size, in bytes, at which the first garbage collection starts. Most commands end before
// their heap is so large.
const firstCollection = 32 << 20

func main() {
	engine.Init()
	memory.DelayFirstCollection(firstCollection, 100)
	os.Exit(mainCode())
}

// mainCode runs the command line of this process and returns the exit code for main.
func mainCode() int {
	ctx, stop := contextUntilSignal()
	defer stop()
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	root := a.rootCommand()
	err := root.ExecuteContext(ctx)
	a.log.flushBriefly()
	if err == nil {
		return exitOK
	}
	var code exitError
	if errors.As(err, &code) {
		return int(code)
	}
	a.printError(err)
	return codeOf(err)
}

// contextUntilSignal returns a context that is cancelled by the first SIGINT, SIGTERM or SIGHUP. It ignores SIGHUP if
// the process was started so that it ignores that signal. After the first signal, running work has time to finish. The
// second signal ends the process immediately.
func contextUntilSignal() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	told := make(chan os.Signal, 2)
	signal.Notify(told, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signal.Notify(told, syscall.SIGHUP)
	}
	done := make(chan struct{})
	go func() {
		for range 2 {
			select {
			case <-told:
			case <-done:
				return
			}
			if ctx.Err() != nil {
				os.Exit(exitFailed)
			}
			cancel()
		}
	}()
	return ctx, func() {
		signal.Stop(told)
		close(done)
		cancel()
	}
}

// exitError is the error of a command that has already printed its error message. Its value is the exit code.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit %d", int(e)) }

func codeOf(err error) int {
	var e *core.Error
	if !errors.As(err, &e) {
		return exitUsage // what cobra says about flags and arguments
	}
	switch e.Kind {
	case core.KindInvalidArguments, core.KindToolNotFound, core.KindSandboxUnavailable:
		return exitUsage
	case core.KindPolicy, core.KindToolChanged:
		return exitDenied
	case core.KindInternal:
		return exitInternal
	}
	return exitFailed
}

// app holds the streams and flags that all commands share.
type app struct {
	stdin          *os.File
	stdout, stderr *os.File

	configs  []string
	home     string
	logLevel string
	logForm  string
	noColor  bool
	asJSON   bool

	log lossyWriter

	asking atomic.Bool // whether a question is shown at the terminal; nothing else is drawn meanwhile
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "retort",
		Short: "One MCP server in front of all your MCP servers",
		Long: `Retort is one MCP server in front of all your MCP servers. A model finds tools and writes one program that
calls them as typed functions. The model sees only the result of the program.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       engine.Version,
	}
	flags := root.PersistentFlags()
	flags.StringArrayVar(&a.configs, "config", nil,
		"configuration file: a client's file with MCP servers, or a retort.yaml (repeatable)")
	flags.StringVar(&a.home, "home", "",
		"data directory of Retort, which contains the files of programs and the audit log")
	flags.StringVar(&a.logLevel, "log-level", "warn", "least severe level of log messages: debug, info, warn or error")
	flags.StringVar(&a.logForm, "log-format", "text", "format of the log: text or json")
	flags.BoolVar(&a.noColor, "no-color", false, "print the output without colours")
	a.addJSON(root)
	tools, clients, demo := toolCommands{a}, clientCommands{a}, demoCommands{a}
	root.AddCommand(
		serveCommands{a}.command(), runCommands{a}.command(), askCommands{a}.command(), tools.searchCommand(), tools.describeCommand(), tools.call(), tools.toolsCommand(),
		approvalCommands{a}.command(), taskCommands{a}.command(), auditCommands{a}.command(), statsCommands{a}.command(),
		recommendCommands{a}.command(), workspaceCommands{a}.command(), skillCommands{a}.command(), templateCommands{a}.command(),
		authCommands{a}.command(), tokenCommands{a}.command(), generateCommands{a}.command(), clients.importCommand(), clients.installCommand(),
		clients.uninstallCommand(), configCommands{a}.command(), doctorCommands{a}.command(), vmCommands{a}.command(), benchCommands{a}.command(),
		demo.command(), demo.demoServerCommand(), a.versionCommand(), manCommands{a}.command(), initCommands{a}.command(),
	)
	arrangeHelp(root)
	return root
}

// openEngine opens an engine with the configuration that the shared flags name. change can modify the configuration
// first, and may be nil. openEngine prints the engine's warnings.
func (a *app) openEngine(ctx context.Context, change func(*engine.Config)) (*engine.Engine, error) {
	log, err := a.newLogger()
	if err != nil {
		return nil, err
	}
	c := engine.Config{Files: a.configs, Home: a.home, Log: log}
	if change != nil {
		change(&c)
	}
	if err := reaper.AdoptOrphans(); err != nil {
		a.printWarning(fmt.Sprintf("a server that kills its watchdog process can keep running after Retort ends: %v", err))
	}
	e, err := engine.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	e.LimitMemory()
	for _, w := range e.Warnings() {
		a.printWarning(w)
	}
	return e, nil
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of Retort", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(a.stdout, "retort", engine.Version)
			return err
		},
	}
}

func (a *app) retortConfig() engine.Config { return engine.Config{Files: a.configs, Home: a.home} }
