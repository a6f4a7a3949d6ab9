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

// backend holds what the virtual machines of one engine share.
type backend struct {
	Options
	find   func() error // controls the virtual machine monitor
	driver driver
	found  *firecracker // nil if it cannot be used
	qemu   bool         // it is installed, too
	kernel func() (*kernel, error)
	images map[string]func() (*kept, error) // by runtime
	life   context.Context                  // of machines that are made; ends with the backend
	over   context.CancelFunc
	named  string // the path of the guest, as it was given

	mu      sync.Mutex
	spawner *procgroup.Spawner
}

// kept represents an image with the folder of its saved machine.
type kept struct {
	*image
	dir string
}

// running gives the path of the program that this process runs, even after an upgrade has replaced the file.
const running = "/proc/self/exe"

// New makes a backend, which the caller must close. It starts and writes nothing before the first request.
func New(o Options) *warmpool.Backend { return newBackend(o).open() }

func newBackend(o Options) *backend {
	b := &backend{Options: o, images: map[string]func() (*kept, error){}}
	b.life, b.over = context.WithCancel(context.Background())
	b.Limits = b.Limits.Or(core.DefaultLimits())
	self, _ := os.Executable()
	if len(b.Guest) == 0 {
		b.Guest = []string{self, "guest", vminit.RestoredArgument}
	}
	b.named = b.Guest[0]
	if b.named == self { // also where the processor is unknown
		b.Guest = append([]string{running}, b.Guest[1:]...)
	}
	if b.MaxWarm == 0 {
		b.MaxWarm = 2 // resuming one takes as much processor time as a small program
	}
	if b.Dir == "" {
		b.Dir = filepath.Join(os.TempDir(), "retort-vm-"+strconv.Itoa(os.Geteuid()))
	}
	b.kernel = once(func(*kernel) bool { return true }, b.findKernel)
	b.find = sync.OnceValue(b.findProgram)
	return b
}

func (b *backend) open() *warmpool.Backend {
	kinds := []warmpool.Kind{b.kind(quickjs, nil)}
	for _, i := range b.Interpreters {
		kinds = append(kinds, b.kind(i.Runtime, &i))
	}
	b.keep(forCommands, nil)
	return warmpool.New(warmpool.Options{Name: Name, Kinds: kinds, Capabilities: sync.OnceValue(b.look), Command: b.command, Closed: b.close})
}

// spawn returns the spawner of machines. It creates the spawner on first use.
func (b *backend) spawn() *procgroup.Spawner {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spawner == nil {
		b.spawner = procgroup.New(procgroup.OpenGroups())
	}
	return b.spawner
}

func (b *backend) close() error {
	b.over()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spawner != nil {
		b.spawner.Close()
	}
	return nil
}

// kind returns how machines of a runtime are started; i is nil for the built-in runtime.
func (b *backend) kind(runtime string, i *interpreter.Interpreter) warmpool.Kind {
	b.keep(runtime, i)
	start := func(ctx context.Context) (warmpool.Guest, error) {
		m, err := b.another(ctx, runtime)
		if err != nil {
			return nil, err // not a *vm that is nil
		}
		return m, nil
	}
	return warmpool.Kind{Runtime: runtime, Start: start, Within: bootTime, Warm: b.Warm, MaxWarm: b.MaxWarm, Relayed: i != nil && i.Proxied && b.Network != nil, Bounds: "the machine's memory, watcher, and a control group where there is one"}
}

// there reports whether the saved machine still exists. An engine of another version may remove it.
func (k *kept) there() bool {
	_, err := os.Stat(filepath.Join(k.dir, readyFile))
	return err == nil
}

// keep arranges that the machine of a runtime is made and saved on first use.
func (b *backend) keep(runtime string, i *interpreter.Interpreter) {
	b.images[runtime] = once((*kept).there, func() (*kept, error) {
		described, err := b.describe(runtime, i)
		if err != nil {
			return nil, err
		}
		dir, err := b.made(described)
		return &kept{described, dir}, err
	})
}

// another starts a copy of the machine of a runtime.
func (b *backend) another(ctx context.Context, runtime string) (*vm, error) {
	for again := false; ; again = true {
		k, err := b.images[runtime]()
		if err != nil {
			return nil, unusable(err)
		}
		m, err := b.restore(ctx, k.image, k.dir)
		switch {
		case err == nil:
			return m, nil
		case again || k.there():
			return nil, unusable(err)
		} // another engine has just removed it
	}
}

// findKernel looks for the kernel that the settings name, or else that Setup has chosen.
func (b *backend) findKernel() (*kernel, error) {
	dir := b.Kernel
	if dir == "" {
		var err error
		if dir, err = Kernel(b.Dir); err != nil {
			return nil, core.Errorf(core.KindSandboxUnavailable, Name, "no virtual machine was prepared on this machine yet").WithHint("retort vm setup")
		}
	}
	k, err := findKernel(absolute(dir))
	if err != nil {
		return nil, core.Errorf(core.KindSandboxUnavailable, Name, "%w", err).WithHint("retort vm setup")
	}
	return k, nil
}

// absolute returns an absolute path, for a program with another working directory.
func absolute(dir string) string {
	if whole, err := filepath.Abs(dir); err == nil {
		return whole
	}
	return dir
}

// findProgram looks for the virtual machine monitor: the one that Setup has chosen, if it still exists.
func (b *backend) findProgram() error {
	if runtime.GOARCH != "amd64" {
		return core.Errorf(core.KindSandboxUnavailable, Name, "virtual machines need an x86-64 processor in this version").WithHint("use another sandbox: sandboxMode: auto")
	}
	settled, _ := choice(b.Dir) // Setup has not run where the settings name a kernel
	b.found = nil
	quick, missing := located(b.Firecracker, "firecracker")
	if missing != nil && b.Firecracker != "" {
		return core.Errorf(core.KindSandboxUnavailable, Name, "Firecracker is not where the settings say: %w", missing).WithHint("correct vm.firecracker, or leave it out: QEMU makes machines too")
	}
	if missing == nil && opens(kvm) {
		b.found = &firecracker{quick}
	}
	program, err := located(b.QEMU, "qemu-system-x86_64")
	b.qemu = err == nil
	switch {
	case b.found != nil && (settled.Firecracker || err != nil):
		b.driver = *b.found
	case err != nil && missing == nil:
		return core.Errorf(core.KindSandboxUnavailable, Name, "Firecracker needs %s, which cannot be opened, and QEMU is not on this machine", kvm).WithHint("let this user open %s (group kvm), or sudo apt-get install qemu-system-x86; then: retort vm setup", kvm)
	case err != nil:
		return core.Errorf(core.KindSandboxUnavailable, Name, "QEMU is not on this machine: %w", err).WithHint("sudo apt-get install qemu-system-x86, then: retort vm setup")
	default:
		b.driver = newQEMU(program, settled.KVM && !settled.Firecracker && opens(kvm))
	}
	return nil
}

// located returns the file of a program, given its path or its name.
func located(name, usual string) (string, error) {
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

// look finds the capabilities by running a machine. It does not notice what is installed later.
func (b *backend) look() sandbox.Capabilities {
	have := sandbox.Capabilities{Name: Name, Strength: sandbox.Machine, Runtimes: []string{quickjs}, Proxies: b.Network != nil}
	err := b.try()
	if b.driver == nil { // no virtual machine monitor is installed
		b.driver = newQEMU(b.QEMU, false)
	}
	have.Walls = b.driver.walls()
	b.Commands.Note(&have)
	if err != nil {
		have.Unavailable = core.AsError(err)
		return have
	}
	for _, i := range b.Interpreters {
		if _, err := i.Look(); err != nil {
			have.Missing = append(have.Missing, sandbox.Missing{Runtime: i.Runtime, Why: core.AsError(err)})
			continue
		}
		have.Runtimes = append(have.Runtimes, i.Runtime)
	}
	slices.Sort(have.Runtimes)
	return have
}

// trialTime sets how long the first machine may take to be restored. The machine's wait for a processor counts,
// so it is much longer than that takes.
const trialTime = 2 * time.Minute

// try starts a copy of a machine and ends it again.
func (b *backend) try() error {
	if err := b.find(); err != nil {
		return err
	}
	k, err := b.images[quickjs]()
	if err == nil {
		err = b.wakes(k)
	}
	if err != nil {
		return unusable(err)
	}
	return nil
}

// wakes resumes a copy of a saved machine and ends it again.
func (b *backend) wakes(k *kept) error {
	ctx, cancel := context.WithTimeout(b.life, trialTime)
	defer cancel()
	m, err := b.restore(ctx, k.image, k.dir)
	if err != nil {
		return err
	}
	_ = m.Close()
	<-m.gone
	return nil
}
