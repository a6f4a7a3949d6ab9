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

// listOnce limits the wait for servers whose tools are compared with the trusted ones.
const listOnce = 15 * time.Second

// changed prints how tools differ from what was trusted, for the named servers and tools, or for all.
func (a toolCommands) changed(cmd *cobra.Command, e *engine.Engine, args []string) error {
	list, err := a.look(cmd.Context(), e, args)
	if err != nil {
		return err
	}
	if a.asJSON {
		return a.printJSON(map[string]any{"changed": described(e, list)})
	}
	for _, c := range list {
		fmt.Fprintln(a.stdout, a.changeText(e, c))
	}
	if len(list) == 0 {
		fmt.Fprintln(a.stderr, "no tool has changed since it was trusted")
	}
	return nil
}

// changeJSON is a change with the suspicious content in the current definition.
type changeJSON struct {
	*engine.Change
	Flags []engine.Flag `json:"flags,omitempty"`
}

func described(e *engine.Engine, list []*engine.Change) []changeJSON {
	all := []changeJSON{}
	for _, c := range list {
		all = append(all, changeJSON{c, e.Flags(c.Server, c.Tool)})
	}
	return all
}

// changeText formats a change with all that a person needs to decide about it.
func (a toolCommands) changeText(e *engine.Engine, c *engine.Change) string {
	var b strings.Builder
	name := core.EscapeIllegible(c.Server + "." + c.Tool)
	fmt.Fprintf(&b, "%s (%s)\n", a.style(a.stdout, bold, name), c.Policy)
	if c.Unknown != "" {
		fmt.Fprintf(&b, "it is not known what was trusted: %s\n", core.EscapeIllegible(c.Unknown))
	} else {
		fmt.Fprintf(&b, "trusted %s, another since %s\n", moment(c.Trusted), moment(c.Noticed))
	}
	for line := range strings.SplitSeq(strings.TrimRight(c.Diff, "\n"), "\n") {
		code := dim
		switch {
		case strings.HasPrefix(line, "-"):
			code = red
		case strings.HasPrefix(line, "+"):
			code = green
		}
		fmt.Fprintln(&b, a.style(a.stdout, code, printable(line)))
	}
	for _, f := range e.Flags(c.Server, c.Tool) {
		fmt.Fprintln(&b, a.style(a.stdout, amber, "flagged:"), printable(f.String()))
	}
	if c.Unknown != "" {
		name = core.EscapeIllegible(c.Server) // all or none
	}
	fmt.Fprintf(&b, "to trust it as it is now: retort tools --trust %s\n", name)
	return b.String()
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "now"
	}
	return t.Local().Format("2006-01-02 15:04")
}

// trust shows the changes and, once the user agrees, trusts exactly these.
func (a toolCommands) trust(cmd *cobra.Command, e *engine.Engine, names []string, yes bool) error {
	looked, err := a.look(cmd.Context(), e, names)
	if err != nil {
		return err
	}
	if len(looked) == 0 {
		if a.asJSON {
			return a.printJSON(map[string]any{"trusted": []string{}})
		}
		fmt.Fprintln(a.stderr, "nothing of it has changed since it was trusted")
		return nil
	}
	var text strings.Builder
	trusted := []string{}
	for _, c := range looked {
		fmt.Fprintln(&text, a.changeText(e, c))
		trusted = append(trusted, c.Server+"."+c.Tool)
	}
	if err := a.agreed(cmd.Context(), text.String(), len(looked), yes); err != nil {
		return err
	}
	if err := e.Trust(looked); err != nil {
		return err
	}
	if a.asJSON {
		return a.printJSON(map[string]any{"trusted": trusted})
	}
	for _, name := range trusted {
		fmt.Fprintln(a.stdout, "trusted", printable(name))
	}
	return nil
}

// look waits for the named servers to be listed, and returns the changes of the named servers and tools. No names
// mean all.
func (a toolCommands) look(ctx context.Context, e *engine.Engine, names []string) ([]*engine.Change, error) {
	if len(names) == 0 {
		a.settle(ctx, e, listOnce)
		return e.Changes(""), nil
	}
	var list []*engine.Change
	for _, name := range names {
		server, tool, err := e.Find(name)
		if err != nil { // it may be known once all are there
			a.settle(ctx, e, listOnce)
			if server, tool, err = e.Find(name); err != nil {
				return nil, err
			}
		}
		a.settle(ctx, e, listOnce, server)
		for _, c := range e.Changes(server) {
			if tool == "" || c.Tool == tool {
				list = append(list, c)
			}
		}
	}
	return list, nil
}

// agreed shows the changes and asks at the terminal whether to trust them, unless yes is already given.
func (a toolCommands) agreed(ctx context.Context, text string, n int, yes bool) error {
	if yes {
		if !a.asJSON {
			fmt.Fprintln(a.stdout, text)
		}
		return nil
	}
	tty, err := terminal()
	if err != nil {
		return core.Errorf(core.KindPolicy, "tools", "approval is given in a terminal, and this process has none").
			WithHint("run it in a terminal yourself; use --yes only in scripts that trust a known definition")
	}
	defer tty.Close()
	fmt.Fprintf(tty, "%s\nTrust %d definitions as they are now? [y/N] ", text, n)
	if line, err := readLine(ctx, tty); err != nil || line != "y" && line != "yes" {
		return core.Errorf(core.KindPolicy, "tools", "not trusted")
	}
	return nil
}
