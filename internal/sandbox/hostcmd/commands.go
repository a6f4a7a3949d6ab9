// Package hostcmd finds the programs of the machine that programs in a sandbox may start. It knows their files, what
// they need in a sandbox, and how their end is reported. The backends decide where they run.
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

// Threads bounds the threads of a command. It never has a second process, because no filter lets it fork.
const Threads = 64

// Set holds the commands of the settings that Look has found.
type Set struct {
	found   map[string]*Command
	missing []sandbox.MissingCommand
}

// Command represents a command that programs can start.
type Command struct {
	Name   string
	Inside string           // its path in its sandbox
	Same   confine.Identity // of the file that was found; only this file is started
	// Image returns the files of the machine that the command needs, including its own.
	Image func() (*interpreter.Image, error)

	path       string   // absolute, without symbolic links
	prefix     []string // of its arguments
	script     string   // that path runs, as an absolute path without symbolic links; may be empty
	scriptSame confine.Identity
}

// Pinned returns the identities of the files that must be unchanged, by their paths in the sandbox.
func (c *Command) Pinned() map[string]*confine.Identity {
	pinned := map[string]*confine.Identity{c.Inside: &c.Same}
	if c.script != "" {
		pinned[c.script] = &c.scriptSame
	}
	return pinned
}

// Note adds to the capabilities which commands can be started.
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

// All returns the commands that were found, sorted by name.
func (s Set) All() (all []*Command) {
	for _, name := range s.names() {
		all = append(all, s.found[name])
	}
	return all
}

// Find returns the command called name, or an error that says why there is none.
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

// Refuse returns the error of a command that is not started.
func Refuse(format string, args ...any) *core.Error {
	return core.Errorf(core.KindSandboxUnavailable, opCommand, format, args...)
}

// opCommand is the Op of these errors.
const opCommand = "isolate.command"

// Unstartable returns the error of a command that cannot be started because of err. If err is already such an error,
// it is returned unchanged.
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

// Plan returns the part of the confinement that is the same for every command: the allowed system calls, its
// arguments, and limits of threads and files.
func (c *Command) Plan(args []string) confine.Plan {
	p := confine.Plan{Profile: "command", Argv: slices.Concat([]string{c.Inside}, c.prefix, args), Tmp: temporary, Files: files, Processes: Threads}
	if c.script != "" {
		p.Env = []string{"HOME=/tmp"} // npm does not start without one
	}
	return p
}

const (
	// temporary sets the size of /tmp, in bytes. It counts as memory.
	temporary = 64 << 20
	files     = 64
)

// Output keeps the first bytes that are written to it. If more is written, it ends the writer. It is for use by one
// goroutine.
type Output struct {
	most  int
	end   func()
	data  []byte
	spilt bool
}

// NewOutput returns an Output that keeps up to most bytes. It calls end once if there are more.
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

// Ended returns the result of a command that exited with code and wrote to both outputs. Nothing may write to them
// any more.
func Ended(code int, stdout, stderr *Output) sandbox.Ended {
	return sandbox.Ended{Code: code, Stdout: stdout.data, Stderr: stderr.data, Truncated: stdout.spilt || stderr.spilt}
}

// Unstarted returns the reason why a child never became the command, or nil if it did. It relies on the child's
// output. A command that fakes this output misleads only the program that started it.
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

// Other returns the error of a command whose file has changed.
func Other(name string) *core.Error {
	return Refuse("%s has changed since Retort started", name).WithHint("ask the user to restart Retort")
}

// Starved returns the error of a command that exceeded its program's memory limit.
func Starved(name string) *core.Error {
	return core.Errorf(core.KindLimit, "isolate.command", "%s needed more memory than a program may have", name).WithHint("pass it less data at a time")
}

// Cancelled returns the error of a command that was ended together with its program.
func Cancelled(name string) *core.Error {
	return core.Errorf(core.KindCancelled, "isolate.command", "%s was ended with its program", name)
}
