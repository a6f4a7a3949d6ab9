package vm

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/guest/vminit"
)

const (
	kernelFile = "vmlinux"
	// apiPath and vsockPath are the paths of the sockets that Firecracker creates inside its confinement: one for its
	// API, one for the machine's vsock.
	apiPath, vsockPath = "/tmp/api", "/tmp/vsock"
	statePath          = "/machine/state"
	// guestCID is the vsock address (CID) of every machine. The addresses do not collide, because each machine has
	// its own vsock.
	guestCID = 3
	// socketFolderSize sets the size of Firecracker's temporary folder, in bytes. It also bounds the files that
	// Firecracker may write there. The folder holds only sockets.
	socketFolderSize = 1 << 20
	// firecrackerLine is the kernel's command line under Firecracker. It needs fewer options than under QEMU, because
	// the processor is real and the kernel gets its clock rate from KVM.
	firecrackerLine = "quiet panic=-1 reboot=k mitigations=off nokaslr pci=off 8250.nr_uarts=0 i8042.noaux i8042.nomux i8042.dumbkbd " +
		"random.trust_cpu=on audit=0 cgroup_disable=memory transparent_hugepage=never rdinit=" + vminit.Program + " -- " + vminit.Argument
)

// firecrackerDriver controls Firecracker over a socket. Firecracker runs machines on the host's processor with KVM.
type firecrackerDriver struct{ path string }

// driverVersion returns Firecracker's version and the model of the host's processor. The model matters because the
// kernel of a saved machine has adapted to it.
func (f firecrackerDriver) driverVersion() (string, error) {
	out, err := exec.Command(f.path, "--version").Output()
	first, _, _ := strings.Cut(string(out), "\n")
	return first + ", KVM on " + processorModel(), err
}

func (f firecrackerDriver) confinement() []string {
	return describeConfinement("Firecracker", "Firecracker, on the machine's processor, with KVM", "vsock to its engine")
}

func (f firecrackerDriver) kernelModules(k *guestKernel, c *vminit.MachineConfig) ([]string, error) {
	c.Vsock = true
	return k.moduleFiles(vsockParts)
}

func (f firecrackerDriver) supportsSharedMemory() bool { return false }

// makePorts creates no connections, because Firecracker itself creates the sockets through which it can be reached.
func (f firecrackerDriver) makePorts() (*machinePorts, error) { return &machinePorts{}, nil }

// basePlan returns the parts of Firecracker's confinement plan that are the same for booting and for restoring a
// machine. Firecracker's sockets are in a temporary folder that disappears with the process. The argument size bounds
// that folder and every file that Firecracker writes, in bytes.
func (f firecrackerDriver) basePlan(size int64, mounts ...confine.PlanMount) (*confine.SandboxPlan, error) {
	files, err := linkedMounts(f.path)
	if err != nil {
		return nil, err
	}
	mounts = append(append(files, mounts...), confine.PlanMount{Source: kvm, Target: kvm, Device: true})
	for n, m := range mounts {
		if mounts[n].Source, err = filepath.EvalSymlinks(m.Source); err != nil {
			return nil, err
		}
	}
	argv := []string{f.path, "--api-sock", apiPath, "--level", "Error"}
	return &confine.SandboxPlan{
		Profile: "machine", Argv: argv, Serves: true, Mounts: mounts, Files: 256, Processes: monitorThreads, Tmp: size,
	}, nil
}

// bootPlan returns the confinement plan for booting a machine that will be saved. It creates the files for the saved
// machine, and lets Firecracker write to them.
func (f firecrackerDriver) bootPlan(i *machineImage, dir string, _ *machinePorts) (*confine.SandboxPlan, error) {
	kernel, err := readVmlinux(i.kernel.vmlinuz)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, kernelFile), kernel, 0o600)
	}
	for name, size := range map[string]int64{memoryFile: i.memory, stateFile: 0} {
		if err == nil {
			err = makeSparseFile(filepath.Join(dir, name), size)
		}
	}
	if err != nil {
		return nil, err
	}
	return f.basePlan(i.memory+maxState, // as much as it writes
		confine.PlanMount{Source: filepath.Join(dir, kernelFile), Target: kernelPath},
		confine.PlanMount{Source: filepath.Join(dir, archiveFile), Target: archivePath},
		confine.PlanMount{Source: filepath.Join(dir, memoryFile), Target: memoryPath, Writable: true},
		confine.PlanMount{Source: filepath.Join(dir, stateFile), Target: statePath, Writable: true})
}

// makeSparseFile creates a file of size bytes that occupies no disk space until data is written to it.
func makeSparseFile(name string, size int64) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

// apiObject represents a JSON object of Firecracker's API.
type apiObject = map[string]any

func (f firecrackerDriver) configureMachine(ctx context.Context, i *machineImage, p *machinePorts) error {
	a, err := p.dialAPI(ctx)
	if err != nil {
		return err
	}
	defer a.closeConn()
	for _, r := range []apiRequest{
		{"PUT", "/machine-config", apiObject{"vcpu_count": 1, "mem_size_mib": i.memory >> 20}},
		{"PUT", "/boot-source", apiObject{"kernel_image_path": kernelPath, "initrd_path": archivePath, "boot_args": firecrackerLine}},
		{"PUT", "/vsock", apiObject{"guest_cid": guestCID, "uds_path": vsockPath}},
		{"PUT", "/actions", apiObject{"action_type": "InstanceStart"}},
	} {
		if err := a.sendRequest(r); err != nil {
			return err
		}
	}
	return f.connectGuest(ctx, p)
}

// connectGuest connects to the first process of the machine as soon as that process listens.
func (f firecrackerDriver) connectGuest(ctx context.Context, p *machinePorts) (err error) {
	if p.control, err = p.dialVsock(ctx, vminit.ControlVsock); err == nil {
		p.wire, err = p.dialVsock(ctx, vminit.WireVsock)
		p.events = bufio.NewReaderSize(p.control, maxLineLength)
	}
	return err
}

// saveMachine saves the machine to files. Of its memory it writes only the pages that the machine has used, so that
// the memory file is sparse. A version of Firecracker that does not track used pages writes all of them.
func (f firecrackerDriver) saveMachine(ctx context.Context, p *machinePorts, dir string) error {
	a, err := p.dialAPI(ctx)
	if err != nil {
		return err
	}
	defer a.closeConn()
	stop := context.AfterFunc(ctx, a.closeConn)
	defer stop()
	if err := a.sendRequest(apiRequest{"PATCH", "/vm", apiObject{"state": "Paused"}}); err != nil {
		return err
	}
	snapshot := apiObject{"snapshot_type": "Diff", "snapshot_path": statePath, "mem_file_path": memoryPath}
	err = a.sendRequest(apiRequest{"PUT", "/snapshot/create", snapshot})
	if errors.Is(err, errRefused) {
		snapshot["snapshot_type"] = "Full"
		err = a.sendRequest(apiRequest{"PUT", "/snapshot/create", snapshot})
	}
	return errors.Join(err, os.Remove(filepath.Join(dir, kernelFile)))
}

// restorePlan returns the confinement plan for resuming a saved machine. Firecracker can then write only to the
// temporary folder with its sockets.
func (f firecrackerDriver) restorePlan(_ *machineImage, dir string, _ *machinePorts) (*confine.SandboxPlan, error) {
	return f.basePlan(socketFolderSize,
		confine.PlanMount{Source: filepath.Join(dir, memoryFile), Target: memoryPath},
		confine.PlanMount{Source: filepath.Join(dir, stateFile), Target: statePath})
}

func (f firecrackerDriver) resumeMachine(ctx context.Context, p *machinePorts) error {
	a, err := p.dialAPI(ctx)
	if err != nil {
		return err
	}
	defer a.closeConn()
	err = a.sendRequest(apiRequest{
		"PUT", "/snapshot/load",
		apiObject{"snapshot_path": statePath, "mem_backend": apiObject{"backend_type": "File", "backend_path": memoryPath}, "resume_vm": true},
	})
	if err != nil {
		return fmt.Errorf("wake: %w", err)
	}
	return f.connectGuest(ctx, p)
}
