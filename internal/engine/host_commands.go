package engine

import (
	"path"

	"retort/internal/config"
	"retort/internal/policy"
	"retort/internal/sandbox/hostcmd"
)

// allowedCommands converts the host commands in the settings, which programs may start, to policy rules.
func allowedCommands(s config.Settings) []policy.AllowedCommand {
	var all []policy.AllowedCommand
	for _, c := range s.Commands {
		all = append(all, policy.AllowedCommand{Name: path.Base(c.Command), Args: c.Args})
	}
	return all
}

// findHostCommands looks up the commands of the settings in PATH. An engine does this once, so commands that are
// installed later are not available to programs. The returned set also has the commands that programs may never
// start.
func findHostCommands(s config.Settings) hostcmd.CommandSet {
	var written []string
	for _, c := range s.Commands {
		written = append(written, c.Command)
	}
	return hostcmd.FindCommands(written)
}
