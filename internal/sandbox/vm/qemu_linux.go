package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/guest/vminit"
	"retort/internal/sandbox/interpreter"
	"retort/internal/sandbox/wire/shm"
)

const (
	memoryFile, stateFile = "memory", "state"
	// maxState bounds the saved state of a machine without its memory, in bytes.
	maxState = 64 << 20
	// memory is the minimum memory of a machine, in bytes. itself is the part of it for the kernel, the archive and
	// the runtime. The host provides only the memory that a machine uses.
	memory, itself = 2 << 30, 1 << 30
	// translated sets the size of QEMU's buffer for translated code, in MB.
	translated = 128
	// serial is the serial device. It has only three ports, because Linux checks all possible ports at each
	// interrupt. The first port is reserved for consoles.
	serial = "virtio-serial-device,max_ports=3"
	// commandLine is the kernel's command line. It turns off protections between processes, which are expensive on an
	// emulated processor, because a machine runs one program and is then thrown away. It turns off the accounting of
	// waiting times, which nothing reads. It turns off high-resolution timers, because otherwise Go's monitoring
	// thread sets one every 20 µs.
	commandLine = "quiet panic=-1 reboot=t mitigations=off nokaslr tsc=reliable highres=off nohz=off random.trust_cpu=on " +
		"audit=0 psi=0 cgroup_disable=memory transparent_hugepage=never tsc_early_khz=%d memmap=%d$%d rdinit=" + vminit.Program + " -- " + vminit.Argument
)

// qemu controls QEMU with its machine type "microvm". The processor is emulated (TCG) or the host's own (KVM).
type qemu struct {
	path string
	kvm  bool
	// needs returns the host's files that QEMU needs.
	needs func() ([]confine.Mount, error)
}

func (q qemu) walls() []string {
	if q.kvm {
		return walled("QEMU", "QEMU microvm, on the machine's processor, by KVM", "serial one")
	}
	return walled("QEMU", "QEMU microvm, its processor emulated", "serial one")
}

func (q qemu) fit(k *kernel, _ *vminit.Config) ([]string, error) { return k.modules(serialParts) }

// shares returns false for machines with KVM: an exit to the host costs little there, and how a guest may cache a
// device's memory differs between processors.
func (q qemu) shares() bool { return !q.kvm }

func (q qemu) ports() (*ports, error) { return newPorts() }

// started does nothing, because QEMU's arguments are complete.
func (q qemu) started(context.Context, *image, *ports) error { return nil }

func newQEMU(path string, kvm bool) qemu {
	return qemu{path, kvm, sync.OnceValues(func() ([]confine.Mount, error) { return programFiles(path) })}
}

// Paths of a machine's own files in QEMU's confinement.
const (
	memoryPath  = "/machine/memory"
	archivePath = "/machine/archive"
	ringPath    = "/machine/ring"
	kernelPath  = "/machine/kernel"
)

// linked returns mounts for a program and the libraries that it is linked with.
func linked(program string) (mounts []confine.Mount, err error) {
	image, err := interpreter.NewImage(program, program)
	if err != nil {
		return nil, err
	}
	for _, target := range slices.Sorted(maps.Keys(image.Sources)) {
		mounts = append(mounts, confine.Mount{Source: image.Sources[target], Target: target})
	}
	return mounts, nil
}

// programFiles returns the program, the libraries that it is linked with, its modules and its data.
func programFiles(program string) ([]confine.Mount, error) {
	mounts, err := linked(program)
	if err != nil {
		return nil, err
	}
	said, err := exec.Command(program, "-L", "help").Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	dirs := strings.Fields(string(said))
	for _, pattern := range []string{"lib*/qemu", "lib/*/qemu"} {
		modules, _ := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(program)), pattern))
		dirs = append(dirs, modules...)
	}
	for _, dir := range dirs {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil {
			mounts = append(mounts, confine.Mount{Source: real, Target: filepath.Clean(dir)})
		}
	}
	return mounts, nil
}

// version includes the processor if the saved machine has detected it.
func (q qemu) version() (string, error) {
	out, err := exec.Command(q.path, "--version").Output()
	first, _, _ := strings.Cut(string(out), "\n")
	if q.kvm {
		first += ", KVM on " + processor()
	}
	return first, err
}

// processor returns the model of the host's processor.
func processor() string {
	data, _ := os.ReadFile("/proc/cpuinfo")
	_, after, _ := strings.Cut(string(data), "model name")
	line, _, _ := strings.Cut(after, "\n")
	return strings.Trim(line, "\t: ")
}

// model returns the model of the guest's processor. It lacks fast string instructions, which are slow when they are
// emulated, so that Linux does not use them.
func (q qemu) model() string {
	if q.kvm {
		return "max,la57=off"
	}
	return "max,la57=off,erms=off,fsrm=off"
}

// accelerator returns QEMU's name for what executes the machine's code.
func (q qemu) accelerator() string {
	if q.kvm {
		return "kvm"
	}
	return "tcg,tb-size=" + strconv.Itoa(translated)
}

// plan returns what boot and restore have in common. Of the host's files QEMU sees only its own, read-only, and the
// machine's memory.
func (q qemu) plan(i *image, dir string, share bool, p *ports, more ...string) (*confine.Plan, error) {
	shared := map[bool]string{true: "on", false: "off"}[share]
	const wire, control, monitor = "4", "5", "6" // descriptors after that of the plan
	size, whole := i.memory, ",memory-backend=ram"
	if p.shared != nil { // the shared memory follows the machine's
		size, whole = size+shm.Size, ""
	}
	args := []string{
		q.path, "-machine", "microvm,acpi=on,rtc=on,isa-serial=off" + whole, "-accel", q.accelerator(), "-cpu", q.model(), "-smp", "1",
		"-m", strconv.FormatInt(size>>10, 10) + "K", "-object", fmt.Sprintf("memory-backend-file,id=ram,size=%d,mem-path=%s,share=%s", i.memory, memoryPath, shared),
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-chardev", "socket,id=wire,fd=" + wire, "-chardev", "socket,id=control,fd=" + control, "-chardev", "socket,id=monitor,fd=" + monitor, "-mon", "chardev=monitor,mode=control",
		"-device", serial, "-device", "virtserialport,chardev=wire,name=" + vminit.WirePort, "-device", "virtserialport,chardev=control,name=" + vminit.ControlPort,
	}
	mounts, err := q.needs()
	if err != nil {
		return nil, err
	}
	if p.shared != nil {
		more = append(more, "-object", fmt.Sprintf("memory-backend-file,id=ring,size=%d,mem-path=%s,share=on", shm.Size, ringPath), "-numa", "node,memdev=ram", "-numa", "node,memdev=ring")
		mounts = append(slices.Clone(mounts), confine.Mount{Source: p.shared.Path(), Target: ringPath, Writable: true})
	}
	real, err := filepath.EvalSymlinks(filepath.Join(dir, memoryFile))
	if err != nil {
		return nil, err
	}
	mounts = append(slices.Clone(mounts), confine.Mount{Source: real, Target: memoryPath, Writable: true})
	if q.kvm {
		mounts = append(mounts, confine.Mount{Source: kvm, Target: kvm, Device: true})
	}
	return &confine.Plan{Profile: "machine", Argv: append(args, more...), Mounts: mounts, Files: 256, Processes: threads, Keep: len(p.far)}, nil
}

// boot lets QEMU write to the memory file and, when the machine is saved, to the state file. QEMU needs the right to
// write files for that.
func (q qemu) boot(i *image, dir string, p *ports) (*confine.Plan, error) {
	f, err := os.OpenFile(filepath.Join(dir, memoryFile), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Truncate(i.memory), f.Close()); err != nil {
		return nil, err
	}
	plan, err := q.plan(i, dir, true, p, "-kernel", kernelPath, "-initrd", archivePath, "-append", fmt.Sprintf(commandLine, kilohertz(), shm.Size, i.memory))
	if err != nil {
		return nil, err
	}
	for target, file := range map[string]string{kernelPath: i.kernel.vmlinuz, archivePath: filepath.Join(dir, archiveFile)} {
		real, err := filepath.EvalSymlinks(file)
		if err != nil {
			return nil, err
		}
		plan.Mounts = append(plan.Mounts, confine.Mount{Source: real, Target: target})
	}
	plan.Tmp = maxState
	return plan, nil
}

// theRest makes QEMU save the state of a machine without its memory, which stays in its file.
var theRest = command{"migrate-set-capabilities", map[string]any{"capabilities": []any{map[string]any{"capability": "x-ignore-shared", "state": true}}}}

// keep lets QEMU stop the machine while it saves it. A copy then runs at once.
func (q qemu) keep(ctx context.Context, p *ports, dir string) error {
	state, err := os.OpenFile(filepath.Join(dir, stateFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer state.Close()
	if _, err := p.tell("", command{Execute: "qmp_capabilities"}, theRest); err != nil {
		return err
	}
	if err := p.give("state", state); err != nil {
		return err
	}
	if _, err := p.tell("", command{"migrate", map[string]string{"uri": "fd:state"}}); err != nil {
		return err
	}
	for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		said, err := p.tell("", command{Execute: "query-migrate"})
		if err != nil {
			return err
		}
		var state struct {
			Status string `json:"status"`
			Desc   string `json:"error-desc"`
		}
		switch err := json.Unmarshal(said, &state); {
		case err != nil:
			return err
		case state.Status == "completed":
			return nil
		case state.Status == "failed", state.Status == "cancelled":
			return fmt.Errorf("QEMU does not save the machine: %s %s", state.Status, state.Desc)
		}
	}
	return ctx.Err()
}

func (q qemu) restore(i *image, dir string, p *ports) (*confine.Plan, error) {
	state, err := os.Open(filepath.Join(dir, stateFile))
	if err != nil {
		return nil, err
	}
	p.far = append(p.far, state)
	return q.plan(i, dir, false, p, "-incoming", "defer")
}

func (q qemu) resume(_ context.Context, p *ports) error {
	_, err := p.tell("RESUME", command{Execute: "qmp_capabilities"}, theRest, command{"migrate-incoming", map[string]string{"uri": "fd:7"}})
	return err
}
