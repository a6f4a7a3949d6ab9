package vm

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"retort/internal/guest/machine"
)

const (
	memoryFile, stateFile = "memory", "state"
	// memory is what a machine has, in bytes. Of that it takes what it uses.
	memory = 2 << 30
	// translated is how much QEMU keeps of the code that it has translated, in MB.
	translated = 128
	// commandLine is the kernel's. A machine that runs one program and is thrown away has
	// nobody in it to be protected from with what costs an emulated processor most. Without
	// timers of high resolution, Go's watching thread does not set one every 20 µs.
	commandLine = "quiet panic=-1 reboot=t mitigations=off nokaslr tsc=reliable highres=off nohz=off random.trust_cpu=on " +
		"audit=0 cgroup_disable=memory transparent_hugepage=never tsc_early_khz=%d rdinit=" + machine.Program + " -- " + machine.Argument
)

// qemu is QEMU with its machine "microvm", whose processor is emulated (TCG), or the
// machine's own (KVM).
type qemu struct {
	path string
	kvm  bool
}

// version names the processor too, where the kept machine has seen it.
func (q qemu) version() (string, error) {
	out, err := exec.Command(q.path, "--version").Output()
	first, _, _ := strings.Cut(string(out), "\n")
	if q.kvm {
		first += ", KVM on " + processor()
	}
	return first, err
}

// processor is the model of the machine's processor.
func processor() string {
	data, _ := os.ReadFile("/proc/cpuinfo")
	_, after, _ := strings.Cut(string(data), "model name")
	line, _, _ := strings.Cut(after, "\n")
	return strings.Trim(line, "\t: ")
}

// accelerator is what runs the machine's code.
func (q qemu) accelerator() string {
	if q.kvm {
		return "kvm"
	}
	return "tcg,tb-size=" + strconv.Itoa(translated)
}

// command is what boot and restore have in common.
func (q qemu) command(dir string, share bool, p *ports, more ...string) *exec.Cmd {
	shared := map[bool]string{true: "on", false: "off"}[share]
	args := []string{
		"-machine", "microvm,acpi=on,rtc=on,isa-serial=off,memory-backend=ram", "-accel", q.accelerator(), "-cpu", "max,la57=off", "-smp", "1",
		"-m", strconv.Itoa(memory>>20) + "M", "-object", fmt.Sprintf("memory-backend-file,id=ram,size=%d,mem-path=%s,share=%s", memory, strings.ReplaceAll(filepath.Join(dir, memoryFile), ",", ",,"), shared),
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
		"-chardev", "socket,id=wire,fd=3", "-chardev", "socket,id=control,fd=4", "-chardev", "socket,id=monitor,fd=5", "-mon", "chardev=monitor,mode=control",
		"-device", "virtio-serial-device", "-device", "virtserialport,chardev=wire,name=" + machine.WirePort, "-device", "virtserialport,chardev=control,name=" + machine.ControlPort,
	}
	cmd := exec.Command(q.path, append(args, more...)...)
	cmd.Env, cmd.Dir, cmd.ExtraFiles = []string{}, "/", p.far
	return cmd
}

func (q qemu) boot(i *image, dir string, p *ports) *exec.Cmd {
	return q.command(dir, true, p, "-kernel", i.kernel.vmlinuz, "-initrd", filepath.Join(dir, archiveFile), "-append", fmt.Sprintf(commandLine, kilohertz()))
}

// theRest is the state of a machine without its memory, which stays where it is.
var theRest = command{"migrate-set-capabilities", map[string]any{"capabilities": []any{map[string]any{"capability": "x-ignore-shared", "state": true}}}}

// keep leaves stopping the machine to QEMU, which then has a copy run at once.
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

func (q qemu) restore(dir string, p *ports) (*exec.Cmd, error) {
	state, err := os.Open(filepath.Join(dir, stateFile))
	if err != nil {
		return nil, err
	}
	p.far = append(p.far, state)
	return q.command(dir, false, p, "-incoming", "defer"), nil
}

func (q qemu) resume(p *ports) error {
	_, err := p.tell("RESUME", command{Execute: "qmp_capabilities"}, theRest, command{"migrate-incoming", map[string]string{"uri": "fd:6"}})
	return err
}
