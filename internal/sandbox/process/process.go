// Package process runs each program in its own child process, which package confine restricts. The child is either
// this binary as `retort guest`, with the built-in JavaScript runtime, or an interpreter of the machine. It has no
// access to the host's files, the network or environment variables. It is started in advance, runs one program and is
// killed.
package process

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/hostcmd"
	"retort/internal/sandbox/interpreter"
	"retort/internal/sandbox/procgroup"
	"retort/internal/sandbox/warmpool"
)

const (
	name    = "process"
	quickjs = "quickjs"
	weakly  = name + " (weak)"
)

var kind = sandbox.BackendKind{Name: name, Strength: sandbox.Process}

// FallbackMode specifies which programs may run if the operating system refuses full confinement. Their children are
// then restricted only by Landlock, the allow list of system calls, and limits.
type FallbackMode string

// FallbackNone and the following constants are the values of FallbackMode. They say which programs may run if the
// operating system refuses full confinement.
const (
	FallbackNone    FallbackMode = ""        // no program runs
	FallbackQuickJS FallbackMode = "quickjs" // only programs for the built-in JavaScript runtime run
	FallbackAll     FallbackMode = "all"     // programs for every runtime run
)

// Options configures a Backend. The zero value is a good default.
type Options struct {
	// Command gives the command line of a guest that speaks the protocol of package wire on its standard input and
	// output. A guest that gets the first argument "walls" must call confine.Enter first. If Command is empty, the
	// guest is this binary with the argument "guest".
	Command []string
	// Compiles reports whether the guest started by Command supports CompileArgument and CompiledArgument.
	Compiles bool
	// Warm sets the number of children that wait for programs under low load. Zero means 2. A negative number means
	// none.
	Warm int
	// MaxWarm bounds the number of children that wait for programs under load. Zero means 8.
	MaxWarm int
	// Once says that only one program is expected, so that no new child is started after one was taken. Lazy says
	// that perhaps no program will come, so that the first child is started only at the first request.
	Once, Lazy bool
	// Limits holds the limits that most programs have. They are set for a child before its program arrives. Zero
	// fields mean the defaults.
	Limits core.Limits
	// Fallback specifies which programs may run without full confinement.
	Fallback FallbackMode
	// Network gives a program access to the network through its ToolHost, if that implements sandbox.ConnectionProxy
	// and the program's interpreter is marked as Proxied. If Network is nil, programs have no connections.
	Network *interpreter.ProxyNetwork
	// Interpreters lists the runtimes that may be installed on the machine. Their children are started on first use.
	Interpreters []RuntimeInterpreter
	// Commands holds the host commands that programs can start. Each command runs in its own sandbox.
	Commands hostcmd.CommandSet
}

// Backend implements sandbox.Backend with child processes. It is safe for concurrent use. Its methods Prepare, Parse
// and Close are those of the embedded warmpool.Backend, which owns the children of programs.
type Backend struct {
	warmpool.Backend
	options  Options
	kinds    map[string]*childKind
	limits   core.Limits // limits that are set for a child before its program arrives
	spawner  *procgroup.ChildSpawner
	greeting time.Duration // maximum time from the start of a child until it is ready for a program
	// check returns which confinement this machine allows. The first call waits until probeMachine knows that.
	check func() machineState
	first chan *warmpool.ReadyGuest // holds the child that probeMachine started, until a program gets it

	// scratch is the directory for the harnesses of interpreters that see the host's files. It is not used with full
	// confinement.
	scratch scratchDir
	made    sync.Once

	mu       sync.Mutex
	closed   bool
	children sync.WaitGroup // counts the child processes and the tasks that start them
}

// machineState describes which confinement this machine allows. If it is not full confinement, machineState also
// holds the reason.
type machineState struct {
	// weak means that children run without namespaces, because the machine refuses them and FallbackMode allows that.
	weak    bool
	refusal *core.Error // the error if no program can run; nil otherwise
	why     string      // reason why the machine refuses namespaces; empty if it allows them
}

var _ sandbox.Backend = (*Backend)(nil)

// New returns a Backend and starts children in the background. The caller must close the Backend.
func New(o Options) *Backend { return newBackend(o, procgroup.OpenGroups()).open() }

// newBackend returns a Backend that is not open yet.
func newBackend(o Options, g *procgroup.GroupSet) *Backend {
	b := &Backend{
		spawner: procgroup.New(g), kinds: map[string]*childKind{}, limits: o.Limits.WithDefaults(core.DefaultLimits()),
		first: make(chan *warmpool.ReadyGuest, 1), greeting: time.Minute,
	}
	b.check = sync.OnceValue(b.probeMachine)
	command := o.Command
	if len(command) == 0 {
		self, err := os.Executable()
		if err != nil {
			refusal := core.Errorf(core.KindSandboxUnavailable, "process", "Retort's own executable cannot be found: %w", err)
			b.check = func() machineState { return machineState{refusal: refusal} }
			o.Warm = -1
		}
		command, o.Compiles = []string{self, "guest"}, true
	}
	b.kinds[quickjs] = builtinKind(command)
	if o.Compiles {
		b.kinds[quickjs].harness = &compiledHarness{}
	}
	if hasWalls {
		for _, i := range o.Interpreters {
			b.kinds[i.Runtime] = interpreterKind(i, command, b.harnessDir, o.Network)
		}
	}
	b.options = o
	return b
}

// open starts children for the kinds of b.
func (b *Backend) open() *Backend {
	b.Open(b.poolOptions())
	return b
}

// poolOptions describes to the pool how to start children and what they can do.
func (b *Backend) poolOptions() warmpool.Options {
	o := warmpool.Options{
		Kind: kind, Capabilities: b.findCapabilities, Label: b.labelReports, Command: b.startCommand, Folders: true,
		Closed: b.closeBackend,
	}
	for _, k := range b.kinds {
		o.Kinds = append(o.Kinds, b.poolKind(k))
	}
	return o
}

// idleExitDelay is how long a child whose program has ended lives on before it is killed. Killing it immediately would
// take a processor from the process that reads the result. The delay is shorter than the pause after which the pool
// starts another child, so that the old child is gone before the new one starts.
const idleExitDelay = 5 * time.Millisecond

func (b *Backend) poolKind(k *childKind) warmpool.GuestKind {
	return warmpool.GuestKind{
		Runtime: k.runtime, Supply: func() (*warmpool.ReadyGuest, error) { return b.supplyChild(k) },
		Warm: b.options.Warm, MaxWarm: b.options.MaxWarm, Ahead: !k.native && !b.options.Lazy, Once: b.options.Once,
		Eager: true, Linger: idleExitDelay,
	}
}

// probeMachine starts a child to find out which confinement this machine allows.
func (b *Backend) probeMachine() machineState {
	k := b.kinds[quickjs]
	c, err := b.startGreeted(k, false)
	if err == nil {
		b.first <- c
		return machineState{}
	}
	if !hasWalls || !refusedWalls(err) {
		return machineState{} // each start reports what is wrong
	}
	cause, hint := findRemedy(err.Error())
	if b.options.Fallback == FallbackNone {
		return machineState{refusal: core.Errorf(
			core.KindSandboxUnavailable, "process", "this machine does not allow the sandbox: %s (%s)", cause,
			core.AsError(err).Message,
		).WithHint("%s", hint)}
	}
	if c, err := b.startGreeted(k, true); err == nil {
		b.first <- c
	}
	return machineState{weak: true, why: cause + "; " + hint}
}

// findCapabilities determines the capabilities of the backend. It does not notice interpreters that are installed
// later.
func (b *Backend) findCapabilities() sandbox.Capabilities {
	found := b.check()
	have := sandbox.Capabilities{Name: name, Strength: strength, Walls: walledBy(found.weak), Unavailable: found.refusal}
	if found.weak {
		have.Strength = strengthWeak
		have.Warning = "the confinement is weak: no namespaces, because " + found.why
	}
	have.Proxies = hasWalls && !found.weak && b.options.Network != nil
	have.Runtimes = []string{quickjs}
	for _, i := range b.options.Interpreters {
		if !hasWalls {
			have.Missing = append(have.Missing, sandbox.MissingRuntime{Runtime: i.Runtime, Why: tooWeak(i.Runtime, "they are available only on Linux")})
		} else if _, err := i.FindProgram(); err != nil {
			have.Missing = append(have.Missing, sandbox.MissingRuntime{Runtime: i.Runtime, Why: core.AsError(err)})
		} else if found.weak && b.options.Fallback != FallbackAll {
			have.Missing = append(have.Missing, sandbox.MissingRuntime{Runtime: i.Runtime, Why: tooWeak(i.Runtime, found.why)})
		} else {
			have.Runtimes = append(have.Runtimes, i.Runtime)
		}
	}
	slices.Sort(have.Runtimes)
	b.options.Commands.AddToCapabilities(&have)
	return have
}

// harnessDir returns the directory to which the harnesses (the code that makes interpreters guests) are written if
// interpreters see the host's file system. It returns "" if interpreters have their own file system. Close removes
// the directory.
func (b *Backend) harnessDir() (string, error) {
	if !b.check().weak {
		return "", nil
	}
	var err error
	b.made.Do(func() { b.scratch, err = newScratch() })
	return b.scratch.dir, err
}

func tooWeak(runtime, why string) *core.Error {
	return core.Errorf(core.KindSandboxUnavailable, "process", "%s programs need a sandbox that this machine does not allow: %s", runtime, why).
		WithHint("fix that, or allow a weaker sandbox in the settings: sandboxFallback: all")
}

// labelReports returns the name of the backend and the warning, or "", for the reports of programs.
func (b *Backend) labelReports() (backend, warning string) {
	if b.check().weak {
		return weakly, "the sandbox was weak: this machine refuses namespaces; run `retort doctor` to see why"
	}
	return name, ""
}

// enter registers a child process, or a task that starts one, so that closing the backend waits until it has called
// b.children.Done. It reports false if the backend is closed.
func (b *Backend) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.children.Add(1)
	}
	return !b.closed
}

// closeBackend waits for the children that the pool does not own, such as helpers, and removes what the backend has
// made. All guests must have ended.
func (b *Backend) closeBackend() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.children.Wait()
	b.spawner.Close()
	b.made.Do(func() {})
	b.scratch.remove()
	return nil
}

// rootDir returns the working directory of children, the root of the file system.
func rootDir() string { return filepath.VolumeName(os.TempDir()) + string(filepath.Separator) }
