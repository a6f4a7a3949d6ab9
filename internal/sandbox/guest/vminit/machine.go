// Package vminit implements the first process of a virtual machine. It prepares the machine for a guest, starts the
// guest in the same confinement as a child of the engine, and reports how the guest ended. The machine has no disk
// and no network. Its files are in one archive in memory, and its only connections are two ports of a serial device
// or of a vsock. One carries the guest's protocol stream (package wire). Over the other, the host sends the current
// time and unique random numbers after it has resumed a machine.
package vminit

import "retort/internal/sandbox/confine"

const (
	// Argument is the first command-line argument of this binary when the kernel starts it as the machine's first
	// process.
	Argument = "machine"
	// RestoredArgument is the argument of a guest in a machine that is saved and copied while the guest waits. Random
	// numbers that the guest draws before its program arrives are the same in every copy.
	RestoredArgument = "restored"
	// ConfigPath is the path of the file in the machine's archive that contains the MachineConfig as JSON.
	ConfigPath = "/machine.json"
	// Program is the path of this binary in the machine.
	Program = "/retort"
	// WirePort and ControlPort are the names of the serial device's ports.
	WirePort, ControlPort = "retort.wire", "retort.control"
	// WireVsock and ControlVsock are the ports of the vsock at which the machine listens.
	WireVsock, ControlVsock = 1024, 1025
)

// MachineConfig configures the first process of a machine: the kernel modules to load, the guest's command and the
// guest's confinement.
type MachineConfig struct {
	Modules []string            // files of kernel modules, in the order in which they must be loaded
	Command []string            // arguments with which Program becomes the guest
	Plan    confine.SandboxPlan // confinement of the guest
	// Vsock makes the machine listen on a vsock instead of opening ports of a serial device. Vsock connections end
	// when the machine is saved. The host then opens new ones.
	Vsock bool
	// Commands makes the machine wait for a CommandOrder and run its command, instead of running a guest.
	Commands bool
}

// WakeMessage represents the message, a line of JSON, that the host sends to a machine that it has just resumed. The
// machine answers with an empty line.
type WakeMessage struct {
	Now  int64  // current time, in nanoseconds since 1970
	Seed []byte // at least 32 unique random bytes
}

// GuestEnd is the message, a line of JSON, with which a machine reports that its guest has ended.
type GuestEnd struct {
	Status int    // exit status; -1 if a signal ended the guest or no guest was started
	Signal int    // number of the signal that ended the guest; 0 if it exited
	Stderr string // first bytes of the guest's standard error
	Failed string // reason why no guest was started; empty if one was
}
