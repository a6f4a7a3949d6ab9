// Package gvisor runs each program in a gVisor container. gVisor is a kernel written in Go that runs as an ordinary
// process and handles the program's system calls. The package needs only the executable `runsc`, but no Docker, image
// or network. A container contains this binary and, for an interpreter, the interpreter's files from the machine.
package gvisor

import (
	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/hostcmd"
	"retort/internal/sandbox/interpreter"
)

// Name is the name of the backend in settings and reports.
const Name = "gvisor"

var kind = sandbox.BackendKind{Name: Name, Strength: sandbox.UserKernel}

// Options configures a gVisor backend.
type Options struct {
	// Guest gives the command line of the guest. The guest must speak the protocol of package wire on its standard
	// input and output and support confine.ContainedArgument. Empty means this binary with the argument "guest".
	Guest []string
	// Runsc gives the path of runsc, or a name to look up in PATH. Empty means "runsc".
	Runsc string
	// Dir names the folder for running containers. It is created if it is missing. Several engines may share it. An
	// engine removes the files that dead engines left behind. Empty means a folder in the system's directory for
	// temporary files.
	Dir string
	// Warm sets the number of containers that wait for programs after the first request, and MaxWarm the number under
	// load: see warmpool.GuestKind.
	Warm, MaxWarm int
	// Limits holds the limits that most programs have. Waiting containers are started with them.
	Limits core.Limits
	// Interpreters lists the runtimes that may be installed on the machine.
	Interpreters []interpreter.Interpreter
	// Commands holds the host commands that programs can start. Each command runs in its own container.
	Commands hostcmd.CommandSet
	// Network gives a program access to the network through its ToolHost, if that implements sandbox.ConnectionProxy
	// and the program's interpreter is marked as Proxied. The containers have no other network. If Network is nil,
	// programs have no connections.
	Network *interpreter.ProxyNetwork
}

const quickjs = "quickjs"

// walled lists, in words for users, what separates a program in a gVisor container from the host.
var walled = []string{
	"its own user-space kernel (gVisor, platform systrap); only this kernel calls the machine's kernel, with a few dozen system calls",
	"its own read-only file system; no network, no devices, no environment",
	"no capabilities, no new privileges, an allow list of system calls inside as well",
}
