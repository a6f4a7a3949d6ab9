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

// kernel is one that machines can run, and the modules that it needs for that.
type kernel struct {
	vmlinuz string
	dir     string // of its modules
	builtin string // file with the names of modules that it has within
}

// What a machine needs of Linux: virtio, and what its ways out are made of.
var (
	virtioParts = []string{"drivers/virtio/virtio", "drivers/virtio/virtio_ring", "drivers/virtio/virtio_mmio"}
	serialParts = append(slices.Clone(virtioParts), "drivers/char/virtio_console")
	vsockParts  = append(slices.Clone(virtioParts), "net/vmw_vsock/vsock", "net/vmw_vsock/vmw_vsock_virtio_transport_common", "net/vmw_vsock/vmw_vsock_virtio_transport")
)

// errKernel says that there is no kernel.
var errKernel = errors.New("there is no Linux kernel for machines")

// findKernel looks for the newest kernel below a folder: in boot, as Debian has them, or beside
// the modules, as Fedora does.
func findKernel(dir string) (*kernel, error) {
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

// findModules is the folder of a kernel's modules: some packages have lib below usr.
func findModules(dir, version string) string {
	below := filepath.Join("lib", "modules", version)
	if usr := filepath.Join(dir, "usr", below); exists(usr) && !exists(filepath.Join(dir, below)) {
		return usr
	}
	return filepath.Join(dir, below)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func newKernel(vmlinuz, modules string) (*kernel, error) {
	f, err := os.Open(vmlinuz) // some systems let only root read it
	if err != nil {
		return nil, err
	}
	_ = f.Close()
	k := &kernel{vmlinuz: vmlinuz, dir: modules, builtin: filepath.Join(modules, "modules.builtin")}
	_, err = k.modules(serialParts) // without vsocks it is good for QEMU
	return k, err
}

// modules are the files of those parts that the kernel does not have within, in the order in which
// they are loaded.
func (k *kernel) modules(parts []string) (files []string, err error) {
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
	return ordered(files)
}

var dependencies = regexp.MustCompile(`\x00depends=([a-z0-9_,-]*)\x00`)

// ordered puts modules behind those that they need: which ones these are differs between versions.
func ordered(files []string) (sorted []string, err error) {
	needs := map[string][]string{} // by the name of a module
	name := func(file string) string {
		base, _, _ := strings.Cut(filepath.Base(file), ".")
		return strings.ReplaceAll(base, "-", "_")
	}
	for _, f := range files {
		code, err := module(f)
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
			return nil, fmt.Errorf("%w: its modules need each other: %v", errKernel, needs)
		}
	}
	return sorted, nil
}

// compressed are the ways in which systems compress modules, by the ends of their names, and the
// programs that undo it.
var compressed = map[string][]string{".xz": {"xz", "-dc"}, ".zst": {"zstd", "-dcq"}, ".gz": nil}

// findModule is the file of a module, which may be compressed.
func findModule(file string) (string, error) {
	_, err := os.Stat(file)
	if err == nil {
		return file, nil
	}
	for end := range compressed {
		if exists(file + end) {
			return file + end, nil
		}
	}
	return "", err
}

// maxModule is the most that a module may have, in bytes.
const maxModule = 64 << 20

// module reads a module.
func module(file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	program, packed := compressed[filepath.Ext(file)]
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
		err = fmt.Errorf("%s is larger than a module can be", file)
	}
	return data, err
}
