package engine

import (
	"path"

	"retort/internal/config"
	"retort/internal/policy"
	"retort/internal/sandbox/hostcmd"
)

// commandsOf returns the commands that the settings let programs start, as policy rules.
func commandsOf(s config.Settings) []policy.AllowedCommand {
	var all []policy.AllowedCommand
	for _, c := range s.Commands {
		all = append(all, policy.AllowedCommand{Name: path.Base(c.Command), Args: c.Args})
	}
	return all
}

// findCommands looks the commands of the settings up in PATH. An engine does so once: commands installed later are
// not available to programs. The set also holds the commands that can never be started.
func findCommands(s config.Settings) hostcmd.CommandSet {
	var written []string
	for _, c := range s.Commands {
		written = append(written, c.Command)
	}
	return hostcmd.FindCommands(written)
}
