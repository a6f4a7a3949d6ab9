package retort

import (
	"path"

	"retort/internal/config"
	"retort/internal/policy"
	"retort/internal/sandbox/hostcmd"
)

// commandsOf are the commands that programs may start, as the settings say.
func commandsOf(s config.Settings) []policy.Command {
	var all []policy.Command
	for _, c := range s.Commands {
		all = append(all, policy.Command{Name: path.Base(c.Command), Args: c.Args})
	}
	return all
}

// findCommands looks for them, with the PATH of now: an engine does so once, and what comes
// into it later is not started. Those that can never be started are noted.
func findCommands(s config.Settings) hostcmd.CommandSet {
	var written []string
	for _, c := range s.Commands {
		written = append(written, c.Command)
	}
	return hostcmd.FindCommands(written)
}
