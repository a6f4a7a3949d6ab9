// Package confine is what a child process does before anything else: it shuts
// itself off from the machine, and then goes on as a guest or becomes an
// interpreter. On Linux the walls are namespaces without a way out, a file system
// built from nothing, no capabilities, an allow list of system calls, Landlock
// where the kernel has it, and resource limits. What is outside of them is not
// forbidden but absent.
//
// The parent says in a Plan what to build. A wall that cannot be built ends the
// child: nothing runs behind half of them.
package confine

import (
	"errors"
	"fmt"

	"retort/internal/sandbox/wire/shm"
)

// Argument is the first argument of a process that calls Enter. The rest of its
// arguments are for the guest.
const Argument = "walls"

// ContainedArgument is the first argument of a process that calls EnterContained with
// the second. The rest of its arguments are for the guest.
const ContainedArgument = "contained"

// ProgramPath is where this program lies in the root of a container or a machine. Where one
// stays as a relay, it is started from there once more.
const ProgramPath = "/retort"

// RingPath is where a container has the memory that its guest shares with the engine (package
// ring).
const RingPath = "/ring"

// Shares says whether the guest of a profile knows of that memory.
func Shares(profile string) bool {
	return shm.Supported && (profile == "quickjs" || profile == "python")
}

// planDescriptor is where a child finds its Plan.
const planDescriptor = 3

// ProxyPort is the port at which a program behind the walls finds its proxy, on its own
// loopback address. Nothing else is in its network.
const ProxyPort = 3128

// Plan says what walls to build, and what is to live behind them.
type Plan struct {
	// Profile names the system calls that stay: "quickjs", "python", "node",
	// "bun", "deno", "command", "machine".
	Profile string
	// Argv is the command line of the interpreter to become. If it is empty,
	// this process itself goes on.
	Argv []string
	// Env is all that the interpreter has of an environment.
	Env []string
	// Mounts are what the file system has, apart from Files, /tmp and a few
	// devices. All of it is read-only.
	Mounts []Mount
	// Harness is the path at which the files of the guest's harness appear.
	Harness string
	// Tmp is the size of /tmp in bytes; there is none if it is 0.
	Tmp int64
	// Proc mounts a /proc that shows the processes behind the walls alone.
	Proc bool
	// User is the user and group id to change to in the user namespace, after
	// the walls are built. 0 means that there is nothing to change.
	User int
	// Data is how many bytes the process may map, and Seconds how much processor time it
	// has. 0 leaves them to the parent, which sets them when a program comes.
	Data, Seconds int64
	// Processes bounds the threads.
	Processes int
	// Files bounds the open descriptors.
	Files int
	// Network lets the interpreter connect to ProxyPort on its loopback address, and says
	// who listens there. Never with Weak.
	Network Network
	// Weak leaves out the namespaces and with them the file system: Landlock,
	// system calls and limits are all that is left.
	Weak bool
	// Keep is how many descriptors after that of the plan stay open for the interpreter.
	// Never with Network.
	Keep int
	// Serves lets the interpreter listen at sockets between processes, which lie in its /tmp,
	// and narrow its own system calls further. It can connect with nobody.
	Serves bool
	// Ring has the guest find the memory that it shares with the engine on shm.Descriptor, and
	// map it. It is the file at RingPath for who is Contained, if that is there, else what is
	// open behind the plan, which is to be kept. Never with Network.
	Ring bool
	// RingAt is where in that the memory begins, in bytes: what is open stands there.
	RingAt int64
	// Contained says that this is the first process of a container or a machine
	// whose file system is already as it should be: none is built, and Landlock
	// is taken where the kernel has it, for what Mounts name if there are any.
	Contained bool
}

// Network is who listens at ProxyPort in a network that has nothing else.
type Network int

const (
	// NoNetwork has nobody listen, and no socket made.
	NoNetwork Network = iota
	// Handed has this process begin to listen, and hand the listener to the parent over
	// descriptor 4.
	Handed
	// Relayed has this process stay, and start the guest as another one. It leads
	// connections to the parent beside what the guest says, as lanes (package lanes) on its
	// standard input and output, and ends as the guest does. It is for where no descriptor
	// reaches the parent, and must be the first process of its namespace.
	Relayed
	// reached is what a relay tells the guest: somebody listens.
	reached
)

// RelayThreads is how many threads a relay has, at most, beside those of its guest.
const RelayThreads = 16

// Mount makes a file or directory of the machine appear behind the walls.
type Mount struct {
	Source string // on the machine, without symbolic links
	Target string // absolute
	Empty  bool   // an empty directory takes the place of the source
	// Writable files and devices can be written to, if their modes allow it; nothing else
	// of the machine's can.
	Writable, Device bool
	// Same is the file that the source has to be; nil if any is good.
	Same *Identity
	// Below is a folder of the machine that the source is relative to. The source is a file or a
	// folder then, and no symbolic link is on the way to it; nothing in it is executed, and links
	// in it are not followed. Empty: the source is absolute.
	Below string
}

// Identity tells a file from any other, and from itself after a change.
type Identity struct {
	Device, Inode uint64
	Size, Changed int64 // Changed is the time of the last change of any kind, in nanoseconds
}

// Failure is a wall that could not be built, as the child says on its standard
// error.
type Failure struct {
	Step string // "user namespace", "mount /proc", …
	Err  error
}

func (f *Failure) Error() string { return fmt.Sprintf("walls: %s: %v", f.Step, f.Err) }

func (f *Failure) Unwrap() error { return f.Err }

func failed(step string, err error) error {
	if err == nil {
		return nil
	}
	return &Failure{step, err}
}

// Ended says that this process was a relay, and that its guest has ended.
type Ended struct {
	Code int // exit status, or 128 and the number of a signal
}

func (e *Ended) Error() string { return fmt.Sprintf("walls: the guest has ended (%d)", e.Code) }

// Status is with which status a process ends for which Enter or EnterContained gave an error.
func Status(err error) int {
	var ended *Ended
	if errors.As(err, &ended) {
		return ended.Code
	}
	return 1
}

// ErrOther says that a file is not the one that it has to be.
var ErrOther = errors.New("it is another file than the one that was looked at")

// ErrUnsupported says that this operating system has no walls.
var ErrUnsupported = errors.New("walls: not on this operating system")
