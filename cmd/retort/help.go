package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"retort/internal/core"
)

// commandGroups returns the groups in which help lists the commands. Each group has the names of its commands, in
// order.
func commandGroups() []commandGroup {
	return []commandGroup{
		{"start", "Get started:", []string{"init", "demo", "install", "uninstall", "import", "doctor"}},
		{"use", "Find and use tools:", []string{"run", "search", "describe", "call", "tools", "ask", "skills", "generate"}},
		{"review", "Decide and review:", []string{"approvals", "tasks", "audit", "stats", "recommend", "workspace"}},
		{"serve", "Serve clients:", []string{"serve", "token", "auth"}},
		{"configure", "Configure and measure:", []string{"config", "pii", "templates", "vm", "bench"}},
	}
}

type commandGroup struct {
	id, title string
	commands  []string
}

// arrangeHelp assigns the commands of root to groups and gives each command an example. It also makes errors about
// arguments name the missing argument.
func arrangeHelp(root *cobra.Command) {
	for _, g := range commandGroups() {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, name := range g.commands {
			if c, _, err := root.Find([]string{name}); err == nil && c != root {
				c.GroupID = g.id
			}
		}
	}
	examples := commandExamples()
	var arrange func(c *cobra.Command)
	arrange = func(c *cobra.Command) {
		if example := examples[c.CommandPath()]; c.Example == "" && example != "" {
			c.Example = "  " + strings.ReplaceAll(example, "\n", "\n  ")
		}
		if check := c.Args; check != nil {
			c.Args = func(c *cobra.Command, args []string) error {
				if check(c, args) == nil {
					return nil
				}
				return argumentError(c, args)
			}
		}
		for _, sub := range c.Commands() {
			arrange(sub)
		}
	}
	arrange(root)
}

// argumentError returns the error for missing or extra arguments. It names the first missing argument.
func argumentError(c *cobra.Command, args []string) error {
	required, most := argumentNames(c.Use)
	message := ""
	switch {
	case len(args) < len(required):
		message = "missing " + required[len(args)]
	case len(args) > most:
		message = fmt.Sprintf("unexpected argument %q", args[most])
	default:
		message = "wrong arguments"
	}
	return core.Errorf(core.KindInvalidArguments, "arguments", "%s", message).WithHint("usage: %s", usageOf(c))
}

// usageOf returns the usage line of c, and an example if c has one.
func usageOf(c *cobra.Command) string {
	usage := c.CommandPath() + strings.TrimPrefix(c.Use, c.Name())
	example, _, _ := strings.Cut(strings.TrimSpace(c.Example), "\n")
	if example == "" {
		return usage
	}
	return usage + ", such as: " + example
}

// argumentNames returns the names of the required arguments in a command's usage line. most is the maximum number of
// arguments.
func argumentNames(use string) (required []string, most int) {
	words := strings.Fields(use)[1:]
	for _, w := range words {
		if strings.HasPrefix(w, "-") {
			break // flags and their values
		}
		most++
		if !strings.HasPrefix(w, "[") {
			required = append(required, strings.TrimSuffix(w, "..."))
		}
	}
	return required, most
}

// commandExamples returns an example for each command that does not define its own, by the path of the command.
func commandExamples() map[string]string {
	return map[string]string{
		"retort search":             `retort search "list issues of a repository"`,
		"retort describe":           "retort describe github.list_issues",
		"retort import":             "retort import --dry-run\nretort import --from cursor",
		"retort install":            "retort install cursor --dry-run\nretort install cursor",
		"retort uninstall":          "retort uninstall cursor",
		"retort doctor":             "retort doctor\nretort doctor github",
		"retort generate":           "retort generate --out servers",
		"retort serve":              "retort serve\nretort serve --http 127.0.0.1:7337",
		"retort version":            "retort version",
		"retort demo":               "retort demo",
		"retort ask":                `retort ask "How many issues did we close last week?"`,
		"retort approvals list":     "retort approvals list",
		"retort approvals show":     "retort approvals show ap_7f3k",
		"retort approvals approve":  "retort approvals approve ap_7f3k\nretort approvals approve ap_7f3k --scope run",
		"retort approvals deny":     `retort approvals deny ap_7f3k --note "use the test account"`,
		"retort audit export":       "retort audit export --format jsonl --since 24h > audit.jsonl",
		"retort audit query":        "retort audit query --kind call --since 1h\nretort audit query --json",
		"retort audit report":       "retort audit report --from 30d --standard gdpr --format html --output report.html",
		"retort audit verify":       "retort audit verify",
		"retort audit accept-clock": "retort audit accept-clock",
		"retort audit erase":        "retort audit erase --session support-42",
		"retort auth login":         "retort auth login linear",
		"retort auth status":        "retort auth status",
		"retort auth logout":        "retort auth logout linear",
		"retort bench":              "retort bench\nretort bench --json > bench.json",
		"retort bench targets":      "retort bench targets",
		"retort skills":             "retort skills",
		"retort skills list":        "retort skills list\nretort skills list invoices",
		"retort skills show":        "retort skills show count-invoices",
		"retort skills rm":          "retort skills rm count-invoices",
		"retort skills export":      "retort skills export count-invoices ./skills",
		"retort skills import":      "retort skills import ./skills/count-invoices",
		"retort tasks list":         "retort tasks list",
		"retort tasks show":         "retort tasks show ID",
		"retort tasks cancel":       "retort tasks cancel ID",
		"retort tasks wait":         "retort tasks wait ID",
		"retort templates":          "retort templates",
		"retort templates eject":    "retort templates eject .retort/templates",
		"retort token list":         "retort token list",
		"retort token revoke":       "retort token revoke anna",
		"retort vm setup":           "retort vm setup",
		"retort workspace ls":       "retort workspace ls\nretort workspace ls --session report",
		"retort workspace export":   "retort workspace export ./files --session report",
		"retort workspace gc":       "retort workspace gc",
	}
}
