// Package gvisor runs each program in a gVisor container. Its kernel is a user-space program in Go that handles the
// system calls of the program. The package needs only `runsc`: no Docker, no image, no network. A container contains
// this binary and, for an interpreter, the interpreter's files from the machine.
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

// Options configure a backend.
type Options struct {
	// Guest gives the path and the arguments of the guest program. It must speak package wire on its standard input
	// and output and support confine.ContainedArgument. Empty means this binary with the argument "guest".
	Guest []string
	// Runsc gives the path of runsc, or a name to look up in PATH. Empty means "runsc".
	Runsc string
	// Dir names the folder for running containers. It is created if missing. Several engines may share it: what dead
	// engines left behind is removed. Empty means a folder among the system's temporary files.
	Dir string
	// Warm sets the number of containers that wait for programs after the first request, and MaxWarm the number under
	// load: see warmpool.GuestKind.
	Warm, MaxWarm int
	// Limits holds the limits that most programs have.
	Limits core.Limits
	// Interpreters lists the runtimes that the machine may have.
	Interpreters []interpreter.Interpreter
	// Commands lists the host commands that programs can start. Each runs in a container of its own.
	Commands hostcmd.CommandSet
	// Network connects programs of proxied interpreters to a sandbox.Proxy, if their Host is one. Their containers
	// have no other network. Nil means no connections.
	Network *interpreter.ProxyNetwork
}

const quickjs = "quickjs"

// walled describes what separates a program from the machine.
var walled = []string{
	"a user-space kernel of its own (gVisor, platform systrap); only this kernel calls the machine's, with a few dozen system calls",
	"a file system of its own, read-only; no network, no devices, no environment",
	"no capabilities, no new privileges, an allow list of system calls inside as well",
}
