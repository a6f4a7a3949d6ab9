// Package vminit is the first process of a virtual machine. It prepares the machine for a guest,
// starts the guest in the same confinement as a child of the engine, and reports how it ended.
// The machine has no disk and no network. It consists of one archive in memory, and its only
// connections are two ports of a serial device or of a vsock. One is the guest's wire. Over the
// other, the host sends a machine that it has just resumed the current time and unique random
// numbers.
package vminit

import "retort/internal/sandbox/confine"

const (
	// Argument is the first argument of the process, as the kernel starts it.
	Argument = "machine"
	// RestoredArgument follows the argument of a guest that may be copied while it waits. Random numbers that it has
	// drawn before its program arrives are the same in every copy.
	RestoredArgument = "restored"
	// ConfigPath gives the path of the Config in the archive, as JSON.
	ConfigPath = "/machine.json"
	// Program gives the path of this binary in the machine.
	Program = "/retort"
	// WirePort and ControlPort are the names of the ports.
	WirePort, ControlPort = "retort.wire", "retort.control"
	// WireVsock and ControlVsock are the ports of a vsock at which the machine listens.
	WireVsock, ControlVsock = 1024, 1025
)

// MachineConfig describes what a machine is for.
type MachineConfig struct {
	Modules []string            // of the kernel, to be loaded in this order
	Command []string            // arguments with which Program becomes a guest, confined by Plan
	Plan    confine.SandboxPlan // the confinement of the guest
	// Vsock makes the machine listen on a vsock instead of opening ports of a serial device. Connections end when the
	// machine is saved; the host then makes new ones.
	Vsock bool
	// Commands makes the machine wait for an Order on its wire and run that instead of a guest.
	Commands bool
}

// WakeMessage represents the message of the host to a machine that it has just resumed, as a line of JSON. The answer is an
// empty line.
type WakeMessage struct {
	Now  int64  // nanoseconds since 1970
	Seed []byte // at least 32 bytes
}

// GuestEnd represents the message of a machine whose guest has ended, as a line of JSON.
type GuestEnd struct {
	Status int    // exit status, or -1
	Signal int    // that ended the guest, or 0
	Stderr string // its first bytes
	Failed string // why no guest was started; empty if one was
}
