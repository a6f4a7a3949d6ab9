package vm

import (
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/guest/vminit"
	"retort/internal/sandbox/interpreter"
)

const (
	archiveFile = "archive"
	readyFile   = "ready"
	lockFile    = "lock"
	prefix      = "machine-"
	making      = "making-"
	// tmpSize sets the size of an interpreter's /tmp in bytes. The files there use the machine's memory.
	tmpSize = 64 << 20
	// otherMachines is how many saved machines of a runtime are kept in addition to the current one. Engines of
	// another version, or with another interpreter, may use these other machines. unusedLifetime is how long such a
	// machine is kept after its last use.
	otherMachines  = 2
	unusedLifetime = 7 * 24 * time.Hour
	// bootTime bounds how long a machine may take from its start until its guest is idle. Time in which it waits for
	// a processor does not count.
	bootTime = 4 * time.Minute
)

// machineImage describes everything that is needed to boot the machine of a runtime: its kernel, files, configuration
// and memory size.
type machineImage struct {
	runtime string
	kernel  *guestKernel
	i       *interpreter.Interpreter // interpreter of the runtime; nil for the built-in runtime
	image   *interpreter.FileImage   // files of the interpreter; nil for the built-in runtime
	config  vminit.MachineConfig
	binary  string
	modules []string // files of kernel modules, in the order in which they are loaded
	threads int
	memory  int64 // memory of the machine, in bytes
}

// describeImage returns the description of the machine that runs programs of the given runtime. It returns an error
// if something that the machine needs, such as a kernel, is missing.
func (b *vmBackend) describeImage(runtime string, i *interpreter.Interpreter) (*machineImage, error) {
	k, err := b.kernel()
	if err != nil {
		return nil, err
	}
	if err := interpreter.CheckStatic(b.Guest[0], elf.EM_X86_64); err != nil {
		return nil, core.Errorf(
			core.KindSandboxUnavailable, Name, "%s cannot run alone in a virtual machine: %w", b.Guest[0], err,
		).WithHint("build the program with CGO_ENABLED=0, or use another sandbox")
	}
	if err := b.find(); err != nil {
		return nil, err
	}
	m := &machineImage{runtime: runtime, kernel: k, i: i, binary: b.Guest[0], threads: 32, memory: machineMemory(b.Limits)}
	m.config.Command = b.Guest[1:]
	m.config.Commands = runtime == forCommands
	m.config.Plan = confine.SandboxPlan{Profile: runtime, Files: 64, Processes: m.threads, Proc: confine.WantsProc}
	if m.modules, err = b.driver.kernelModules(k, &m.config); err != nil {
		return nil, core.Errorf(core.KindSandboxUnavailable, Name, "%w", err).WithHint("retort vm setup")
	}
	for n := range m.modules {
		m.config.Modules = append(m.config.Modules, fmt.Sprintf("/modules/%d.ko", n))
	}
	if i == nil {
		b.shareMemory(m)
		return m, nil
	}
	found, err := i.FindProgram()
	if err != nil {
		return nil, err
	}
	if m.image, err = i.CollectImage(found); err != nil {
		return nil, err
	}
	m.threads = i.Threads
	p := confine.SandboxPlan{
		Profile: runtime, Argv: i.CommandLine(m.image), Env: i.Env, Harness: interpreter.HarnessDir, Tmp: tmpSize,
		Proc: i.Proc || confine.WantsProc, Files: 256, Processes: i.Threads,
	}
	for _, target := range slices.Sorted(maps.Keys(m.image.Sources)) {
		p.Mounts = append(p.Mounts, confine.PlanMount{Source: target, Target: target})
	}
	for _, target := range m.image.Empty {
		p.Mounts = append(p.Mounts, confine.PlanMount{Target: target, Empty: true})
	}
	if i.Proxied && b.Network != nil { // as in docker and gvisor: a relay in the machine
		env, authorities := b.Network.ProxyEnvironment(i.Env, confine.ProxyPort)
		p.Network, p.Env = confine.Relayed, env
		if authorities != "" {
			m.image.Sources[interpreter.CertificatesPath] = authorities
			p.Mounts = append(p.Mounts, confine.PlanMount{Source: interpreter.CertificatesPath, Target: interpreter.CertificatesPath})
		}
	}
	m.config.Plan = p
	b.shareMemory(m)
	return m, nil
}

// machineMemory returns the memory in bytes that a machine needs for programs with the limits l. It is a multiple of
// the unit in which the kernel manages memory.
func machineMemory(l core.Limits) int64 {
	const step = 128 << 20
	return max(minMemory, (l.Memory+systemMemory+step-1)/step*step)
}

// writeArchive writes the archive that the machine's kernel unpacks when it boots.
func (i *machineImage) writeArchive(w io.Writer) error {
	a := newArchive(w)
	config, err := json.Marshal(i.config)
	if err != nil {
		return err
	}
	for _, dir := range []string{"/dev", "/proc", "/sys", "/tmp", "/run", "/mnt"} {
		err = errors.Join(err, a.writeDir(dir))
	}
	err = errors.Join(err, a.writeFile(vminit.Program, i.binary), a.writeData(vminit.ConfigPath, config))
	for n, m := range i.modules {
		code, unreadable := readModule(m)
		err = errors.Join(err, unreadable, a.writeData(i.config.Modules[n], code))
	}
	if err == nil && i.image != nil {
		err = i.writeSources(a)
	}
	return errors.Join(err, a.writeTrailer())
}

// writeArchiveFile writes the archive into a folder.
func (i *machineImage) writeArchiveFile(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, archiveFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(i.writeArchive(f), f.Close())
}

// writeSources adds the files of an interpreter to the archive.
func (i *machineImage) writeSources(a *cpioArchive) error {
	skip := map[string]bool{}
	for _, e := range i.image.Empty {
		skip[path.Clean(e)] = true
	}
	for _, target := range slices.Sorted(maps.Keys(i.image.Sources)) {
		source := i.image.Sources[target]
		info, err := os.Stat(source)
		switch {
		case err != nil:
			return err
		case info.IsDir():
			err = a.writeTree(target, source, skip)
		default:
			err = a.writeFile(target, source)
		}
		if err != nil {
			return err
		}
	}
	for _, target := range i.image.Empty {
		if err := a.writeDir(target); err != nil {
			return err
		}
	}
	return nil
}

// imageKey returns a hash of everything that determines the machine: the path, size and time of all files in its
// archive, the kernel, and the version of the driver.
func (i *machineImage) imageKey(version string) (string, error) {
	h := sha256.New()
	config, err := json.Marshal(i.config)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(h, "2 %s %s %s %s %d %s\n", i.runtime, version, commandLine, firecrackerLine, i.memory, config)
	sources := append([]string{i.binary, i.kernel.vmlinuz}, i.modules...)
	if i.image != nil {
		for _, target := range slices.Sorted(maps.Keys(i.image.Sources)) {
			sources = append(sources, i.image.Sources[target])
		}
	}
	if i.i != nil {
		harness := i.i.Harness()
		for _, name := range slices.Sorted(maps.Keys(harness)) {
			fmt.Fprintf(h, "%s %x\n", name, sha256.Sum256(harness[name]))
		}
	}
	for _, s := range sources {
		info, err := os.Stat(s)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d %d\n", s, info.Size(), info.ModTime().UnixNano())
	}
	return hex.EncodeToString(h.Sum(nil))[:24], nil
}

// ensureMachine returns the folder of the image's saved machine. If there is no saved machine yet, it boots and saves
// one.
func (b *vmBackend) ensureMachine(i *machineImage) (string, error) {
	version, err := b.driver.driverVersion()
	if err != nil {
		return "", err
	}
	key, err := i.imageKey(version)
	if err != nil {
		return "", err
	}
	unlock, err := b.lockFile(lockFile) // waits while another process makes one
	if err != nil {
		return "", err
	}
	defer unlock()
	b.removeUnfinished()
	dir := filepath.Join(b.Dir, prefix+i.runtime+"-"+key)
	now := time.Now()
	if os.Chtimes(filepath.Join(dir, readyFile), now, now) == nil { // it exists and is in use
		return dir, nil
	}
	b.removeUnused(i.runtime)
	part := filepath.Join(b.Dir, making+i.runtime)
	if err := errors.Join(os.RemoveAll(part), os.Mkdir(part, 0o700)); err != nil {
		return "", err
	}
	if err := b.makeMachine(i, part); err != nil {
		return "", errors.Join(err, os.RemoveAll(part))
	}
	return dir, errors.Join(os.RemoveAll(dir), os.Rename(part, dir))
}

// removeUnfinished removes the incomplete files that processes left behind when they died while saving a machine. The
// caller must hold the lock that every process holds while it makes a machine.
func (b *vmBackend) removeUnfinished() {
	half, _ := filepath.Glob(filepath.Join(b.Dir, making+"*"))
	for _, name := range append(half, b.orphanedFiles()...) {
		_ = os.RemoveAll(name)
	}
}

// removeUnused makes room for a new machine of a runtime. It removes other saved machines of the runtime, which were
// made for other binaries, kernels or interpreters, if they were not used for a while or are too many. Running copies
// are not affected, because they have their memory file open. The caller must hold the lock that every process holds
// while it makes a machine.
func (b *vmBackend) removeUnused(runtime string) {
	others, _ := filepath.Glob(filepath.Join(b.Dir, prefix+runtime+"-*"))
	used := map[string]time.Time{} // zero for incomplete machines
	for _, dir := range others {
		if info, err := os.Stat(filepath.Join(dir, readyFile)); err == nil {
			used[dir] = info.ModTime()
		}
	}
	slices.SortFunc(others, func(a, b string) int { return used[b].Compare(used[a]) })
	for n, dir := range others {
		if n < otherMachines && time.Since(used[dir]) <= unusedLifetime {
			continue
		}
		gone := filepath.Join(b.Dir, making+strconv.Itoa(n)) // atomically, so that no copy starts from half of it
		if os.RemoveAll(gone) == nil && os.Rename(dir, gone) == nil {
			dir = gone
		}
		_ = os.RemoveAll(dir)
	}
}

// checkOwned returns an error if the folder does not belong to this user or other users can write to it.
func checkOwned(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return &os.PathError{Op: "use", Path: dir, Err: errors.New("other users could write to this folder")}
	}
	return nil
}

// makeMachine boots a machine in dir and saves it once its guest waits for a program.
func (b *vmBackend) makeMachine(i *machineImage, dir string) error {
	b.logProgress("starting a machine for " + i.runtime + ", once")
	if err := i.writeArchiveFile(dir); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(b.life)
	defer cancel()
	m, err := b.bootMachine(ctx, i, dir)
	if err != nil {
		return err
	}
	defer func() { <-m.gone }()
	defer m.Close()
	defer m.endWith(ctx)()
	defer m.killAfter(bootTime)()
	greeting, err := m.readGreeting()
	if err != nil {
		return m.whyNot(err)
	}
	b.logProgress("the machine runs; waiting until it is idle")
	m.waitIdle(ctx)
	if err := b.driver.saveMachine(ctx, m.machinePorts, dir); err != nil {
		return m.whyNot(err)
	}
	if err := m.shared.SaveTo(filepath.Join(dir, ringFile)); err != nil {
		return err
	}
	b.logProgress("the saved machine is stored")
	return errors.Join(os.Remove(filepath.Join(dir, archiveFile)), os.WriteFile(filepath.Join(dir, readyFile), greeting, 0o600))
}

func (b *vmBackend) logProgress(what string) {
	if b.Progress != nil {
		b.Progress(what)
	}
}

// retryableOnce works like sync.OnceValues, except that the returned function calls f again if f has returned an
// error, or if the function valid rejects the value that f returned before.
func retryableOnce[T any](valid func(T) bool, f func() (T, error)) func() (T, error) {
	var mu sync.Mutex
	var value T
	var done bool
	return func() (T, error) {
		mu.Lock()
		defer mu.Unlock()
		if done && valid(value) {
			return value, nil
		}
		v, err := f()
		value, done = v, err == nil
		return v, err
	}
}

// unusableError converts the error err, because of which no machine is usable, to the error that callers of Prepare
// get.
func unusableError(err error) error {
	var known *core.Error
	if errors.As(err, &known) {
		return err
	}
	if errors.Is(err, syscall.ENOSPC) {
		return core.Errorf(
			core.KindSandboxUnavailable, Name, "the virtual machine could not be saved: %w", err,
		).WithHint("free disk space in the folder of saved machines, which retort doctor names")
	}
	return core.Errorf(core.KindSandboxUnavailable, Name, "no virtual machine could be started: %w", err).WithHint("retort vm setup")
}
