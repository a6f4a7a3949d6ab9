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
	// Paths of the sockets that Firecracker creates in its confinement.
	apiPath, vsockPath = "/tmp/api", "/tmp/vsock"
	statePath          = "/machine/state"
	// guestCID gives the address of the machine. All machines have the same, each on a vsock of its own.
	guestCID = 3
	// little sets the size of Firecracker's temporary folder, in bytes, and bounds the files that it may write there.
	// The folder holds only sockets.
	little = 1 << 20
	// firecrackerLine is the kernel's command line. It does not need most options of QEMU's, because the processor is
	// real and the kernel gets its clock rate from KVM.
	firecrackerLine = "quiet panic=-1 reboot=k mitigations=off nokaslr pci=off 8250.nr_uarts=0 i8042.noaux i8042.nomux i8042.dumbkbd " +
		"random.trust_cpu=on audit=0 cgroup_disable=memory transparent_hugepage=never rdinit=" + vminit.Program + " -- " + vminit.Argument
)

// firecracker controls Firecracker, which runs machines on the host's processor with KVM. It is controlled over a
// socket.
type firecracker struct{ path string }

// version includes the processor, because the saved machine has detected it.
func (f firecracker) version() (string, error) {
	out, err := exec.Command(f.path, "--version").Output()
	first, _, _ := strings.Cut(string(out), "\n")
	return first + ", KVM on " + processor(), err
}

func (f firecracker) walls() []string {
	return walled("Firecracker", "Firecracker, on the machine's processor, by KVM", "vsock to its engine")
}

func (f firecracker) fit(k *kernel, c *vminit.Config) ([]string, error) {
	c.Vsock = true
	return k.modules(vsockParts)
}

func (f firecracker) shares() bool { return false }

// ports returns no connections: Firecracker makes them.
func (f firecracker) ports() (*ports, error) { return &ports{}, nil }

// plan returns what boot and restore have in common. The sockets are in a temporary folder that disappears with the
// process. Firecracker can write no more to a file than this folder can hold.
func (f firecracker) plan(size int64, mounts ...confine.Mount) (*confine.Plan, error) {
	files, err := linked(f.path)
	if err != nil {
		return nil, err
	}
	mounts = append(append(files, mounts...), confine.Mount{Source: kvm, Target: kvm, Device: true})
	for n, m := range mounts {
		if mounts[n].Source, err = filepath.EvalSymlinks(m.Source); err != nil {
			return nil, err
		}
	}
	argv := []string{f.path, "--api-sock", apiPath, "--level", "Error"}
	return &confine.Plan{Profile: "machine", Argv: argv, Serves: true, Mounts: mounts, Files: 256, Processes: threads, Tmp: size}, nil
}

// boot gives Firecracker files into which the machine is saved later.
func (f firecracker) boot(i *image, dir string, _ *ports) (*confine.Plan, error) {
	kernel, err := vmlinux(i.kernel.vmlinuz)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, kernelFile), kernel, 0o600)
	}
	for name, size := range map[string]int64{memoryFile: i.memory, stateFile: 0} {
		if err == nil {
			err = empty(filepath.Join(dir, name), size)
		}
	}
	if err != nil {
		return nil, err
	}
	return f.plan(i.memory+maxState, // as much as it writes
		confine.Mount{Source: filepath.Join(dir, kernelFile), Target: kernelPath},
		confine.Mount{Source: filepath.Join(dir, archiveFile), Target: archivePath},
		confine.Mount{Source: filepath.Join(dir, memoryFile), Target: memoryPath, Writable: true},
		confine.Mount{Source: filepath.Join(dir, stateFile), Target: statePath, Writable: true})
}

// empty creates a sparse file of size bytes.
func empty(name string, size int64) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

// object is a JSON object of Firecracker's API.
type object = map[string]any

func (f firecracker) started(ctx context.Context, i *image, p *ports) error {
	a, err := p.api(ctx)
	if err != nil {
		return err
	}
	defer a.close()
	for _, r := range []request{
		{"PUT", "/machine-config", object{"vcpu_count": 1, "mem_size_mib": i.memory >> 20}},
		{"PUT", "/boot-source", object{"kernel_image_path": kernelPath, "initrd_path": archivePath, "boot_args": firecrackerLine}},
		{"PUT", "/vsock", object{"guest_cid": guestCID, "uds_path": vsockPath}},
		{"PUT", "/actions", object{"action_type": "InstanceStart"}},
	} {
		if err := a.do(r); err != nil {
			return err
		}
	}
	return f.connect(ctx, p)
}

// connect connects to the first process of the machine as soon as it listens.
func (f firecracker) connect(ctx context.Context, p *ports) (err error) {
	if p.control, err = p.vsock(ctx, vminit.ControlVsock); err == nil {
		p.wire, err = p.vsock(ctx, vminit.WireVsock)
		p.events = bufio.NewReaderSize(p.control, longest)
	}
	return err
}

// keep saves only the pages that the machine has used, so that the rest of the file is a hole. Versions that cannot
// tell which these are write all of them.
func (f firecracker) keep(ctx context.Context, p *ports, dir string) error {
	a, err := p.api(ctx)
	if err != nil {
		return err
	}
	defer a.close()
	stop := context.AfterFunc(ctx, a.close)
	defer stop()
	if err := a.do(request{"PATCH", "/vm", object{"state": "Paused"}}); err != nil {
		return err
	}
	snapshot := object{"snapshot_type": "Diff", "snapshot_path": statePath, "mem_file_path": memoryPath}
	err = a.do(request{"PUT", "/snapshot/create", snapshot})
	if errors.Is(err, errRefused) {
		snapshot["snapshot_type"] = "Full"
		err = a.do(request{"PUT", "/snapshot/create", snapshot})
	}
	return errors.Join(err, os.Remove(filepath.Join(dir, kernelFile)))
}

// restore lets a copy write nothing except in the folder of its sockets.
func (f firecracker) restore(_ *image, dir string, _ *ports) (*confine.Plan, error) {
	return f.plan(little,
		confine.Mount{Source: filepath.Join(dir, memoryFile), Target: memoryPath},
		confine.Mount{Source: filepath.Join(dir, stateFile), Target: statePath})
}

func (f firecracker) resume(ctx context.Context, p *ports) error {
	a, err := p.api(ctx)
	if err != nil {
		return err
	}
	defer a.close()
	err = a.do(request{"PUT", "/snapshot/load", object{"snapshot_path": statePath, "mem_backend": object{"backend_type": "File", "backend_path": memoryPath}, "resume_vm": true}})
	if err != nil {
		return fmt.Errorf("wake: %w", err)
	}
	return f.connect(ctx, p)
}
