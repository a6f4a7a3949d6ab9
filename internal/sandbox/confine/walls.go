// Package confine restricts a child process before it does anything else: the process cuts itself off from the
// machine and then continues as a guest or becomes an interpreter. On Linux it uses namespaces without connections to
// the outside, a file system built from nothing, no capabilities, an allow list of system calls, Landlock if the
// kernel has it, and resource limits. What is outside is not forbidden but absent. The parent describes the
// confinement in a Plan. If any step fails, the child exits: nothing runs partly confined.
package confine

import (
	"errors"
	"fmt"

	"retort/internal/sandbox/wire/shm"
)

// Argument is the first argument of a process that calls Enter. Its other arguments are for the guest.
const Argument = "walls"

// ContainedArgument is the first argument of a process that calls EnterContained with the second. Its other arguments
// are for the guest.
const ContainedArgument = "contained"

// ProgramPath gives the path of this program in the root of a container or a virtual machine. A relay starts it again
// from there.
const ProgramPath = "/retort"

// RingPath gives the path in a container of the memory that its guest shares with the engine (package shm).
const RingPath = "/ring"

// SharesMemory reports whether the guest of a profile can use that memory.
func SharesMemory(profile string) bool {
	return shm.Supported && (profile == "quickjs" || profile == "python")
}

// planDescriptor gives the descriptor from which a child reads its Plan.
const planDescriptor = 3

// ProxyPort gives the port on a confined program's loopback address where its proxy listens. Nothing else is in its
// network.
const ProxyPort = 3128

// SandboxPlan describes how to confine a process and what is to run in it.
type SandboxPlan struct {
	// Profile names the list of allowed system calls: "quickjs", "python", "node", "bun", "deno", "command",
	// "machine".
	Profile string
	// Argv gives the command line of the interpreter to become. If it is empty, this process itself continues.
	Argv []string
	// Env holds the whole environment of the interpreter.
	Env []string
	// Mounts lists the contents of the file system, apart from the harness, /tmp and a few devices. All of it is
	// read-only unless a Mount says otherwise.
	Mounts []PlanMount
	// Harness gives the path at which the files of the guest's harness appear.
	Harness string
	// Tmp sets the size of /tmp in bytes. If it is 0, there is no /tmp.
	Tmp int64
	// Proc mounts a /proc that shows only the processes inside the sandbox.
	Proc bool
	// User gives the user and group id to change to in the user namespace after the rest is set up. 0 means no
	// change.
	User int
	// Data bounds the memory that the process may map, in bytes, and Seconds its processor time. With 0, the parent
	// sets them when a program arrives.
	Data, Seconds int64
	// Processes bounds the threads.
	Processes int
	// Files bounds the open descriptors.
	Files int
	// Network lets the interpreter connect to ProxyPort on its loopback address and determines who listens there. It
	// must not be combined with Weak.
	Network NetworkMode
	// Weak leaves out the namespaces and with them the file system: only Landlock, the filter of system calls and the
	// limits remain.
	Weak bool
	// Keep sets the number of descriptors after that of the plan that stay open for the interpreter. It must not be
	// combined with Network.
	Keep int
	// Serves lets the interpreter listen on unix sockets in its /tmp and restrict its own system calls further. It
	// cannot connect to anything.
	Serves bool
	// Ring puts the memory that the guest shares with the engine on shm.Descriptor and lets the guest map it. If
	// Contained is set, the memory is the file at RingPath, if that exists. Otherwise it is the descriptor after that
	// of the plan, which Keep must include. Ring must not be combined with Network.
	Ring bool
	// RingAt gives the offset in the file at which the memory begins, in bytes. The descriptor is positioned there.
	RingAt int64
	// Contained marks the first process of a container or a virtual machine whose file system is already complete. No
	// root is built then. Landlock is used if the kernel has it, for the Mounts if there are any.
	Contained bool
}

// NetworkMode determines who listens at ProxyPort in a network that has nothing else.
type NetworkMode int

const (
	// NoNetwork means that nothing listens and no socket can be made.
	NoNetwork NetworkMode = iota
	// Handed makes this process open the listener and send it to the parent over descriptor 4.
	Handed
	// Relayed makes this process stay as a relay that starts the guest as another process. It forwards the guest's
	// connections and the guest's own wire to the parent as streams (package mux) over its standard input and output,
	// and exits with the guest's status. It is for sandboxes from which no descriptor can be sent to the parent. The
	// process must be the first of its namespace.
	Relayed
	// relayedNetwork is what a relay puts into the plan of its guest: the listener exists already.
	relayedNetwork
)

// RelayThreads bounds the threads of a relay in addition to those of its guest.
const RelayThreads = 16

// PlanMount makes a file or directory of the machine appear in the sandbox.
type PlanMount struct {
	Source string // on the machine, without symbolic links
	Target string // absolute
	Empty  bool   // an empty directory takes the place of the source
	// Writable files and devices can be written to, if their modes allow it; nothing else
	// of the machine's can.
	Writable, Device bool
	// Same is the identity that the source must have; nil allows any file.
	Same *FileIdentity
	// Below is a folder of the machine that the source is relative to. The source is then a file or a folder.
	// Symbolic links on the way to it are not allowed, links in it are not followed, and nothing in it can be
	// executed. If Below is empty, the source is absolute.
	Below string
}

// FileIdentity distinguishes a file from all others, and from itself after a change.
type FileIdentity struct {
	Device, Inode uint64
	Size, Changed int64 // Changed is the time of the last change of any kind, in nanoseconds
}

// SetupError represents a step of the confinement that failed. The child writes it to standard error.
type SetupError struct {
	Step string // "user namespace", "mount /proc", …
	Err  error
}

func (f *SetupError) Error() string { return fmt.Sprintf("walls: %s: %v", f.Step, f.Err) }

func (f *SetupError) Unwrap() error { return f.Err }

func setupError(step string, err error) error {
	if err == nil {
		return nil
	}
	return &SetupError{step, err}
}

// RelayEnded is the error of a process that was a relay and whose guest has ended.
type RelayEnded struct {
	Code int // exit status, or 128 plus the number of a signal
}

func (e *RelayEnded) Error() string { return fmt.Sprintf("walls: the guest has ended (%d)", e.Code) }

// ExitStatus returns the status with which a process must exit when Enter or EnterContained has returned err.
func ExitStatus(err error) int {
	var ended *RelayEnded
	if errors.As(err, &ended) {
		return ended.Code
	}
	return 1
}

// ErrOther means that a file has another identity than expected.
var ErrOther = errors.New("it has changed since it was checked")

// ErrUnsupported means that this operating system has no confinement.
var ErrUnsupported = errors.New("walls: not on this operating system")
