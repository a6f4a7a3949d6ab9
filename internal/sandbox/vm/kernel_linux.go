package vm

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// guestKernel represents a Linux kernel for machines and the kernel modules that machines need.
type guestKernel struct {
	vmlinuz string
	dir     string // folder that contains the kernel's modules
	builtin string // file that lists the modules that are built into the kernel
}

// virtioParts, serialParts and vsockParts list the kernel modules that a machine needs: virtioParts for virtio,
// serialParts also for connections over a serial device, and vsockParts also for connections over a vsock.
var (
	virtioParts = []string{"drivers/virtio/virtio", "drivers/virtio/virtio_ring", "drivers/virtio/virtio_mmio"}
	serialParts = append(slices.Clone(virtioParts), "drivers/char/virtio_console")
	vsockParts  = append(
		slices.Clone(virtioParts), "net/vmw_vsock/vsock", "net/vmw_vsock/vmw_vsock_virtio_transport_common",
		"net/vmw_vsock/vmw_vsock_virtio_transport",
	)
)

// errKernel means that no kernel was found.
var errKernel = errors.New("there is no Linux kernel for virtual machines")

// findKernel returns the newest kernel below a folder. It searches the folder boot, where Debian stores kernels, and
// the folders of kernel modules, where Fedora stores them.
func findKernel(dir string) (*guestKernel, error) {
	found, _ := filepath.Glob(filepath.Join(dir, "boot", "vmlinuz-*"))
	slices.Sort(found)
	slices.Reverse(found)
	beside, _ := filepath.Glob(filepath.Join(dir, "lib", "modules", "*", "vmlinuz"))
	why := fmt.Errorf("%w in %s", errKernel, dir)
	for _, vmlinuz := range append(found, beside...) {
		version := strings.TrimPrefix(filepath.Base(vmlinuz), "vmlinuz-")
		if version == "vmlinuz" {
			version = filepath.Base(filepath.Dir(vmlinuz))
		}
		k, err := newKernel(vmlinuz, findModules(dir, version))
		if err == nil {
			return k, nil
		}
		why = fmt.Errorf("%w: %s: %w", errKernel, vmlinuz, err)
	}
	return nil, why
}

// findModules returns the folder of a kernel's modules, which is in lib or, in some packages, in usr/lib.
func findModules(dir, version string) string {
	below := filepath.Join("lib", "modules", version)
	if usr := filepath.Join(dir, "usr", below); fileExists(usr) && !fileExists(filepath.Join(dir, below)) {
		return usr
	}
	return filepath.Join(dir, below)
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func newKernel(vmlinuz, modules string) (*guestKernel, error) {
	f, err := os.Open(vmlinuz) // some systems let only root read it
	if err != nil {
		return nil, err
	}
	_ = f.Close()
	k := &guestKernel{vmlinuz: vmlinuz, dir: modules, builtin: filepath.Join(modules, "modules.builtin")}
	_, err = k.moduleFiles(serialParts) // without vsock it can be used with QEMU
	return k, err
}

// moduleFiles returns the files of the given kernel modules in the order in which they must be loaded. It omits
// modules that are built into the kernel.
func (k *guestKernel) moduleFiles(parts []string) (files []string, err error) {
	builtin, err := os.ReadFile(k.builtin)
	if err != nil {
		return nil, err
	}
	for _, m := range parts {
		if strings.Contains(string(builtin), "kernel/"+m+".ko\n") {
			continue
		}
		file, err := findModule(filepath.Join(k.dir, "kernel", filepath.FromSlash(m)+".ko"))
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return orderModules(files)
}

var dependencies = regexp.MustCompile(`\x00depends=([a-z0-9_,-]*)\x00`)

// orderModules sorts kernel modules so that each comes after the modules that it depends on. The dependencies differ
// between kernel versions.
func orderModules(files []string) (sorted []string, err error) {
	needs := map[string][]string{} // by the name of a module
	name := func(file string) string {
		base, _, _ := strings.Cut(filepath.Base(file), ".")
		return strings.ReplaceAll(base, "-", "_")
	}
	for _, f := range files {
		code, err := readModule(f)
		if err != nil {
			return nil, err
		}
		needs[name(f)] = nil
		if found := dependencies.FindSubmatch(code); found != nil && len(found[1]) > 0 {
			needs[name(f)] = strings.Split(strings.ReplaceAll(string(found[1]), "-", "_"), ",")
		}
	}
	for len(sorted) < len(files) {
		before := len(sorted)
		for _, f := range files {
			waits := slices.ContainsFunc(needs[name(f)], func(n string) bool { _, ours := needs[n]; return ours })
			if _, todo := needs[name(f)]; todo && !waits {
				sorted = append(sorted, f)
				delete(needs, name(f))
			}
		}
		if len(sorted) == before {
			return nil, fmt.Errorf("%w: its modules depend on each other in a cycle: %v", errKernel, needs)
		}
	}
	return sorted, nil
}

// decompressors maps the file extensions of compressed modules to the programs that decompress them.
var decompressors = map[string][]string{".xz": {"xz", "-dc"}, ".zst": {"zstd", "-dcq"}, ".gz": nil}

// findModule returns the file of a module, which may be compressed.
func findModule(file string) (string, error) {
	_, err := os.Stat(file)
	if err == nil {
		return file, nil
	}
	for end := range decompressors {
		if fileExists(file + end) {
			return file + end, nil
		}
	}
	return "", err
}

// maxModule bounds the size of a kernel module, in bytes.
const maxModule = 64 << 20

// readModule returns the content of a kernel module, decompressed.
func readModule(file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	program, packed := decompressors[filepath.Ext(file)]
	var plain io.Reader = bytes.NewReader(data)
	switch {
	case !packed:
		return data, nil
	case program == nil:
		plain, err = gzip.NewReader(plain)
	default:
		cmd := exec.Command(program[0], program[1:]...)
		cmd.Stdin = plain
		var out []byte
		out, err = cmd.Output()
		plain = bytes.NewReader(out)
	}
	if err != nil {
		return nil, fmt.Errorf("decompress %s: %w", file, err)
	}
	data, err = io.ReadAll(io.LimitReader(plain, maxModule+1))
	if err == nil && len(data) > maxModule {
		err = fmt.Errorf("%s is too large for a kernel module", file)
	}
	return data, err
}
