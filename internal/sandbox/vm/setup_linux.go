package vm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"retort/internal/base/seal"
	"retort/internal/core"
	"retort/internal/sandbox"
)

const (
	setupLock = "setup.lock"
	// kernelDir names the folder in Options.Dir into which a downloaded kernel is unpacked.
	kernelDir = "kernel"
	fetching  = "fetching"
)

// SetupMachines prepares virtual machines on this computer. It finds a kernel or downloads one from the packages of
// Debian or Ubuntu, makes the machines of all runtimes in o, and starts a copy of each. Backends with the same
// Options.Dir then use these machines. The error is a *core.Error that says what is missing and how to install it.
func SetupMachines(ctx context.Context, o Options) (*SetupReport, error) {
	b := newBackend(o)
	machines := b.openPool()
	defer machines.Close()
	stop := context.AfterFunc(ctx, b.over)
	defer stop()
	if err := b.find(); err != nil {
		return nil, err
	}
	unlock, err := b.lockFile(setupLock)
	if err != nil {
		return nil, unusableError(err)
	}
	defer unlock()
	r := &SetupReport{Dir: b.Dir}
	var all error
	for _, find := range b.kernelSources() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		dir, origin, err := find(ctx)
		if err == nil {
			err = b.prepareKernel(r, dir, origin)
		}
		if err == nil {
			return r, b.prepareOthers(ctx, r)
		}
		b.logProgress("failed with this kernel: " + err.Error())
		all = errors.Join(all, err)
	}
	return nil, core.Errorf(core.KindSandboxUnavailable, Name, "no virtual machine could be created: %w", all).
		WithHint("unpack a Linux kernel for x86-64 (boot/vmlinuz-*, lib/modules/*) into a folder, then run retort vm setup --kernel FOLDER")
}

// kernelSource provides a folder that contains a kernel, and a description of where the kernel comes from. It may
// have to download the kernel first.
type kernelSource func(ctx context.Context) (dir, origin string, err error)

// kernelSources returns the sources from which a kernel can be taken, in the order in which to try them: the local
// ones, and then a download. If the settings name a folder, only that is a source.
func (b *vmBackend) kernelSources() []kernelSource {
	given := func(dir, origin string) kernelSource {
		return func(context.Context) (string, string, error) { return dir, origin, nil }
	}
	if b.Kernel != "" {
		return []kernelSource{given(b.Kernel, "the given folder")}
	}
	return []kernelSource{given(filepath.Join(b.Dir, kernelDir), "a package downloaded earlier"), given("/", "this machine's own kernel"), b.fetchKernel}
}

// prepareKernel makes the machine of the built-in runtime with the kernel in the folder dir. If that works,
// prepareKernel records this kernel as the chosen one.
func (b *vmBackend) prepareKernel(r *SetupReport, dir, origin string) error {
	dir = absolutePath(dir)
	k, err := findKernel(dir)
	if err != nil {
		return err
	}
	b.kernel = func() (*guestKernel, error) { return k, nil }
	r.Kernel, r.Origin = k.vmlinuz, origin
	b.logProgress("kernel: " + k.vmlinuz)
	if err := b.findAccelerator(r); err != nil {
		return err
	}
	version, err := b.driver.driverVersion()
	if err != nil {
		return err
	}
	r.Program = version
	made, err := b.measureMachine(quickjs)
	if err != nil {
		return err
	}
	r.Machines = []SavedMachine{*made}
	_, isFirecracker := b.driver.(firecrackerDriver)
	data, err := json.Marshal(chosenKernel{Kernel: dir, KVM: r.KVM, Firecracker: isFirecracker})
	if err != nil {
		return err
	}
	return seal.ReplaceFile(filepath.Join(b.Dir, chosenFile), data)
}

// prepareOthers makes a saved machine for each other runtime that is installed, and one for host commands if the
// settings allow any.
func (b *vmBackend) prepareOthers(ctx context.Context, r *SetupReport) error {
	var more []string
	for _, i := range b.Interpreters {
		if _, err := i.FindProgram(); err != nil {
			r.Missing = append(r.Missing, sandbox.MissingRuntime{Runtime: i.Runtime, Why: core.AsError(err)})
			continue
		}
		more = append(more, i.Runtime)
	}
	if len(b.Commands.Commands()) > 0 {
		more = append(more, forCommands)
	}
	for _, runtime := range more {
		made, err := b.measureMachine(runtime)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return unusableError(fmt.Errorf("%s: %w", runtime, err))
		}
		r.Machines = append(r.Machines, *made)
	}
	return nil
}

// measureMachine makes the machine of a runtime if it does not exist, and measures how long a copy takes to start. If
// an existing machine cannot be resumed, measureMachine makes it again.
func (b *vmBackend) measureMachine(runtime string) (*SavedMachine, error) {
	for again := false; ; again = true {
		began := time.Now()
		k, err := b.images[runtime]()
		if err != nil {
			return nil, err
		}
		made := &SavedMachine{Runtime: runtime, Dir: k.dir, Made: time.Since(began).Milliseconds()}
		began = time.Now()
		err = b.tryWake(k)
		if err == nil {
			made.Woken, made.Bytes = time.Since(began).Milliseconds(), onDisk(k.dir)
			return made, nil
		}
		if again || b.life.Err() != nil {
			return nil, err
		}
		b.logProgress("the saved machine cannot be resumed and is created again: " + err.Error())
		if err := os.RemoveAll(k.dir); err != nil {
			return nil, err
		}
	}
}

// onDisk returns the disk space that the files in a folder occupy, in bytes. Unused memory of a saved machine
// occupies none.
func onDisk(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := e.Info(); err == nil {
			if stat, ok := info.Sys().(*syscall.Stat_t); ok {
				bytes += stat.Blocks * 512
			}
		}
		return nil
	})
	return bytes
}

// lockFile locks the file with the given name in Options.Dir. It waits while another process holds the lock, and
// creates the folder if it is missing.
func (b *vmBackend) lockFile(name string) (unlock func(), err error) {
	if err := os.MkdirAll(b.Dir, 0o700); err != nil {
		return nil, err
	}
	if err := checkOwned(b.Dir); err != nil {
		return nil, err
	}
	return seal.Lock(filepath.Join(b.Dir, name), seal.Unbounded)
}

// kernelMetaPackages lists the packages of Debian and Ubuntu that depend on the newest kernel for virtual machines.
var kernelMetaPackages = []string{"linux-image-cloud-amd64", "linux-image-virtual"}

// fetchKernel downloads a kernel from the signed packages of Debian or Ubuntu, and unpacks the needed files. It
// installs nothing.
func (b *vmBackend) fetchKernel(ctx context.Context) (dir, origin string, err error) {
	for _, program := range []string{"apt-get", "apt-cache", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", "", fmt.Errorf("no kernel can be downloaded: this system has no %s, so it is not Debian or Ubuntu", program)
		}
	}
	images, err := kernelPackages(ctx, b.logProgress)
	if err != nil {
		return "", "", err
	}
	work := filepath.Join(b.Dir, fetching)
	if err := errors.Join(os.RemoveAll(work), os.MkdirAll(filepath.Join(work, "unpacked"), 0o700)); err != nil {
		return "", "", err
	}
	defer os.RemoveAll(work)
	b.logProgress("fetching " + strings.Join(images, ", ") + ", about 80 MB")
	if _, err := runTool(ctx, work, "apt-get", append([]string{"-q", "download"}, images...)...); err != nil {
		return "", "", err
	}
	files, _ := filepath.Glob(filepath.Join(work, "*.deb"))
	for _, f := range files {
		if _, err := runTool(ctx, work, "dpkg-deb", "-x", f, "unpacked"); err != nil {
			return "", "", err
		}
	}
	to := filepath.Join(b.Dir, kernelDir)
	return to, "the package " + images[0], keepKernel(filepath.Join(work, "unpacked"), to)
}

// kernelPackages returns the names of the packages that together contain a kernel and its modules.
func kernelPackages(ctx context.Context, tell func(string)) ([]string, error) {
	image, err := kernelPackage(ctx)
	if err != nil && os.Geteuid() == 0 { // a fresh system has no list of packages yet
		tell("updating the list of packages (apt-get update)")
		if _, failed := runTool(ctx, "/", "apt-get", "-q", "update"); failed != nil {
			return nil, failed
		}
		image, err = kernelPackage(ctx)
	}
	if err != nil {
		return nil, err
	}
	all := []string{image}
	modules := "linux-modules-" + strings.TrimPrefix(image, "linux-image-")
	if _, err := runTool(ctx, "/", "apt-cache", "show", "--no-all-versions", modules); err == nil { // Ubuntu has separate module packages
		all = append(all, modules)
	}
	return all, nil
}

var imagePackage = regexp.MustCompile(`(?m)^Depends:.*?\b(linux-image-\d[a-z0-9.+-]*)`)

// kernelPackage returns the name of the newest package with a kernel for virtual machines.
func kernelPackage(ctx context.Context) (string, error) {
	var all error
	for _, p := range kernelMetaPackages {
		out, err := runTool(ctx, "/", "apt-cache", "show", "--no-all-versions", p)
		if found := imagePackage.FindStringSubmatch(out); err == nil && found != nil {
			return found[1], nil
		}
		all = errors.Join(all, err)
	}
	return "", fmt.Errorf("the package manager finds no package with a kernel for virtual machines (try sudo apt-get update): %w", errors.Join(all, errKernel))
}

// runTool runs a program of the system and returns its output.
func runTool(ctx context.Context, dir, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(complaint.String()), "\n")
		return "", fmt.Errorf("%s %s: %w: %s", program, args[0], err, lines[len(lines)-1])
	}
	return string(out), nil
}

// keepKernel keeps only the needed files of an unpacked kernel package. It moves them to the folder in the argument
// to, where they replace the previous kernel.
func keepKernel(from, to string) error {
	k, err := findKernel(from)
	if err != nil {
		return err
	}
	files, err := k.moduleFiles(serialParts)
	if err != nil {
		return err
	}
	if more, err := k.moduleFiles(vsockParts); err == nil {
		files = append(files, more...)
	}
	slices.Sort(files)
	part := from + ".kept"
	for _, f := range append([]string{k.vmlinuz, k.builtin}, slices.Compact(files)...) {
		name, err := filepath.Rel(from, f)
		if err != nil {
			return err
		}
		place := filepath.Join(part, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(place), 0o700), os.Rename(f, place)); err != nil {
			return err
		}
	}
	return errors.Join(os.RemoveAll(to), os.Rename(part, to))
}
