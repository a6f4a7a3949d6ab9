package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"retort/internal/core"
	"retort/internal/engine"
)

// listTimeout limits the wait for servers to list their tools. The listed definitions are then compared with the
// trusted ones.
const listTimeout = 15 * time.Second

// printChanges prints how the definitions of tools differ from the trusted ones. It prints the changes of the named
// servers and tools, or all changes if no names are given.
func (a toolCommands) printChanges(cmd *cobra.Command, e *engine.Engine, args []string) error {
	list, err := a.listChanges(cmd.Context(), e, args)
	if err != nil {
		return err
	}
	if a.asJSON {
		return a.printJSON(map[string]any{"changed": toChangeJSON(e, list)})
	}
	for _, c := range list {
		fmt.Fprintln(a.stdout, a.changeText(e, c))
	}
	if len(list) == 0 {
		fmt.Fprintln(a.stderr, "no tool has changed since it was trusted")
	}
	return nil
}

// changeJSON is the JSON form of a definition change. Flags lists suspicious text in the current definition.
type changeJSON struct {
	*engine.Change
	Flags []engine.Flag `json:"flags,omitempty"`
}

func toChangeJSON(e *engine.Engine, list []*engine.Change) []changeJSON {
	all := []changeJSON{}
	for _, c := range list {
		all = append(all, changeJSON{c, e.FlagsOf(c.Server, c.Tool)})
	}
	return all
}

// changeText formats a definition change with all information that a person needs to decide whether to trust it.
func (a toolCommands) changeText(e *engine.Engine, c *engine.Change) string {
	var b strings.Builder
	name := core.EscapeIllegible(c.Server + "." + c.Tool)
	fmt.Fprintf(&b, "%s (%s)\n", a.styleText(a.stdout, bold, name), c.Policy)
	if c.Unknown != "" {
		fmt.Fprintf(&b, "the trusted definition is not known: %s\n", core.EscapeIllegible(c.Unknown))
	} else {
		fmt.Fprintf(&b, "trusted %s, different since %s\n", formatTrustTime(c.Trusted), formatTrustTime(c.Noticed))
	}
	for line := range strings.SplitSeq(strings.TrimRight(c.Diff, "\n"), "\n") {
		code := dim
		switch {
		case strings.HasPrefix(line, "-"):
			code = red
		case strings.HasPrefix(line, "+"):
			code = green
		}
		fmt.Fprintln(&b, a.styleText(a.stdout, code, replaceControls(line)))
	}
	for _, f := range e.FlagsOf(c.Server, c.Tool) {
		fmt.Fprintln(&b, a.styleText(a.stdout, amber, "flagged:"), replaceControls(f.String()))
	}
	if c.Unknown != "" {
		name = core.EscapeIllegible(c.Server) // all or none
	}
	fmt.Fprintf(&b, "to trust the current definition: retort tools --trust %s\n", name)
	return b.String()
}

func formatTrustTime(t time.Time) string {
	if t.IsZero() {
		return "now"
	}
	return t.Local().Format("2006-01-02 15:04")
}

// trustChanges shows the definition changes. If the user agrees, it trusts exactly the definitions that it has shown.
func (a toolCommands) trustChanges(cmd *cobra.Command, e *engine.Engine, names []string, yes bool) error {
	looked, err := a.listChanges(cmd.Context(), e, names)
	if err != nil {
		return err
	}
	if len(looked) == 0 {
		if a.asJSON {
			return a.printJSON(map[string]any{"trusted": []string{}})
		}
		fmt.Fprintln(a.stderr, "it has not changed since it was trusted")
		return nil
	}
	var text strings.Builder
	trusted := []string{}
	for _, c := range looked {
		fmt.Fprintln(&text, a.changeText(e, c))
		trusted = append(trusted, c.Server+"."+c.Tool)
	}
	if err := a.confirmTrust(cmd.Context(), text.String(), len(looked), yes); err != nil {
		return err
	}
	if err := e.Trust(looked); err != nil {
		return err
	}
	if a.asJSON {
		return a.printJSON(map[string]any{"trusted": trusted})
	}
	for _, name := range trusted {
		fmt.Fprintln(a.stdout, "trusted", replaceControls(name))
	}
	return nil
}

// listChanges waits until the named servers have listed their tools. It returns the changed definitions of the named
// servers and tools, or of all servers if no names are given.
func (a toolCommands) listChanges(ctx context.Context, e *engine.Engine, names []string) ([]*engine.Change, error) {
	if len(names) == 0 {
		a.waitForServers(ctx, e, listTimeout)
		return e.ListChanges(""), nil
	}
	var list []*engine.Change
	for _, name := range names {
		server, tool, err := e.ResolveName(name)
		if err != nil { // it may be known once all are there
			a.waitForServers(ctx, e, listTimeout)
			if server, tool, err = e.ResolveName(name); err != nil {
				return nil, err
			}
		}
		a.waitForServers(ctx, e, listTimeout, server)
		for _, c := range e.ListChanges(server) {
			if tool == "" || c.Tool == tool {
				list = append(list, c)
			}
		}
	}
	return list, nil
}

// confirmTrust shows the changes and asks at the terminal whether to trust them. If yes is true, it does not ask.
func (a toolCommands) confirmTrust(ctx context.Context, text string, n int, yes bool) error {
	if yes {
		if !a.asJSON {
			fmt.Fprintln(a.stdout, text)
		}
		return nil
	}
	tty, err := openTerminal()
	if err != nil {
		return core.Errorf(core.KindPolicy, "tools", "approval needs a terminal, and this process has none").
			WithHint("run it in a terminal yourself; use --yes only in scripts that trust a known definition")
	}
	defer tty.Close()
	fmt.Fprintf(tty, "%s\nTrust these %d current definitions? [y/N] ", text, n)
	if line, err := readLine(ctx, tty); err != nil || line != "y" && line != "yes" {
		return core.Errorf(core.KindPolicy, "tools", "not trusted")
	}
	return nil
}
