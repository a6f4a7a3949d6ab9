package retort

import (
	"path"

	"retort/internal/config"
	"retort/internal/pipeline/isolate/commands"
	"retort/internal/policy"
)

// commandsOf are the commands that programs may start, as the settings say.
func commandsOf(s config.Settings) []policy.Command {
	var all []policy.Command
	for _, c := range s.Commands {
		all = append(all, policy.Command{Name: path.Base(c.Command), Args: c.Args})
	}
	return all
}

// findCommands looks for them once, with the PATH that the engine has: what comes into it
// later is not started. One that can never be started refuses the settings.
func (p *parts) findCommands() (err error) {
	var written []string
	for _, c := range p.config.Settings.Commands {
		written = append(written, c.Command)
	}
	p.commands, err = commands.Look(written)
	return err
}
