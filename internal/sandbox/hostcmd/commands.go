// Package hostcmd finds the host's commands that programs in a sandbox may start. It determines which files a command
// needs in its sandbox and describes how the command ended. The backends run the commands.
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

// Threads bounds the number of threads of a command. A command is always a single process, because its system call
// filter forbids forking.
const Threads = 64

// CommandSet holds the commands that FindCommands has looked for: commands that can be started, and commands that
// cannot, with the reason.
type CommandSet struct {
	found   map[string]*HostCommand
	missing []sandbox.MissingCommand
}

// HostCommand represents a command that programs in a sandbox can start.
type HostCommand struct {
	Name   string
	Inside string               // path of the command in its sandbox
	Same   confine.FileIdentity // identity of the file that was found; only a file with this identity is started
	// Image returns the files of the host that the command needs, including its own.
	Image func() (*interpreter.FileImage, error)

	path   string   // absolute path on the host, without symbolic links
	prefix []string // arguments that precede the caller's arguments
	// script is the absolute path, without symbolic links, of the script that the file at path runs. It is empty if
	// the command is no script.
	script     string
	scriptSame confine.FileIdentity
}

// PinnedFiles returns the files that must be unchanged when the command starts. It maps the path of each file in the
// sandbox to the identity that the file had when it was found.
func (c *HostCommand) PinnedFiles() map[string]*confine.FileIdentity {
	pinned := map[string]*confine.FileIdentity{c.Inside: &c.Same}
	if c.script != "" {
		pinned[c.script] = &c.scriptSame
	}
	return pinned
}

// AddToCapabilities records in a backend's capabilities which commands can be started, and which cannot.
func (s CommandSet) AddToCapabilities(have *sandbox.Capabilities) {
	have.Commands = s.commandNames()
	have.NoCommands = s.missing
}

func (s CommandSet) commandNames() (names []string) {
	for name := range s.found {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Commands returns the commands that were found, sorted by name.
func (s CommandSet) Commands() (all []*HostCommand) {
	for _, name := range s.commandNames() {
		all = append(all, s.found[name])
	}
	return all
}

// FindCommand returns the command with the given name, or an error with the reason why it is not available.
func (s CommandSet) FindCommand(name string) (*HostCommand, *core.Error) {
	if c, ok := s.found[name]; ok {
		return c, nil
	}
	for _, m := range s.missing {
		if m.Command == name {
			return nil, m.Why
		}
	}
	return nil, RefusedError("the command %q does not exist in this sandbox", name)
}

// RefusedError returns the error for a command that was not started, of kind sandbox_unavailable.
func RefusedError(format string, args ...any) *core.Error {
	return core.Errorf(core.KindSandboxUnavailable, opCommand, format, args...)
}

// opCommand is the value of the Op field in this package's errors.
const opCommand = "isolate.command"

// UnstartableError returns the error for a command that cannot be started because of err. If this package has already
// made err, for example with RefusedError, err is returned unchanged.
func UnstartableError(name string, err error) *core.Error {
	var known *core.Error
	if !errors.As(err, &known) {
		return RefusedError("%s cannot be started: %w", name, err)
	}
	if known.Op == opCommand {
		return known
	}
	e := *known
	e.Op, e.Message = opCommand, name+" cannot be started: "+known.Message
	return &e
}

// SandboxPlan returns the part of a command's confinement that is the same in every backend: the profile of allowed
// system calls, the command line, and the limits on threads and files.
func (c *HostCommand) SandboxPlan(args []string) confine.SandboxPlan {
	p := confine.SandboxPlan{
		Profile: "command", Argv: slices.Concat([]string{c.Inside}, c.prefix, args), Tmp: tmpSize, Files: files,
		Processes: Threads,
	}
	if c.script != "" {
		p.Env = []string{"HOME=/tmp"} // npm does not start without one
	}
	return p
}

const (
	// tmpSize sets the size of the command's /tmp in bytes. The files there count as memory of the command.
	tmpSize = 64 << 20
	files   = 64
)

// BoundedOutput keeps the first bytes of a command's output and ends the command if it writes more. It is not safe
// for concurrent use.
type BoundedOutput struct {
	most  int
	end   func()
	data  []byte
	spilt bool
}

// NewOutput returns a BoundedOutput that keeps the first bytes of the output, at most as many as the argument most
// says. When the output exceeds this number, the BoundedOutput calls the function end once.
func NewOutput(most int, end func()) *BoundedOutput { return &BoundedOutput{most: most, end: end} }

// Write implements io.Writer. It never returns an error.
func (o *BoundedOutput) Write(p []byte) (int, error) {
	room := min(len(p), o.most-len(o.data))
	o.data = append(o.data, p[:room]...)
	if room < len(p) && !o.spilt {
		o.spilt = true
		o.end()
	}
	return len(p), nil
}

// NewResult returns the result of a command that exited with code. The command must no longer write to stdout and
// stderr.
func NewResult(code int, stdout, stderr *BoundedOutput) sandbox.CommandResult {
	return sandbox.CommandResult{Code: code, Stdout: stdout.data, Stderr: stderr.data, Truncated: stdout.spilt || stderr.spilt}
}

// StartError returns the reason why the sandboxed process that should execute a command failed to do so, or nil if it
// did not fail. It reads the reason from the output of that process. A command that fakes this output misleads only
// the program that started it.
func StartError(name string, ended sandbox.CommandResult) error {
	text := string(ended.Stderr)
	switch {
	case ended.Code == 0 || len(ended.Stdout) > 0 || !strings.HasPrefix(text, "walls: "):
		return nil
	case strings.Contains(text, confine.ErrOther.Error()):
		return ChangedError(name)
	}
	return RefusedError("%s could not be started: %.200q", name, strings.TrimSpace(text))
}

// ChangedError returns the error for a command whose file has changed since it was found.
func ChangedError(name string) *core.Error {
	return RefusedError("%s has changed since Retort started", name).WithHint("ask the user to restart Retort")
}

// MemoryError returns the error for a command that exceeded its program's memory limit.
func MemoryError(name string) *core.Error {
	return core.Errorf(
		core.KindLimit, "isolate.command", "%s needed more memory than the limit for programs", name,
	).WithHint("pass it less data at a time")
}

// CancelledError returns the error for a command that was ended together with its program.
func CancelledError(name string) *core.Error {
	return core.Errorf(core.KindCancelled, "isolate.command", "%s was ended with its program", name)
}
