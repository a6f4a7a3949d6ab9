package process

import (
	"path"
	"slices"

	"retort/internal/pipeline/isolate"
	"retort/internal/run"
)

// Commands are programs of the machine's that programs in a Backend can start, by their
// names. LookCommands finds them.
type Commands struct {
	found   map[string]*command
	missing []isolate.MissingCommand
}

// commandName is the name by which programs start what the settings name: the last part of
// a path.
func commandName(written string) string { return path.Base(written) }

// note adds to capabilities which commands can be started.
func (c Commands) note(have *isolate.Capabilities) {
	for name := range c.found {
		have.Commands = append(have.Commands, name)
	}
	slices.Sort(have.Commands)
	have.NoCommands = c.missing
}

// bounded keeps the first bytes that are written to it, and ends whoever writes more.
type bounded struct {
	most  int
	end   func()
	data  []byte
	spilt bool
}

func (b *bounded) Write(p []byte) (int, error) {
	room := min(len(p), b.most-len(b.data))
	b.data = append(b.data, p[:room]...)
	if room < len(p) && !b.spilt {
		b.spilt = true
		b.end()
	}
	return len(p), nil
}

func noCommand(format string, args ...any) *run.Error {
	return run.Errorf(run.KindSandboxUnavailable, "process.command", format, args...)
}
