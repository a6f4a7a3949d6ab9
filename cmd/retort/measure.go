package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"retort/internal/config/clientfiles"
	"retort/internal/engine"
)

// measureTimeout limits how long install waits for the servers to list their tools.
const measureTimeout = 15 * time.Second

// toolCost counts tools and the tokens that their definitions take in a model's context.
type toolCost struct {
	Servers int `json:"servers,omitempty"`
	Tools   int `json:"tools"`
	Tokens  int `json:"tokens"`
}

// installCost compares what the tools cost in each conversation before and after an install. The unit is tokens.
type installCost struct {
	Before     toolCost `json:"before"`
	Now        toolCost `json:"now"`
	NotCounted []string `json:"not_counted,omitempty"` // names of the servers that did not list their tools
}

// printAndMeasure prints what an install has changed. If measure is set, or if the user at the terminal agrees, it
// then starts the moved servers and prints how many tokens their tools cost. If that fails it prints a warning,
// because the install itself is complete.
func (a clientCommands) printAndMeasure(
	ctx context.Context, done *clientfiles.InstallResult, measure bool,
) error {
	if !a.asJSON {
		if err := a.printInstalled(done, nil); err != nil {
			return err
		}
		measure = measure || a.confirmMeasure(ctx, movedServers(done))
	}
	cost, err := (*installCost)(nil), error(nil)
	if measure {
		if cost, err = a.measureInstall(ctx, done); err != nil {
			a.printWarning("the tokens of the servers' tools were not counted: " + legibleLine(err.Error()))
		}
	}
	if a.asJSON {
		return a.printInstalled(done, cost)
	}
	if cost != nil {
		a.printInstallCost(cost)
	}
	if moved := movedServers(done); len(moved) > 0 {
		fmt.Fprintf(a.stderr, "try: ask your client \"What can you do with %s?\"\n", legibleLine(moved[0]))
	}
	fmt.Fprintf(a.stderr, "undo: retort uninstall %s\n", legibleLine(done.Client))
	return nil
}

// confirmMeasure asks at the terminal whether to start the servers. A server in a client's configuration file must not
// be started unless a person agrees. confirmMeasure therefore returns false without asking unless both standard input
// and standard error are terminals.
func (a clientCommands) confirmMeasure(ctx context.Context, servers []string) bool {
	if len(servers) == 0 || !term.IsTerminal(int(a.stdin.Fd())) || !term.IsTerminal(int(a.stderr.Fd())) {
		return false
	}
	tty, err := openTerminal()
	if err != nil {
		return false
	}
	defer tty.Close()
	fmt.Fprintf(
		tty, "Start %s once, to count the tokens of their tools (%s)? [y/N] ",
		formatPlural(len(servers), "server"), legibleLine(strings.Join(servers, ", ")),
	)
	line, err := readLine(ctx, tty)
	return err == nil && (line == "y" || line == "yes")
}

// measureInstall starts the servers that an install has moved, and counts their tools. It starts no other servers. If
// the install has moved no server, it returns nil.
func (a clientCommands) measureInstall(ctx context.Context, done *clientfiles.InstallResult) (*installCost, error) {
	moved := movedServers(done)
	if len(moved) == 0 {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "retort-measure-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	// The settings of files do not apply, because they can start commands, too. Nothing is stored, so that the tools
	// are not trusted before the first use.
	e, err := a.openEngine(ctx, func(c *engine.Config) {
		c.Files, c.OnlyServers, c.Settings = []string{done.Ours}, moved, "auditLogging: false\n"
		c.Home, c.Keys, c.Dir = filepath.Join(dir, "data"), filepath.Join(dir, "keys"), dir
		c.Reserve, c.Log = engine.ReserveNone, slog.New(slog.DiscardHandler)
	})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	a.waitForServers(ctx, e, measureTimeout, moved...)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cost := countServers(e.ListServers(), moved)
	cost.Now.Tools, cost.Now.Tokens, err = engine.OwnToolCost()
	return cost, err
}

// movedServers returns the names that the servers moved by an install have in Retort's configuration file.
func movedServers(done *clientfiles.InstallResult) (names []string) {
	for _, s := range done.Moved {
		name := s.Name
		if s.As != "" {
			name = s.As
		}
		if !s.Disabled && (s.State == clientfiles.Added || s.State == clientfiles.Same) {
			names = append(names, name)
		}
	}
	return names
}

// countServers adds up the tools of the servers whose names are in moved.
func countServers(servers []engine.ServerInfo, moved []string) *installCost {
	cost := &installCost{}
	for _, s := range servers {
		switch {
		case !slices.Contains(moved, s.Name):
		case s.Error != nil || s.Tools == 0:
			cost.NotCounted = append(cost.NotCounted, s.Name)
		default:
			cost.Before.Servers++
			cost.Before.Tools += s.Tools
			cost.Before.Tokens += s.Tokens
		}
	}
	return cost
}

func (a clientCommands) printInstallCost(cost *installCost) {
	if cost.Before.Servers > 0 {
		fmt.Fprintf(
			a.stderr, "before: %s, %s, %s tokens in every conversation\nnow: %s, %s tokens\n",
			formatPlural(cost.Before.Servers, "server"), formatPlural(cost.Before.Tools, "tool"), groupThousands(cost.Before.Tokens),
			formatPlural(cost.Now.Tools, "tool"), groupThousands(cost.Now.Tokens),
		)
	}
	if len(cost.NotCounted) > 0 {
		fmt.Fprintf(
			a.stderr, "not counted, because the tools of these servers could not be listed: %s; retort doctor says why\n",
			legibleLine(strings.Join(cost.NotCounted, ", ")),
		)
	}
}
