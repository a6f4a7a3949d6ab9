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
	// maxState bounds the size of a machine's saved state without its memory, in bytes.
	maxState = 64 << 20
	// minMemory is the smallest memory that a machine gets, in bytes. systemMemory is the part of a machine's memory
	// for the kernel, the unpacked archive and the runtime. The host provides only the memory that a machine actually
	// uses.
	minMemory, systemMemory = 2 << 30, 1 << 30
	// translationBufferMB sets the size of QEMU's buffer for translated code, in MB.
	translationBufferMB = 128
	// serialDevice is the QEMU option for the machine's serial device. It gives the device only three ports, because
	// Linux checks all possible ports at each interrupt. The first port is reserved for consoles.
	serialDevice = "virtio-serial-device,max_ports=3"
	// commandLine is the kernel's command line under QEMU. It turns off protections between processes, which are
	// expensive on an emulated processor and not needed in a machine that runs one program. It turns off the
	// accounting of waiting times, which nothing reads. It turns off high-resolution timers, because Go's monitoring
	// thread would set one every 20 µs.
	commandLine = "quiet panic=-1 reboot=t mitigations=off nokaslr tsc=reliable highres=off nohz=off random.trust_cpu=on " +
		"audit=0 psi=0 cgroup_disable=memory transparent_hugepage=never tsc_early_khz=%d memmap=%d$%d rdinit=" + vminit.Program + " -- " +
		vminit.Argument
)

// qemuDriver controls QEMU with its machine type "microvm". The processor is either emulated (TCG) or the host's own
// (KVM).
type qemuDriver struct {
	path string
	kvm  bool
	// needs returns the files of the host that QEMU needs, as mounts for its confinement plan.
	needs func() ([]confine.PlanMount, error)
}

func (q qemuDriver) confinement() []string {
	if q.kvm {
		return describeConfinement("QEMU", "QEMU microvm, on the machine's processor, with KVM", "serial one")
	}
	return describeConfinement("QEMU", "QEMU microvm, with an emulated processor", "serial one")
}

func (q qemuDriver) kernelModules(k *guestKernel, _ *vminit.MachineConfig) ([]string, error) {
	return k.moduleFiles(serialParts)
}

// supportsSharedMemory returns false for machines with KVM. There, shared memory would save little, because an exit
// from the machine to the host is cheap, and processors differ in how a guest may cache a device's memory.
func (q qemuDriver) supportsSharedMemory() bool { return !q.kvm }

func (q qemuDriver) makePorts() (*machinePorts, error) { return newPorts() }

// configureMachine does nothing, because QEMU gets its whole configuration as arguments.
func (q qemuDriver) configureMachine(context.Context, *machineImage, *machinePorts) error { return nil }

func newQEMU(path string, kvm bool) qemuDriver {
	return qemuDriver{path, kvm, sync.OnceValues(func() ([]confine.PlanMount, error) { return programFiles(path) })}
}

// memoryPath and the following constants are the paths, inside QEMU's confinement, of the files of one machine.
const (
	memoryPath  = "/machine/memory"
	archivePath = "/machine/archive"
	ringPath    = "/machine/ring"
	kernelPath  = "/machine/kernel"
)

// linkedMounts returns the mounts for an executable and its shared libraries.
func linkedMounts(program string) (mounts []confine.PlanMount, err error) {
	image, err := interpreter.NewImage(program, program)
	if err != nil {
		return nil, err
	}
	for _, target := range slices.Sorted(maps.Keys(image.Sources)) {
		mounts = append(mounts, confine.PlanMount{Source: image.Sources[target], Target: target})
	}
	return mounts, nil
}

// programFiles returns the files that QEMU needs: its executable, shared libraries, modules and data.
func programFiles(program string) ([]confine.PlanMount, error) {
	mounts, err := linkedMounts(program)
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
			mounts = append(mounts, confine.PlanMount{Source: real, Target: filepath.Clean(dir)})
		}
	}
	return mounts, nil
}

// driverVersion returns QEMU's version. With KVM it adds the processor's model, to which the kernel of a saved
// machine has adapted.
func (q qemuDriver) driverVersion() (string, error) {
	out, err := exec.Command(q.path, "--version").Output()
	first, _, _ := strings.Cut(string(out), "\n")
	if q.kvm {
		first += ", KVM on " + processorModel()
	}
	return first, err
}

// processorModel returns the model of the host's processor.
func processorModel() string {
	data, _ := os.ReadFile("/proc/cpuinfo")
	_, after, _ := strings.Cut(string(data), "model name")
	line, _, _ := strings.Cut(after, "\n")
	return strings.Trim(line, "\t: ")
}

// guestProcessor returns the name of the processor model that the guest sees. The model has no fast string
// instructions, because Linux would use them and they are slow when emulated.
func (q qemuDriver) guestProcessor() string {
	if q.kvm {
		return "max,la57=off"
	}
	return "max,la57=off,erms=off,fsrm=off"
}

// acceleratorName returns the value of QEMU's option -accel: KVM, or emulation with its buffer size.
func (q qemuDriver) acceleratorName() string {
	if q.kvm {
		return "kvm"
	}
	return "tcg,tb-size=" + strconv.Itoa(translationBufferMB)
}

// plan returns the parts of QEMU's confinement plan that are the same for booting and for restoring a machine. Of the
// host's files, QEMU sees only its own, read-only, and the machine's memory file.
func (q qemuDriver) plan(i *machineImage, dir string, share bool, p *machinePorts, more ...string) (*confine.SandboxPlan, error) {
	shared := map[bool]string{true: "on", false: "off"}[share]
	const wire, control, monitor = "4", "5", "6" // descriptors after that of the plan
	size, whole := i.memory, ",memory-backend=ram"
	if p.shared != nil { // the shared memory follows the machine's
		size, whole = size+shm.Size, ""
	}
	args := []string{
		q.path, "-machine", "microvm,acpi=on,rtc=on,isa-serial=off" + whole, "-accel", q.acceleratorName(), "-cpu",
		q.guestProcessor(), "-smp", "1",
		"-m", strconv.FormatInt(size>>10, 10) + "K", "-object",
		fmt.Sprintf("memory-backend-file,id=ram,size=%d,mem-path=%s,share=%s", i.memory, memoryPath, shared),
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-chardev", "socket,id=wire,fd=" + wire, "-chardev", "socket,id=control,fd=" + control, "-chardev",
		"socket,id=monitor,fd=" + monitor, "-mon", "chardev=monitor,mode=control",
		"-device", serialDevice, "-device", "virtserialport,chardev=wire,name=" + vminit.WirePort, "-device",
		"virtserialport,chardev=control,name=" + vminit.ControlPort,
	}
	mounts, err := q.needs()
	if err != nil {
		return nil, err
	}
	if p.shared != nil {
		more = append(
			more, "-object", fmt.Sprintf("memory-backend-file,id=ring,size=%d,mem-path=%s,share=on", shm.Size, ringPath),
			"-numa", "node,memdev=ram", "-numa", "node,memdev=ring",
		)
		mounts = append(slices.Clone(mounts), confine.PlanMount{Source: p.shared.FilePath(), Target: ringPath, Writable: true})
	}
	real, err := filepath.EvalSymlinks(filepath.Join(dir, memoryFile))
	if err != nil {
		return nil, err
	}
	mounts = append(slices.Clone(mounts), confine.PlanMount{Source: real, Target: memoryPath, Writable: true})
	if q.kvm {
		mounts = append(mounts, confine.PlanMount{Source: kvm, Target: kvm, Device: true})
	}
	return &confine.SandboxPlan{
		Profile: "machine", Argv: append(args, more...), Mounts: mounts, Files: 256, Processes: monitorThreads,
		Keep: len(p.far),
	}, nil
}

// bootPlan returns a confinement plan in which QEMU can write to the machine's memory file and, when the machine is
// saved, to the state file.
func (q qemuDriver) bootPlan(i *machineImage, dir string, p *machinePorts) (*confine.SandboxPlan, error) {
	f, err := os.OpenFile(filepath.Join(dir, memoryFile), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Truncate(i.memory), f.Close()); err != nil {
		return nil, err
	}
	plan, err := q.plan(
		i, dir, true, p, "-kernel", kernelPath, "-initrd", archivePath, "-append",
		fmt.Sprintf(commandLine, counterKHz(), shm.Size, i.memory),
	)
	if err != nil {
		return nil, err
	}
	for target, file := range map[string]string{kernelPath: i.kernel.vmlinuz, archivePath: filepath.Join(dir, archiveFile)} {
		real, err := filepath.EvalSymlinks(file)
		if err != nil {
			return nil, err
		}
		plan.Mounts = append(plan.Mounts, confine.PlanMount{Source: real, Target: target})
	}
	plan.Tmp = maxState
	return plan, nil
}

// theRest is the QEMU command that makes QEMU save a machine without its memory. The memory is already in a file, so
// QEMU saves only the rest of the machine's state.
var theRest = monitorCommand{
	"migrate-set-capabilities",
	map[string]any{"capabilities": []any{map[string]any{"capability": "x-ignore-shared", "state": true}}},
}

// saveMachine makes QEMU stop the machine and save its state. A copy runs as soon as it is restored.
func (q qemuDriver) saveMachine(ctx context.Context, p *machinePorts, dir string) error {
	state, err := os.OpenFile(filepath.Join(dir, stateFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer state.Close()
	if _, err := p.runMonitor("", monitorCommand{Execute: "qmp_capabilities"}, theRest); err != nil {
		return err
	}
	if err := p.sendFile("state", state); err != nil {
		return err
	}
	if _, err := p.runMonitor("", monitorCommand{"migrate", map[string]string{"uri": "fd:state"}}); err != nil {
		return err
	}
	for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		said, err := p.runMonitor("", monitorCommand{Execute: "query-migrate"})
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
			return fmt.Errorf("QEMU cannot save the machine: %s %s", state.Status, state.Desc)
		}
	}
	return ctx.Err()
}

func (q qemuDriver) restorePlan(i *machineImage, dir string, p *machinePorts) (*confine.SandboxPlan, error) {
	state, err := os.Open(filepath.Join(dir, stateFile))
	if err != nil {
		return nil, err
	}
	p.far = append(p.far, state)
	return q.plan(i, dir, false, p, "-incoming", "defer")
}

func (q qemuDriver) resumeMachine(_ context.Context, p *machinePorts) error {
	_, err := p.runMonitor(
		"RESUME", monitorCommand{Execute: "qmp_capabilities"}, theRest,
		monitorCommand{"migrate-incoming", map[string]string{"uri": "fd:7"}},
	)
	return err
}
