// Package vm runs each program in its own virtual machine. The processor is emulated by QEMU or, with KVM, is the
// host's own. The machine contains a Linux kernel and this binary in memory, and for an interpreter the interpreter's
// files. For each runtime, one machine is booted until its guest waits for a program, and is then saved. Every
// program gets a copy of that machine. The copy is resumed with the current time and new random numbers, runs the
// program and is discarded.
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

// Name is the name of the backend in settings and reports.
const Name = "vm"

var kind = sandbox.BackendKind{Name: Name, Strength: sandbox.Machine}

// Options configures a virtual machine backend.
type Options struct {
	// Guest gives the command line of the guest. The guest must speak the protocol of package wire on its standard
	// input and output, and support vminit.Argument and confine.Argument. Empty means this binary with the arguments
	// "guest restored".
	Guest []string
	// QEMU gives the path of QEMU, or a name to look up in PATH. Empty means "qemu-system-x86_64".
	QEMU string
	// Firecracker gives the path of Firecracker, or a name to look up in PATH. Empty means "firecracker". Firecracker
	// is optional and used only with KVM.
	Firecracker string
	// Dir names the folder for kernels and saved machines. Several engines may share it. It is created if it is
	// missing.
	Dir string
	// Kernel names a folder with boot/vmlinuz-* and lib/modules/*, like an unpacked kernel package. Empty means the
	// kernel that SetupMachines has chosen. Without a kernel the backend is unavailable.
	Kernel string
	// Progress is called with a description of each step that takes long. It may be nil.
	Progress func(string)
	// Warm sets the number of machines that wait for programs once a first request has come, and MaxWarm the number
	// under load. Zero and negative numbers mean the same as in warmpool.GuestKind.
	Warm, MaxWarm int
	// Limits holds the limits that most programs have. Machines are started with them.
	Limits core.Limits
	// Interpreters lists the runtimes that may be installed on the host.
	Interpreters []interpreter.Interpreter
	// Commands holds the host commands that programs can start. Each command runs in its own machine.
	Commands hostcmd.CommandSet
	// Network gives a program access to the network through its ToolHost, if that implements sandbox.ConnectionProxy
	// and the program's interpreter is marked as Proxied. The machines have no other network. If Network is nil,
	// programs have no connections.
	Network *interpreter.ProxyNetwork
}

// chosenFile names the file in Options.Dir in which SetupMachines records the kernel that it has chosen.
const chosenFile = "setup.json"

// chosenKernel represents the content of chosenFile, from which backends read the kernel that SetupMachines has
// chosen.
type chosenKernel struct {
	Kernel string `json:"kernel"` // folder that contains the kernel
	KVM    bool   `json:"kvm"`    // machines use KVM, because they start enough faster with it (minSpeedup)
	// Firecracker states that machines use Firecracker and not QEMU.
	Firecracker bool `json:"firecracker,omitempty"`
}

// KernelDir returns the folder of the kernel that SetupMachines has chosen for the machines in dir.
func KernelDir(dir string) (string, error) {
	c, err := readChoice(dir)
	return c.Kernel, err
}

// readChoice reads the choice that SetupMachines has recorded in dir.
func readChoice(dir string) (c chosenKernel, err error) {
	data, err := os.ReadFile(filepath.Join(dir, chosenFile))
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	return c, err
}

// SetupReport describes what SetupMachines did.
type SetupReport struct {
	Program string `json:"program"` // name and version of the virtual machine monitor
	Kernel  string `json:"kernel"`  // path of the kernel file
	Origin  string `json:"origin"`  // description of where the kernel comes from
	Dir     string `json:"dir"`     // folder of kernels and saved machines
	// KVM means that machines use the host's processor through KVM. Otherwise the processor is emulated.
	KVM bool   `json:"kvm"`
	Why string `json:"why"` // reason for the value of KVM, in words
	// Machines lists the saved machines: one for each runtime, and one for commands if the settings allow any.
	Machines []SavedMachine           `json:"machines"`
	Missing  []sandbox.MissingRuntime `json:"missing,omitempty"`
}

// SavedMachine describes one saved machine in a SetupReport.
type SavedMachine struct {
	Runtime string `json:"runtime"` // name of a runtime, or "commands"
	Dir     string `json:"dir"`
	Bytes   int64  `json:"bytes"`    // disk space that the machine occupies, in bytes
	Made    int64  `json:"made_ms"`  // time that making the machine took; almost zero if the machine existed already
	Woken   int64  `json:"woken_ms"` // time that resuming a copy of the machine took
}

const quickjs = "quickjs"

// describeConfinement describes to users what separates a program from the host when the named monitor runs its
// machine.
func describeConfinement(program, kind, device string) []string {
	return []string{
		"its own virtual machine (" + kind + "), without disk, network or any device except a " + device,
		"its own kernel, in which the program is confined as in the process sandbox: namespaces, no files, no capabilities, an allow list of system calls",
		"the same confinement around " + program +
			", with its own files, the machine's memory and a separate allow list; it ends with the engine",
	}
}
