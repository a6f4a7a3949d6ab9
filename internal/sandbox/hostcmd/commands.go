// Package hostcmd knows the programs of the machine's that programs may start: which files
// they are, what they need beside themselves, and how it is told that they ended. What they
// run in is for the backend.
package hostcmd

import (
	"errors"
	"slices"
	"strings"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/interpreter"
)

// Threads is how many threads a command may have. It never has a second process: no filter
// lets it fork.
const Threads = 64

// Set are the commands that settings name, which Look finds.
type Set struct {
	found   map[string]*Command
	missing []sandbox.MissingCommand
}

// Command is one of them.
type Command struct {
	Name   string
	Inside string           // where it lies in its sandbox
	Same   confine.Identity // of the file that was looked at, and that alone is started
	// Image is what it needs of the machine's files, itself among them.
	Image func() (*interpreter.Image, error)

	path       string   // absolute, without symbolic links
	prefix     []string // of its arguments
	script     string   // that path runs, as an absolute path without symbolic links; may be empty
	scriptSame confine.Identity
}

// Pinned are the files that must be those that were looked at, by where they lie in the sandbox.
func (c *Command) Pinned() map[string]*confine.Identity {
	pinned := map[string]*confine.Identity{c.Inside: &c.Same}
	if c.script != "" {
		pinned[c.script] = &c.scriptSame
	}
	return pinned
}

// Note adds to capabilities which commands can be started.
func (s Set) Note(have *sandbox.Capabilities) {
	have.Commands = s.names()
	have.NoCommands = s.missing
}

func (s Set) names() (names []string) {
	for name := range s.found {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// All are the commands that were found, by their names.
func (s Set) All() (all []*Command) {
	for _, name := range s.names() {
		all = append(all, s.found[name])
	}
	return all
}

// Find is a command, or why there is none of that name.
func (s Set) Find(name string) (*Command, *core.Error) {
	if c, ok := s.found[name]; ok {
		return c, nil
	}
	for _, m := range s.missing {
		if m.Command == name {
			return nil, m.Why
		}
	}
	return nil, Refuse("there is no command %q in this sandbox", name)
}

// Refuse is why a command is not started.
func Refuse(format string, args ...any) *core.Error {
	return core.Errorf(core.KindSandboxUnavailable, opCommand, format, args...)
}

// opCommand is the Op of refusals.
const opCommand = "isolate.command"

// Unstartable returns the refusal of a command that err keeps from being started. A cause that is such a refusal
// already is returned as it is.
func Unstartable(name string, err error) *core.Error {
	var known *core.Error
	if !errors.As(err, &known) {
		return Refuse("%s cannot be started: %w", name, err)
	}
	if known.Op == opCommand {
		return known
	}
	e := *known
	e.Op, e.Message = opCommand, name+" cannot be started: "+known.Message
	return &e
}

// Plan is what walls have for every command: the system calls that it may make, its arguments,
// and threads and files in bounds.
func (c *Command) Plan(args []string) confine.Plan {
	p := confine.Plan{Profile: "command", Argv: slices.Concat([]string{c.Inside}, c.prefix, args), Tmp: temporary, Files: files, Processes: Threads}
	if c.script != "" {
		p.Env = []string{"HOME=/tmp"} // npm does not start without one
	}
	return p
}

const (
	// temporary is the size of /tmp, in bytes. It is memory.
	temporary = 64 << 20
	files     = 64
)

// Output keeps the first bytes that are written to it, and ends whoever writes more. It is
// written by one goroutine.
type Output struct {
	most  int
	end   func()
	data  []byte
	spilt bool
}

// NewOutput keeps up to most bytes and calls end, once, when there are more.
func NewOutput(most int, end func()) *Output { return &Output{most: most, end: end} }

// Write implements io.Writer. It never fails.
func (o *Output) Write(p []byte) (int, error) {
	room := min(len(p), o.most-len(o.data))
	o.data = append(o.data, p[:room]...)
	if room < len(p) && !o.spilt {
		o.spilt = true
		o.end()
	}
	return len(p), nil
}

// Ended is how a command ended that exited with code and wrote to both. Nobody may write to
// them any more.
func Ended(code int, stdout, stderr *Output) sandbox.Ended {
	return sandbox.Ended{Code: code, Stdout: stdout.data, Stderr: stderr.data, Truncated: stdout.spilt || stderr.spilt}
}

// Unstarted says of a child that never became the command why; nil if it did. A command that
// says the same itself fools its own program, and nobody else.
func Unstarted(name string, ended sandbox.Ended) error {
	text := string(ended.Stderr)
	switch {
	case ended.Code == 0 || len(ended.Stdout) > 0 || !strings.HasPrefix(text, "walls: "):
		return nil
	case strings.Contains(text, confine.ErrOther.Error()):
		return Other(name)
	}
	return Refuse("%s could not be started: %.200q", name, strings.TrimSpace(text))
}

// Other refuses a command whose file has become another.
func Other(name string) *core.Error {
	return Refuse("%s is not the file that it was when Retort started", name).WithHint("have the person who runs Retort start it again")
}

// Starved says that a command took more memory than its program may have.
func Starved(name string) *core.Error {
	return core.Errorf(core.KindLimit, "isolate.command", "%s needed more memory than a program may have", name).WithHint("give it less at once")
}

// Cancelled says that a command was ended with its program.
func Cancelled(name string) *core.Error {
	return core.Errorf(core.KindCancelled, "isolate.command", "%s was ended with its program", name)
}
