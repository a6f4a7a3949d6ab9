package sandbox

import (
	"context"
	"regexp"
	"slices"

	"retort/internal/core"
)

// HostCommand describes a command of the host that a program starts. The caller has already checked that the program
// may start it.
type HostCommand struct {
	Name  string // name by which the backend knows the command
	Args  []string
	Stdin []byte
	// Folders lists the folders of the workspace that the command can see. A backend that cannot share folders
	// refuses the command if NeedsFolders returns true. Otherwise it starts the command without the folders.
	Folders []MountedPath
	// Full reports whether the writable folders exceed their quota. If they do, the command is killed. Full is nil if
	// no folder is writable.
	Full func() bool
}

// workspacePath matches an argument that contains a path of the workspace, such as "./workspace/x",
// "--file=/workspace" or "f('workspace/x')".
var workspacePath = regexp.MustCompile(
	`^workspace$|(?:^|^-\pL|[^\pL\pN_.-])(?:\.{0,2}/+)+workspace(?:[^\pL\pN_.-]|$)|(?:^|^-\pL|[^\pL\pN_./-])workspace/`,
)

// NeedsFolders reports whether the command has folders of the workspace and an argument names a path in the
// workspace.
func (c HostCommand) NeedsFolders() bool {
	return len(c.Folders) > 0 && slices.ContainsFunc(c.Args, workspacePath.MatchString)
}

// ExplainFailure explains why a command has failed in a backend that cannot share folders. It appends the explanation
// to the command's standard error, if a path of the workspace occurs in that standard error or in the command's
// input. For an interpreter, the input is a script.
func (c HostCommand) ExplainFailure(ended *CommandResult, backend string) {
	if len(c.Folders) == 0 || ended.Code == 0 || !workspacePath.Match(c.Stdin) && !workspacePath.Match(ended.Stderr) {
		return
	}
	e := NoFolders(c.Name, backend)
	ended.Stderr = append(ended.Stderr, "retort: "+e.Message+"; "+e.Hint+"\n"...)
}

// NoFolders returns the error for a command that needs files of the workspace in a backend that cannot share folders.
func NoFolders(command, backend string) *core.Error {
	return core.Errorf(
		core.KindSandboxUnavailable, "isolate.command",
		"an argument of %s names a file in the workspace, which commands in the %s sandbox cannot read", command, backend,
	).WithHint(
		"read the file in your program and pass its content as stdin, or ask the person who runs Retort to set sandboxMode: process",
	)
}

// MountedPath describes a file or folder that is visible in a command's sandbox. A symbolic link on the path to it is
// an error, and symbolic links in the folder are not followed.
type MountedPath struct {
	Below    string // absolute path of a folder of the host
	Name     string // path of the file or folder relative to Below; "." means Below itself
	Target   string // path in the sandbox
	Writable bool
}

// MaxStdin and the following constants bound the input and output of a command, in bytes.
const (
	MaxStdin  = 4 << 20
	MaxStdout = 1 << 20
	MaxStderr = 64 << 10
)

// CommandResult holds the exit status and the output of a command.
type CommandResult struct {
	Code           int // exit status; if a signal ended the command, 128 plus the number of the signal
	Stdout, Stderr []byte
	Truncated      bool // the command was ended because it wrote more than the permitted output
}

// CommandStarter is an optional interface of a Sandbox that can run host commands for its program. Each command runs
// in its own sandbox, which is at least as strong as the program's. The command sees nothing of the program except
// its input.
type CommandStarter interface {
	// Start runs the command. It returns when the command and all its processes have ended. The error is a
	// *core.Error and means that the command did not start or was killed.
	Start(ctx context.Context, c HostCommand) (CommandResult, error)
}

// NoCommands returns the error for a program that starts a command in a backend that cannot run commands.
func NoCommands(kind BackendKind) *core.Error {
	return core.Errorf(core.KindSandboxUnavailable, "isolate.command", "programs in %s cannot start commands", kind.Title()).
		WithHint("the sandboxes of Linux can; do without, or ask the person who runs Retort to choose one of these (sandboxMode)")
}

// Start implements CommandStarter. It returns an error if the wrapped sandbox does not implement it.
func (l labelledSandbox) Start(ctx context.Context, c HostCommand) (CommandResult, error) {
	to, ok := l.Sandbox.(CommandStarter)
	if !ok {
		return CommandResult{}, NoCommands(l.kind)
	}
	return to.Start(ctx, c)
}
