package vm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// kernel is one that machines can run, and the modules that it needs for that.
type kernel struct {
	vmlinuz string
	modules []string // files, in the order in which they are loaded
}

// wanted are the parts of Linux that a machine needs, in their order.
var wanted = []string{"drivers/virtio/virtio", "drivers/virtio/virtio_ring", "drivers/virtio/virtio_mmio", "drivers/char/virtio_console"}

// errKernel says that there is no kernel.
var errKernel = errors.New("there is no Linux kernel for machines")

// findKernel looks for the newest kernel below a folder.
func findKernel(dir string) (*kernel, error) {
	found, _ := filepath.Glob(filepath.Join(dir, "boot", "vmlinuz-*"))
	slices.Sort(found)
	slices.Reverse(found)
	why := fmt.Errorf("%w in %s", errKernel, dir)
	for _, vmlinuz := range found {
		k, err := newKernel(vmlinuz, filepath.Join(dir, "lib", "modules", strings.TrimPrefix(filepath.Base(vmlinuz), "vmlinuz-"), "kernel"))
		if err == nil {
			return k, nil
		}
		why = fmt.Errorf("%w: %s: %w", errKernel, vmlinuz, err)
	}
	return nil, why
}

func newKernel(vmlinuz, modules string) (*kernel, error) {
	f, err := os.Open(vmlinuz) // some systems let only root read it
	if err != nil {
		return nil, err
	}
	_ = f.Close()
	builtin, err := os.ReadFile(filepath.Join(filepath.Dir(modules), "modules.builtin"))
	if err != nil {
		return nil, err
	}
	k := &kernel{vmlinuz: vmlinuz}
	for _, m := range wanted {
		if strings.Contains(string(builtin), "kernel/"+m+".ko\n") {
			continue
		}
		file := filepath.Join(modules, filepath.FromSlash(m)+".ko")
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("%w (modules that are compressed cannot be used)", err)
		}
		k.modules = append(k.modules, file)
	}
	return k, nil
}
