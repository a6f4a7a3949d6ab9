// Package sandbox runs untrusted programs isolated from the machine. A Backend creates sandboxes. A Sandbox runs one
// program and is then discarded. The program can reach the outside only through its ToolHost.
package sandbox

import (
	"context"
	"encoding/json"
	"net"

	"retort/internal/core"
)

// BackendKind holds the properties of a backend that are the same on every machine.
type BackendKind struct {
	Name string // name in settings, requests and reports, such as "process"
	// Strength is Process, Container, UserKernel or Machine. The Strength in Capabilities may be lower or higher on
	// this machine.
	Strength int
}

// Title returns the name of the backend for messages, such as "the process sandbox".
func (k BackendKind) Title() string { return "the " + k.Name + " sandbox" }

// Backend creates sandboxes of one kind, such as processes, containers or virtual machines.
type Backend interface {
	// Kind returns the backend's fixed properties. Unlike Capabilities, it never starts a sandbox and returns
	// immediately.
	Kind() BackendKind
	// Capabilities returns the properties of the backend on this machine, such as its strength and runtimes. It may
	// start a sandbox to find them out.
	Capabilities() Capabilities
	// Prepare returns a new sandbox. If it fails, no process or file of the sandbox is left. The error is a
	// *core.Error of kind sandbox_unavailable or internal.
	Prepare(ctx context.Context, s SandboxSpec) (Sandbox, error)
	// Close ends every sandbox. When it returns, all their processes and files are gone.
	Close() error
}

// Sandbox runs one program, once.
type Sandbox interface {
	// Run runs the program. It returns when the program has ended and every call it made has returned. If the program
	// fails, the Status of the RunReport says so; an error means that the sandbox failed. Cancelling ctx ends the
	// program with the status cancelled.
	Run(ctx context.Context, p core.CheckedProgram, h ToolHost) (RunReport, error)
	// Close ends the sandbox. It is idempotent and safe during Run.
	Close() error
}

// ToolHost answers the calls of a program. The calls are the program's only way out of the sandbox. Call must be safe
// for concurrent use. Its errors are *core.Error, and the program gets them as a ToolError.
type ToolHost interface {
	Call(ctx context.Context, c core.ToolCall) (core.CallResult, error)
}

// ConnectionProxy is an optional interface of a ToolHost. It serves the connections that a program opens to its
// network proxy. A program that needs a proxy runs only in a backend whose Capabilities have Proxies set.
type ConnectionProxy interface {
	// ServeConn serves conn until the program closes it or ctx ends. ServeConn then closes conn. It must be safe for
	// concurrent use.
	ServeConn(ctx context.Context, conn net.Conn)
}

// HostFunc is a function that implements ToolHost.
type HostFunc func(ctx context.Context, c core.ToolCall) (core.CallResult, error)

// Call calls f(ctx, c).
func (f HostFunc) Call(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
	return f(ctx, c)
}

// SandboxSpec describes the sandbox that a program needs.
type SandboxSpec struct {
	Runtime string          // name of the runtime, such as "quickjs" or "python"
	Limits  core.Limits     // limits of the program; every field must be set
	Code    string          // code of the program that will run; empty if not known yet
	Floor   MinimumStrength // minimum strength that the sandbox must have
	Proxied bool            // the program opens network connections, so its ToolHost must be a ConnectionProxy
}

// RunReport describes how a program ended in its sandbox.
type RunReport struct {
	Status      core.OutcomeStatus
	Value       json.RawMessage // value of the program as JSON; nil if it is undefined
	Error       *core.Error     // error of the program; its positions refer to the code that the runtime evaluated
	Output      []byte          // console output of the program, cut at Limits.Output
	MemoryBytes int64           // peak memory of the sandbox, in bytes; 0 if unknown
	Warnings    []string
	Runtime     string
	Backend     string
	// Isolation is the name of the sandbox's isolation strength, as IsolationName returns it. The BackendChooser sets
	// it.
	Isolation string
	Bounds    string // mechanisms that enforce the limits, such as "cgroup v2" or "rlimits, watcher"
}

// MissingRuntime names a runtime that a backend cannot run, with the reason.
type MissingRuntime struct {
	Runtime string
	Why     *core.Error
}

// MissingCommand names a command that the settings allow but that cannot be started on this machine, with the reason.
type MissingCommand struct {
	Command string
	Why     *core.Error
}

// Capabilities describes what a backend can do on this machine, so that a BackendChooser can select one.
type Capabilities struct {
	Name     string           // name of the backend, such as "process"
	Runtimes []string         // runtimes that the backend can run on this machine
	Missing  []MissingRuntime // runtimes that the backend could run if they were installed
	// Strength is Process, Container, UserKernel or Machine, or a lower number if the system offers less. 0 means no
	// isolation.
	Strength int
	Walls    []string // descriptions, for users, of what separates a program from the host
	// Warning says what this machine lacks for the backend's full strength. It is empty if nothing is missing.
	Warning string
	// Unavailable is the reason why the backend cannot be used on this machine, with a hint on how to set it up. It is
	// nil if the backend can be used.
	Unavailable *core.Error
	// Proxies reports whether the backend passes programs' network connections to a ToolHost that is a
	// ConnectionProxy.
	Proxies bool
	// Commands lists the commands from the settings that programs can start. NoCommands lists those that they cannot
	// start.
	Commands   []string         `json:",omitempty"`
	NoCommands []MissingCommand `json:",omitempty"`
}
