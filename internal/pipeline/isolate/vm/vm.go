// Package vm runs each program in a virtual machine of its own, on a processor that QEMU
// makes: a kernel of Debian's and this binary, in memory, and nothing else. A machine is
// started once for each runtime, until its guest waits for a program; its memory is kept.
// Every program gets a copy of that machine, which is woken with another clock and other
// random numbers, runs the program and is thrown away.
package vm

import (
	"retort/internal/pipeline/isolate/interpreter"
	"retort/internal/run"
)

// Name is what settings and reports call the backend.
const Name = "vm"

// Options configure a backend.
type Options struct {
	// Guest starts a guest that speaks package wire on its standard input and output, and
	// understands machine.Argument and walls.Argument: the path of this program, and
	// arguments. Empty means this binary with the arguments "guest restored".
	Guest []string
	// QEMU is the path of QEMU's program, or a name that is looked for in PATH:
	// "qemu-system-x86_64" if empty.
	QEMU string
	// Dir is where kernels and machines are kept, between engines too. It is made.
	Dir string
	// Kernel is a folder with boot/vmlinuz-* and lib/modules/*, as a package of a kernel
	// has. Empty means the one that Setup has put into Dir, and else the machine's own.
	Kernel string
	// Progress is told what takes long, if it is not nil.
	Progress func(string)
	// Warm is how many machines wait for programs once the first one was asked for,
	// MaxWarm how many when much is asked for: see standby.Kind.
	Warm, MaxWarm int
	// Limits are those that most programs have.
	Limits run.Limits
	// Interpreters are runtimes that the machine may have.
	Interpreters []interpreter.Interpreter
	// Network, unless it is nil, gives programs of proxied interpreters a way to an
	// isolate.Proxy, if their Host is one. Their machines have none all the same.
	Network *interpreter.Network
}

const quickjs = "quickjs"

// walled says what is between a program and the machine.
var walled = []string{
	"a machine of its own, which is a program (QEMU microvm, its processor emulated); it has no disk, no network and no device but a serial one",
	"a kernel of its own, in which the walls of a process stand once more: namespaces, no files, no capabilities, an allow list of system calls",
	"QEMU itself has an allow list of system calls, no environment, and ends with the engine",
}
