// Package gvisor runs each program in a container of gVisor's: behind a kernel that
// is a program itself, written in Go, and answers the system calls that a program
// makes. It needs `runsc` and nothing else: no Docker, no image, no network. What is
// in a container is this binary, and for Python the files of the machine's.
package gvisor

import (
	"retort/internal/core"
	"retort/internal/sandbox/hostcmd"
	"retort/internal/sandbox/interpreter"
)

// Name is what settings and reports call the backend.
const Name = "gvisor"

// Options configure a backend.
type Options struct {
	// Guest starts a guest that speaks package wire on its standard input and output,
	// and understands confine.ContainedArgument: the path of this program, and arguments.
	// Empty means this binary with the argument "guest".
	Guest []string
	// Runsc is the path of gVisor's program, or a name that is looked for in PATH:
	// "runsc" if empty.
	Runsc string
	// Dir is where containers are while they run. It is made, and may be shared with
	// other engines, of which what a killed one left is removed. Empty means a folder
	// among the system's temporary files.
	Dir string
	// Warm is how many containers wait for programs once the first one was asked for,
	// MaxWarm how many when much is asked for: see warmpool.Kind.
	Warm, MaxWarm int
	// Limits are those that most programs have.
	Limits core.Limits
	// Interpreters are runtimes that the machine may have.
	Interpreters []interpreter.Interpreter
	// Commands are what programs can start, each in a container of its own.
	Commands hostcmd.Set
	// Network, unless it is nil, gives programs of proxied interpreters a way to an
	// sandbox.Proxy, if their Host is one. Their containers have none all the same.
	Network *interpreter.Network
}

const quickjs = "quickjs"

// walled says what is between a program and the machine.
var walled = []string{
	"a kernel of its own, which is a program (gVisor, platform systrap); the machine's kernel is asked for a few dozen system calls by that alone",
	"a file system of its own, read-only; no network, no devices, no environment",
	"no capabilities, no new privileges, an allow list of system calls inside as well",
}
