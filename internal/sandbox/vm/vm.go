// Package vm runs each program in a virtual machine of its own, on a processor that QEMU
// makes: a kernel of Debian's and this binary, in memory, and nothing else. A machine is
// started once for each runtime, until its guest waits for a program; its memory is kept.
// Every program gets a copy of that machine, which is woken with another clock and other
// random numbers, runs the program and is thrown away.
package vm

import (
	"encoding/json"
	"os"
	"path/filepath"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/hostcmd"
	"retort/internal/sandbox/interpreter"
)

// Name is what settings and reports call the backend.
const Name = "vm"

// Options configure a backend.
type Options struct {
	// Guest starts a guest that speaks package wire on its standard input and output, and
	// understands machine.Argument and confine.Argument: the path of this program, and
	// arguments. Empty means this binary with the arguments "guest restored".
	Guest []string
	// QEMU is the path of QEMU's program, or a name that is looked for in PATH:
	// "qemu-system-x86_64" if empty.
	QEMU string
	// Firecracker is the path of Firecracker's program, or a name that is looked for in PATH:
	// "firecracker" if empty. It is used where KVM is of use, and is not needed.
	Firecracker string
	// Dir is where kernels and machines are kept, between engines too. It is made.
	Dir string
	// Kernel is a folder with boot/vmlinuz-* and lib/modules/*, as a package of a kernel
	// has. Empty means the one that Setup has chosen; without that there are no machines.
	Kernel string
	// Progress is told what takes long, if it is not nil.
	Progress func(string)
	// Warm is how many machines wait for programs once the first one was asked for,
	// MaxWarm how many when much is asked for: see warmpool.Kind.
	Warm, MaxWarm int
	// Limits are those that most programs have.
	Limits core.Limits
	// Interpreters are runtimes that the machine may have.
	Interpreters []interpreter.Interpreter
	// Commands are what programs can start, each in a machine of its own.
	Commands hostcmd.Set
	// Network, unless it is nil, gives programs of proxied interpreters a way to an
	// sandbox.Proxy, if their Host is one. Their machines have none all the same.
	Network *interpreter.Network
}

// Dir is where machines are kept that every engine of this user has in common: among the user's
// caches, and where there are none, in the engine's home.
func Dir(home string) string {
	if caches, err := os.UserCacheDir(); err == nil {
		return filepath.Join(caches, "retort", "machines")
	}
	return filepath.Join(home, "machines")
}

// chosenFile, in Dir, says which kernel Setup has chosen.
const chosenFile = "setup.json"

// chosen is what Setup leaves for backends.
type chosen struct {
	Kernel string `json:"kernel"` // a folder
	KVM    bool   `json:"kvm"`    // machines start so much sooner with it that it is used
	// Firecracker makes them, and not QEMU.
	Firecracker bool `json:"firecracker,omitempty"`
}

// Kernel is the folder of the kernel that Setup has chosen for a Dir.
func Kernel(dir string) (string, error) {
	c, err := choice(dir)
	return c.Kernel, err
}

// choice is what Setup has left in a Dir.
func choice(dir string) (c chosen, err error) {
	data, err := os.ReadFile(filepath.Join(dir, chosenFile))
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	return c, err
}

// Report is what Setup did.
type Report struct {
	Program  string            `json:"program"`  // that makes machines, and its version
	Kernel   string            `json:"kernel"`   // file
	Origin   string            `json:"origin"`   // where the kernel is from, in words
	Dir      string            `json:"dir"`      // where everything is kept
	KVM      bool              `json:"kvm"`      // the processor is the machine's own, and not emulated
	Why      string            `json:"why"`      // of that, in words
	Machines []Made            `json:"machines"` // one for each runtime, and one for commands if there are any
	Missing  []sandbox.Missing `json:"missing,omitempty"`
}

// Made is a machine that is kept.
type Made struct {
	Runtime string `json:"runtime"` // or "commands"
	Dir     string `json:"dir"`
	Bytes   int64  `json:"bytes"`    // on the disk
	Made    int64  `json:"made_ms"`  // how long it took to make it; next to nothing if it was there
	Woken   int64  `json:"woken_ms"` // how long it took to wake a copy
}

const quickjs = "quickjs"

// walled says what is between a program and the machine that another program makes.
func walled(program, kind, device string) []string {
	return []string{
		"a machine of its own, which is a program (" + kind + "); it has no disk, no network and no device but a " + device,
		"a kernel of its own, in which the walls of a process stand once more: namespaces, no files, no capabilities, an allow list of system calls",
		"walls of the same kind around " + program + ", with its own files and the machine's memory, and an allow list of its own; it ends with the engine",
	}
}
