package vm

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/guest/vminit"
	"retort/internal/sandbox/interpreter"
	"retort/internal/sandbox/procgroup"
	"retort/internal/sandbox/warmpool"
)

// vmBackend runs programs in virtual machines. It holds the state that all machines of one engine share.
type vmBackend struct {
	Options
	find   func() error // looks for the virtual machine monitor and sets driver
	driver machineDriver
	found  *firecrackerDriver // controls Firecracker; nil if Firecracker cannot be used
	qemu   bool               // QEMU is installed too
	kernel func() (*guestKernel, error)
	// images holds, for each runtime, a function that returns its saved machine and first makes it if necessary.
	images map[string]func() (*savedImage, error)
	// life is the context in which machines are made. It ends when the backend is closed.
	life  context.Context
	over  context.CancelFunc
	named string // path of the guest, as the options name it

	spawner procgroup.LazySpawner
}

// savedImage represents the machine of a runtime that has been saved: the description of the machine, and the folder
// in which it is saved.
type savedImage struct {
	*machineImage
	dir string
}

// runningProgram names this process's own executable by a path that stays valid when an upgrade replaces the file.
const runningProgram = "/proc/self/exe"

// New returns a virtual machine backend, which the caller must close. Before the first request it starts no process
// and creates no file.
func New(o Options) *warmpool.Backend { return newBackend(o).openPool() }

func newBackend(o Options) *vmBackend {
	b := &vmBackend{Options: o, images: map[string]func() (*savedImage, error){}}
	b.life, b.over = context.WithCancel(context.Background())
	b.Limits = b.Limits.WithDefaults(core.DefaultLimits())
	self, _ := os.Executable()
	if len(b.Guest) == 0 {
		b.Guest = []string{self, "guest", vminit.RestoredArgument}
	}
	b.named = b.Guest[0]
	if b.named == self { // also where the processor is unknown
		b.Guest = append([]string{runningProgram}, b.Guest[1:]...)
	}
	if b.MaxWarm == 0 {
		b.MaxWarm = 2 // resuming one takes as much processor time as a small program
	}
	if b.Dir == "" {
		b.Dir = filepath.Join(os.TempDir(), "retort-vm-"+strconv.Itoa(os.Geteuid()))
	}
	b.kernel = retryableOnce(func(*guestKernel) bool { return true }, b.findKernel)
	b.find = sync.OnceValue(b.findProgram)
	return b
}

func (b *vmBackend) openPool() *warmpool.Backend {
	kinds := []warmpool.GuestKind{b.poolKind(quickjs, nil)}
	for _, i := range b.Interpreters {
		kinds = append(kinds, b.poolKind(i.Runtime, &i))
	}
	b.saveOnUse(forCommands, nil)
	return warmpool.New(warmpool.Options{
		Kind: kind, Kinds: kinds, Capabilities: b.findCapabilities, Command: b.runCommand, Closed: b.closeBackend,
	})
}

func (b *vmBackend) closeBackend() error {
	b.over()
	b.spawner.Close()
	return nil
}

// poolKind returns what the pool needs to know to start machines of a runtime: how to start one, and how many may
// wait for programs. The argument i is nil for the built-in runtime.
func (b *vmBackend) poolKind(runtime string, i *interpreter.Interpreter) warmpool.GuestKind {
	b.saveOnUse(runtime, i)
	start := func(ctx context.Context) (warmpool.Guest, error) {
		m, err := b.startCopy(ctx, runtime)
		if err != nil {
			return nil, err // not a *vm that is nil
		}
		return m, nil
	}
	return warmpool.GuestKind{
		Runtime: runtime, Start: start, Within: bootTime, Warm: b.Warm, MaxWarm: b.MaxWarm,
		Relayed: i != nil && i.Proxied && b.Network != nil,
	}
}

// isKept reports whether the saved machine is still on disk. An engine of another version may have removed it.
func (k *savedImage) isKept() bool {
	_, err := os.Stat(filepath.Join(k.dir, readyFile))
	return err == nil
}

// saveOnUse registers a runtime without starting anything. When the first program of the runtime arrives, the machine
// for its programs is booted and saved.
func (b *vmBackend) saveOnUse(runtime string, i *interpreter.Interpreter) {
	b.images[runtime] = retryableOnce((*savedImage).isKept, func() (*savedImage, error) {
		described, err := b.describeImage(runtime, i)
		if err != nil {
			return nil, err
		}
		dir, err := b.ensureMachine(described)
		return &savedImage{described, dir}, err
	})
}

// startCopy starts a copy of the saved machine of a runtime.
func (b *vmBackend) startCopy(ctx context.Context, runtime string) (*virtualMachine, error) {
	for again := false; ; again = true {
		k, err := b.images[runtime]()
		if err != nil {
			return nil, unusableError(err)
		}
		m, err := b.restoreMachine(ctx, k.machineImage, k.dir)
		switch {
		case err == nil:
			return m, nil
		case again || k.isKept():
			return nil, unusableError(err)
		} // another engine has just removed it
	}
}

// findKernel returns the kernel that the settings name, or else the one that SetupMachines has chosen.
func (b *vmBackend) findKernel() (*guestKernel, error) {
	dir := b.Kernel
	if dir == "" {
		var err error
		if dir, err = KernelDir(b.Dir); err != nil {
			return nil, core.Errorf(
				core.KindSandboxUnavailable, Name, "no virtual machine has been prepared on this machine yet",
			).WithHint("retort vm setup")
		}
	}
	k, err := findKernel(absolutePath(dir))
	if err != nil {
		return nil, core.Errorf(core.KindSandboxUnavailable, Name, "%w", err).WithHint("retort vm setup")
	}
	return k, nil
}

// absolutePath makes a path absolute, so that it stays valid for a process with another working directory.
func absolutePath(dir string) string {
	if whole, err := filepath.Abs(dir); err == nil {
		return whole
	}
	return dir
}

// findProgram finds the executable of the virtual machine monitor (QEMU or Firecracker). It prefers the monitor that
// SetupMachines has chosen, if that still exists.
func (b *vmBackend) findProgram() error {
	if runtime.GOARCH != "amd64" {
		return core.Errorf(
			core.KindSandboxUnavailable, Name, "virtual machines need an x86-64 processor in this version",
		).WithHint("use another sandbox: sandboxMode: auto")
	}
	settled, _ := readChoice(b.Dir) // Setup has not run where the settings name a kernel
	b.found = nil
	quick, missing := findProgram(b.Firecracker, "firecracker")
	if missing != nil && b.Firecracker != "" {
		return core.Errorf(
			core.KindSandboxUnavailable, Name, "Firecracker is not at the path in the settings: %w", missing,
		).WithHint("correct vm.firecracker, or leave it out: Retort can also use QEMU")
	}
	if missing == nil && canOpen(kvm) {
		b.found = &firecrackerDriver{quick}
	}
	program, err := findProgram(b.QEMU, "qemu-system-x86_64")
	b.qemu = err == nil
	switch {
	case b.found != nil && (settled.Firecracker || err != nil):
		b.driver = *b.found
	case err != nil && missing == nil:
		return core.Errorf(
			core.KindSandboxUnavailable, Name,
			"Firecracker needs %s, which cannot be opened, and QEMU is not on this machine", kvm,
		).WithHint("let this user open %s (add the user to the group kvm), or install QEMU, which also works without KVM: `sudo apt-get install qemu-system-x86`. Then run `retort vm setup`", kvm)
	case err != nil:
		return core.Errorf(
			core.KindSandboxUnavailable, Name, "QEMU is not on this machine: %w", err,
		).WithHint("run sudo apt-get install qemu-system-x86, then retort vm setup")
	default:
		b.driver = newQEMU(program, settled.KVM && !settled.Firecracker && canOpen(kvm))
	}
	return nil
}

// findProgram returns the path of an executable, given its path or its name.
func findProgram(name, usual string) (string, error) {
	if name == "" {
		name = usual
	}
	found, err := exec.LookPath(name)
	if err == nil {
		found, err = filepath.EvalSymlinks(found)
	}
	if err == nil {
		found, err = filepath.Abs(found)
	}
	return found, err
}

// findCapabilities determines the capabilities by starting a machine. It does not notice software that is installed
// later.
func (b *vmBackend) findCapabilities() sandbox.Capabilities {
	have := sandbox.Capabilities{Name: kind.Name, Strength: kind.Strength, Runtimes: []string{quickjs}, Proxies: b.Network != nil}
	err := b.tryMachine()
	if b.driver == nil { // no virtual machine monitor is installed
		b.driver = newQEMU(b.QEMU, false)
	}
	have.Walls = b.driver.confinement()
	b.Commands.AddToCapabilities(&have)
	if err != nil {
		have.Unavailable = core.AsError(err)
		return have
	}
	for _, i := range b.Interpreters {
		if _, err := i.FindProgram(); err != nil {
			have.Missing = append(have.Missing, sandbox.MissingRuntime{Runtime: i.Runtime, Why: core.AsError(err)})
			continue
		}
		have.Runtimes = append(have.Runtimes, i.Runtime)
	}
	slices.Sort(have.Runtimes)
	return have
}

// trialTime bounds how long it may take to restore a machine for a trial. Restoring is much faster, but this time
// includes waiting for a processor on a busy computer.
const trialTime = 2 * time.Minute

// tryMachine starts and ends a copy of a machine, to check that machines work on this computer.
func (b *vmBackend) tryMachine() error {
	if err := b.find(); err != nil {
		return err
	}
	k, err := b.images[quickjs]()
	if err == nil {
		err = b.tryWake(k)
	}
	if err != nil {
		return unusableError(err)
	}
	return nil
}

// tryWake resumes and ends a copy of a saved machine, to check that the saved machine is usable.
func (b *vmBackend) tryWake(k *savedImage) error {
	ctx, cancel := context.WithTimeout(b.life, trialTime)
	defer cancel()
	m, err := b.restoreMachine(ctx, k.machineImage, k.dir)
	if err != nil {
		return err
	}
	_ = m.Close()
	<-m.gone
	return nil
}
