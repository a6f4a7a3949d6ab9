package sandbox

import (
	"context"

	"retort/internal/core"
)

// Command is a program of the machine's that a program starts. Who asks for it has looked
// whether that is allowed.
type Command struct {
	Name  string // as the backend knows it
	Args  []string
	Stdin []byte
	// Folders are those of the workspace that the command finds. A backend that Shares
	// nothing leaves them out.
	Folders []Folder
	// Full reports whether what can be written has come to hold more than it may; the command
	// is ended then. Nil: nothing can be written.
	Full func() bool
}

// Folder is a file or folder that a command finds in its sandbox. It is found over no symbolic
// link, and none in it is followed.
type Folder struct {
	Below    string // a folder of the machine, absolute
	Name     string // relative to that; "." is the folder itself
	Target   string // in the sandbox
	Writable bool
}

// Bounds on what goes into a command and comes out of it, in bytes.
const (
	MaxStdin  = 4 << 20
	MaxStdout = 1 << 20
	MaxStderr = 64 << 10
)

// Ended is how a command ended.
type Ended struct {
	Code           int // of its exit; 128 and the signal's number if one ended it
	Stdout, Stderr []byte
	Truncated      bool // it was ended since it wrote more than there is room for
}

// Commander is what a Sandbox may be besides: one that starts commands, while its program
// runs. Each has a sandbox of its own, with walls no weaker, and nothing of the program's
// but what it is given.
type Commander interface {
	// Start returns when the command has ended, and nothing of it is left. Its error is a
	// *core.Error: the command did not start, or had to be ended.
	Start(ctx context.Context, c Command) (Ended, error)
}

// NoCommands says that programs in a backend start no commands.
func NoCommands(backend string) *core.Error {
	return core.Errorf(core.KindSandboxUnavailable, "isolate.command", "programs in the %s sandbox start no commands", backend).
		WithHint("the sandboxes of Linux do; do without, or have the person who runs Retort choose one of these (sandboxMode)")
}

// Start implements Commander for backends that have it, and refuses for others.
func (l labelled) Start(ctx context.Context, c Command) (Ended, error) {
	to, ok := l.Sandbox.(Commander)
	if !ok {
		return Ended{}, NoCommands(l.backend)
	}
	return to.Start(ctx, c)
}
