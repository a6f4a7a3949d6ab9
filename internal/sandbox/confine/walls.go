// Package confine restricts a child process before it does anything else. The process cuts itself off from the
// machine and then continues as a guest or becomes an interpreter. On Linux it uses namespaces without connections to
// the outside, a file system built from nothing, no capabilities, an allow list of system calls, Landlock if the
// kernel has it, and resource limits. Most things outside the sandbox are not merely forbidden: they do not exist
// inside it. The parent describes the confinement in a SandboxPlan. If any step fails, the child exits, so nothing
// runs partly confined.
package confine

import (
	"errors"
	"fmt"

	"retort/internal/sandbox/wire/shm"
)

// Argument is the first command-line argument of a process that must call Enter. The arguments after it are for the
// guest.
const Argument = "walls"

// ContainedArgument is the first command-line argument of a process that must call EnterContained: the first process
// of a container or a virtual machine. The second argument is its SandboxPlan as JSON. The others are for the guest.
const ContainedArgument = "contained"

// ProgramPath is the path of this binary in the root of a container or a virtual machine. A relay starts it again
// from there.
const ProgramPath = "/retort"

// RingPath is the path, in a container, of the file with the memory that the guest shares with the engine (package
// shm).
const RingPath = "/ring"

// SharesMemory reports whether the guest of a profile can share memory with the engine (package shm).
func SharesMemory(profile string) bool {
	return shm.Supported && (profile == "quickjs" || profile == "python")
}

// planDescriptor is the number of the descriptor from which a child reads its SandboxPlan.
const planDescriptor = 3

// ProxyPort is the port on a confined program's loopback address where its proxy listens. Nothing else is reachable
// in its network.
const ProxyPort = 3128

// SandboxPlan specifies how to confine a process and which program it then runs.
type SandboxPlan struct {
	// Profile names the list of allowed system calls: "quickjs", "python", "node", "bun", "deno", "command" or
	// "machine".
	Profile string
	// Argv is the command line of the interpreter that the process becomes. If it is empty, the process continues
	// with its own code.
	Argv []string
	// Env is the complete environment of the interpreter.
	Env []string
	// Mounts lists the contents of the file system, apart from the code that makes the interpreter a guest, /tmp and
	// a few devices. Everything is read-only unless its PlanMount says otherwise.
	Mounts []PlanMount
	// Harness is the path at which the files of the guest's harness, the code that makes an interpreter a guest,
	// appear.
	Harness string
	// Tmp is the size of /tmp in bytes. If it is 0, there is no /tmp.
	Tmp int64
	// Proc requests a /proc that shows only the processes inside the sandbox.
	Proc bool
	// User is the id of the user and group to which the process changes after all other preparations. It is an id in
	// the process's user namespace. 0 means no change.
	User int
	// Data bounds the memory that the process may map, in bytes. Seconds bounds its processor time. If they are 0,
	// the parent sets these limits when a program arrives.
	Data, Seconds int64
	// Processes bounds the number of threads.
	Processes int
	// Files bounds the number of open descriptors.
	Files int
	// Network determines whether the interpreter can connect to ProxyPort on its loopback address, and which process
	// listens there. A mode other than NoNetwork must not be combined with Weak.
	Network NetworkMode
	// Weak omits the namespaces and the file system built from nothing. Only Landlock, the system call filter and the
	// limits remain.
	Weak bool
	// Keep is the number of descriptors after the plan's descriptor that stay open for the interpreter. It must be 0
	// if Network is set.
	Keep int
	// Serves lets the interpreter listen on unix sockets in its /tmp and restrict its own system calls further. It
	// cannot connect to anything.
	Serves bool
	// Ring lets the guest map the memory that it shares with the engine, and makes this memory available on the
	// descriptor shm.Descriptor. If Contained is set, the memory is the file at RingPath, if that exists. Otherwise
	// it is the descriptor after the plan's, which Keep must include. Ring must not be combined with Network.
	Ring bool
	// RingAt is the offset in bytes at which the shared memory begins in its file. The descriptor is positioned at
	// this offset.
	RingAt int64
	// Contained marks the first process of a container or a virtual machine. Its file system is already complete, so
	// no root is built. Landlock restricts it to the Mounts, if there are any and the kernel supports it.
	Contained bool
}

// NetworkMode determines which process listens at ProxyPort, the only port in a sandbox's network.
type NetworkMode int

const (
	// NoNetwork means that no process listens and the program can create no socket.
	NoNetwork NetworkMode = iota
	// Handed makes the confined process open the listener and hand it over to the parent, by sending it over
	// descriptor 4.
	Handed
	// Relayed makes the confined process stay as a relay, which starts the guest as another process. It is for
	// sandboxes from which no descriptor can be sent to the parent. The relay multiplexes the guest's protocol stream
	// and its network connections (package mux) over its own standard input and output, and exits with the guest's
	// status. The relay must be the first process of its process namespace.
	Relayed
	// relayedNetwork is the mode in the plan of a relay's guest. It means that the relay has already opened the
	// listener.
	relayedNetwork
)

// RelayThreads bounds the threads of a relay, in addition to those of its guest.
const RelayThreads = 16

// PlanMount describes a file or directory of the host that appears in the sandbox.
type PlanMount struct {
	Source string // absolute path on the host, without symbolic links
	Target string // absolute path in the sandbox
	Empty  bool   // the sandbox gets an empty directory instead of the source
	// Writable lets the program write to the file or folder if its mode allows that. Everything else of the host is
	// read-only.
	Writable, Device bool
	// Same is the identity that the source must have. Nil allows any file.
	Same *FileIdentity
	// Below is a folder of the host that the source is relative to. A symbolic link on the path to the source is an
	// error, symbolic links in the folder are not followed, and nothing in it can be executed. If Below is empty, the
	// source is absolute.
	Below string
}

// FileIdentity identifies one version of a file. A different file, or the same file after a change, has a different
// identity.
type FileIdentity struct {
	Device, Inode uint64
	// Size is the size in bytes. Changed is the time of the last change of any kind, in nanoseconds.
	Size, Changed int64
}

// SetupError reports that a step of the confinement failed. The child writes it to standard error.
type SetupError struct {
	Step string // name of the step that failed, such as "user namespace" or "mount /proc"
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

// RelayEnded is the error of a relay whose guest has ended. It contains the guest's exit status.
type RelayEnded struct {
	Code int // exit status of the guest; if a signal ended it, 128 plus the number of the signal
}

func (e *RelayEnded) Error() string { return fmt.Sprintf("walls: the guest has ended (%d)", e.Code) }

// ExitStatus returns the status with which a process must exit after Enter or EnterContained has returned err.
func ExitStatus(err error) int {
	var ended *RelayEnded
	if errors.As(err, &ended) {
		return ended.Code
	}
	return 1
}

// ErrOther means that a file does not have the expected identity.
var ErrOther = errors.New("it has changed since it was checked")

// ErrUnsupported means that this package cannot confine a process on this operating system.
var ErrUnsupported = errors.New("walls: not on this operating system")
