// Package process runs each program in its own child process, which package confine restricts. The child is either
// this binary as `retort guest`, with the built-in JavaScript runtime, or an interpreter of the machine. It has no
// access to the host's files, the network or environment variables. It is started in advance, runs one program and is
// killed.
package process

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// Backend implements sandbox.Backend with child processes. It is safe for concurrent use.
type Backend struct {
	kinds    map[string]*childKind
	fallback FallbackMode
	proxies  bool
	limits   core.Limits // limits that are set for a child before its program arrives
	commands hostcmd.CommandSet
	spawner  *procgroup.ChildSpawner
	// check returns which confinement this machine allows. The first call waits until probeMachine knows that.
	check             func() machineState
	first             chan *guestChild // holds the child that probeMachine started, until a program gets it
	greeting          time.Duration
	have              func() sandbox.Capabilities
	capabilitiesKnown chan struct{} // closed when the capabilities are known, so that have returns without waiting

	// scratch is the directory for the harnesses of interpreters that see the host's files. It is not used with full
	// confinement.
	scratch scratchDir
	made    sync.Once

	mu       sync.Mutex
	parsed   parsedChildren
	running  map[*childSandbox]struct{}
	expected map[*guestChild]struct{} // children that have been started and are not ready for a program yet
	closed   bool
	children sync.WaitGroup // counts the children that have been started and not been waited for yet
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
func New(o Options) *Backend { return newBackend(o, procgroup.OpenGroups()) }

func newBackend(o Options, g *procgroup.GroupSet) *Backend {
	b := &Backend{
		spawner: procgroup.New(g), running: map[*childSandbox]struct{}{}, expected: map[*guestChild]struct{}{},
		capabilitiesKnown: make(chan struct{}),
		kinds:             map[string]*childKind{}, fallback: o.Fallback, proxies: o.Network != nil,
		limits: o.Limits.WithDefaults(core.DefaultLimits()), commands: o.Commands, first: make(chan *guestChild, 1),
		greeting: greeting, parsed: parsedChildren{within: parsedChildLifetime},
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
	b.have = sync.OnceValue(func() sandbox.Capabilities { return b.findCapabilities(o.Interpreters) })
	for _, k := range b.kinds {
		b.openPool(k, o)
	}
	return b
}

// openPool creates the pool in which children of one kind wait for programs.
func (b *Backend) openPool(k *childKind, o Options) {
	warm, most := o.Warm, o.MaxWarm
	if warm == 0 {
		warm = 2
	}
	if most == 0 {
		most = 8
	}
	if o.Once {
		warm, most = min(warm, 1), 1
	}
	warm = max(warm, 0)
	k.pool = warmpool.NewPool(warmpool.PoolOptions[*guestChild]{
		Start: func() (*guestChild, error) { return b.spawnChild(k) }, Least: warm, Most: max(warm, most),
		Lazy: k.native || o.Lazy, Once: o.Once,
	})
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
	if b.fallback == FallbackNone {
		return machineState{refusal: core.Errorf(
			core.KindSandboxUnavailable, "process", "this machine does not allow the sandbox: %s (%v)", cause, err,
		).WithHint("%s", hint)}
	}
	if c, err := b.startGreeted(k, true); err == nil {
		b.first <- c
	}
	return machineState{weak: true, why: cause + "; " + hint}
}

// Kind implements sandbox.Backend.
func (b *Backend) Kind() sandbox.BackendKind { return kind }

// Capabilities implements sandbox.Backend.
func (b *Backend) Capabilities() sandbox.Capabilities { return b.have() }

// findCapabilities determines the capabilities of the backend once. It does not notice interpreters that are
// installed later.
func (b *Backend) findCapabilities(interpreters []RuntimeInterpreter) sandbox.Capabilities {
	defer close(b.capabilitiesKnown)
	found := b.check()
	have := sandbox.Capabilities{Name: name, Strength: strength, Walls: walledBy(found.weak), Unavailable: found.refusal}
	if found.weak {
		have.Strength = strengthWeak
		have.Warning = "the confinement is weak: no namespaces, because " + found.why
	}
	have.Proxies = hasWalls && !found.weak && b.proxies
	have.Runtimes = []string{quickjs}
	for _, i := range interpreters {
		if !hasWalls {
			have.Missing = append(have.Missing, sandbox.MissingRuntime{Runtime: i.Runtime, Why: tooWeak(i.Runtime, "they are available only on Linux")})
		} else if _, err := i.FindProgram(); err != nil {
			have.Missing = append(have.Missing, sandbox.MissingRuntime{Runtime: i.Runtime, Why: core.AsError(err)})
		} else if found.weak && b.fallback != FallbackAll {
			have.Missing = append(have.Missing, sandbox.MissingRuntime{Runtime: i.Runtime, Why: tooWeak(i.Runtime, found.why)})
		} else {
			have.Runtimes = append(have.Runtimes, i.Runtime)
		}
	}
	slices.Sort(have.Runtimes)
	b.commands.AddToCapabilities(&have)
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

// Prepare implements sandbox.Backend. It takes a child that is ready, or waits until one has started.
func (b *Backend) Prepare(ctx context.Context, s sandbox.SandboxSpec) (sandbox.Sandbox, error) {
	have, err := b.haveSoon(ctx)
	if err != nil {
		return nil, unavailableError(ctx, err)
	}
	if have.Unavailable != nil {
		return nil, have.Unavailable
	}
	if !slices.Contains(have.Runtimes, s.Runtime) {
		return nil, core.Errorf(core.KindSandboxUnavailable, "process.prepare", "%s has no runtime %q", kind.Title(), s.Runtime).
			WithHint("it has %s", strings.Join(have.Runtimes, ", "))
	}
	k := b.kinds[s.Runtime]
	if err := k.checkFound(); err != nil {
		return nil, err
	}
	c := b.parsed.takeChild(s)
	if c == nil {
		if c, err = k.pool.Take(ctx); err != nil {
			return nil, unavailableError(ctx, err)
		}
	}
	sandbox := &childSandbox{backend: b, kind: k, child: c, limits: s.Limits}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		c.Kill()
		return nil, unavailableError(ctx, warmpool.ErrClosed)
	}
	b.running[sandbox] = struct{}{}
	return sandbox, nil
}

// haveSoon returns the capabilities that the backend has. If the backend is still finding out which confinement this
// machine allows, haveSoon waits, but only until ctx ends, and then returns the error of ctx.
func (b *Backend) haveSoon(ctx context.Context) (sandbox.Capabilities, error) {
	select {
	case <-b.capabilitiesKnown:
		return b.have(), nil
	default:
	}
	found := make(chan sandbox.Capabilities, 1)
	go func() { found <- b.have() }()
	select {
	case have := <-found:
		return have, nil
	case <-ctx.Done():
		return sandbox.Capabilities{}, ctx.Err()
	}
}

// trackStarting registers a child that is not ready yet, so that Close ends it.
func (b *Backend) trackStarting(c *guestChild) (done func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		c.Kill()
	}
	b.expected[c] = struct{}{}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.expected, c)
	}
}

func unavailableError(ctx context.Context, err error) *core.Error {
	if ctx.Err() != nil {
		return core.Errorf(core.KindCancelled, "process.prepare", "the execution was cancelled")
	}
	return core.Errorf(core.KindSandboxUnavailable, "process.prepare", "no sandbox could be started: %w", err)
}

// Close implements sandbox.Backend.
func (b *Backend) Close() error {
	b.mu.Lock()
	b.closed = true
	running := make([]*childSandbox, 0, len(b.running))
	for s := range b.running {
		running = append(running, s)
	}
	for c := range b.expected {
		c.Kill()
	}
	b.mu.Unlock()
	for _, k := range b.kinds {
		k.pool.Close()
	}
	b.parsed.closeAll()
	select {
	case c := <-b.first:
		c.Kill()
	default:
	}
	for _, s := range running {
		_ = s.Close()
	}
	b.children.Wait()
	b.spawner.Close()
	b.made.Do(func() {})
	b.scratch.remove()
	return nil
}

func (b *Backend) forgetSandbox(s *childSandbox) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.running, s)
}

// rootDir returns the working directory of children, the root of the file system.
func rootDir() string { return filepath.VolumeName(os.TempDir()) + string(filepath.Separator) }
