package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"

	"retort/internal/sandbox/wire/shm"
)

// Enter confines this process according to the SandboxPlan that it reads from its descriptor 3. If the plan names an
// interpreter, the process becomes the interpreter and Enter does not return. Otherwise Enter returns when the whole
// process is confined. The function harness returns, by name, the files of a profile's harness, the code that makes
// an interpreter a guest. Enter also writes an error to standard error for the parent. After an error the process
// must exit with ExitStatus(err).
func Enter(harness func(profile string) map[string][]byte) error {
	// The kernel kills this process when the parent dies, according to the setting of the first thread. After execve
	// that is the thread which called execve, so it must be the one that makes the setting. If the parent is dead
	// already, no plan arrives.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return reportFailure(setupError("parent", err))
	}
	plan, err := receivePlan()
	if err != nil {
		return reportFailure(setupError("plan", err))
	}
	return reportFailure(plan.enterSandbox(harness))
}

// EnterContained works like Enter for the first process of a container or a virtual machine. plan is a SandboxPlan as
// JSON. The process restricts itself more than its container does.
func EnterContained(plan string) error {
	p := SandboxPlan{}
	if err := json.Unmarshal([]byte(plan), &p); err != nil {
		return reportFailure(setupError("plan", err))
	}
	p.Contained = true
	return reportFailure(p.enterSandbox(nil))
}

// reportFailure writes the error to standard error, where the parent reads it, and returns the error.
func reportFailure(err error) error {
	var ended *RelayEnded
	if err != nil && !errors.As(err, &ended) {
		_, _ = unix.Write(standardError, []byte(err.Error()+"\n"))
	}
	return err
}

func (p *SandboxPlan) enterSandbox(harness func(profile string) map[string][]byte) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := setupError("network", p.openNetwork()); err != nil {
		return err
	}
	closeInherited(p.Keep)
	if p.Network == Relayed {
		return p.startRelay()
	}
	if p.Ring {
		p.openRing()
	}
	program, err := p.openInterpreter()
	if err != nil {
		return err
	}
	if !p.Weak && !p.Contained {
		if err := p.buildRoot(harness(p.Profile)); err != nil {
			return err
		}
	}
	if err := p.confineProcess(program); err != nil || program == nil {
		return err
	}
	return setupError("start "+p.Argv[0], program.execInterpreter(p.Argv, p.Env))
}

// confineProcess applies the restrictions to the process itself: limits, user, capabilities, Landlock and the system
// call filter.
func (p *SandboxPlan) confineProcess(program *heldInterpreter) error {
	for _, step := range []struct {
		name  string
		build func() error
	}{
		{"limits", p.setLimits},
		{"user", p.changeUser},
		{"no_new_privs", func() error { return onAllThreads(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1) }},
		{"capabilities", p.dropCapabilities},
		{"landlock", p.applyLandlock},
		{"system calls", func() error { return p.loadFilter(program) }},
	} {
		if err := setupError(step.name, step.build()); err != nil {
			return err
		}
	}
	return nil
}

// receivePlan reads the SandboxPlan from the descriptor planDescriptor.
func receivePlan() (plan SandboxPlan, err error) {
	f := os.NewFile(planDescriptor, "plan")
	if f == nil {
		return plan, fmt.Errorf("there is no plan")
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return plan, err
	}
	return plan, json.Unmarshal(data, &plan)
}

// closeInherited closes the descriptors that this process has inherited. It spares the standard streams and the
// descriptors that follow planDescriptor directly, as many as the argument keep says. It recognizes inherited
// descriptors by the missing close-on-exec flag, because Go sets that flag on all descriptors that it opens.
func closeInherited(keep int) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		// Without /proc, at least no descriptor may reach an interpreter.
		_ = unix.CloseRange(uint(planDescriptor+1+keep), ^uint(0)>>32, unix.CLOSE_RANGE_CLOEXEC)
		return
	}
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd < planDescriptor || fd > planDescriptor && fd <= planDescriptor+keep {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}

// openRing gives the guest access to the memory that it shares with the engine. If this fails, the guest's calls
// still work, only slower.
func (p *SandboxPlan) openRing() {
	fd := planDescriptor + 1
	if p.Contained {
		var err error
		if fd, err = unix.Open(RingPath, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0); err != nil {
			return
		}
	}
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_DUPFD, shm.Descriptor) // no higher descriptor is open yet
	_ = unix.Close(fd)
}

// setLimits sets the resource limits that are the same for every program of a profile. The parent sets the limits of
// a single program when that program starts. A limit that is already lower is not raised.
func (p *SandboxPlan) setLimits() error {
	limits := map[int]uint64{
		unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: uint64(p.Files), unix.RLIMIT_FSIZE: uint64(p.Tmp),
		unix.RLIMIT_MEMLOCK: 0, unix.RLIMIT_MSGQUEUE: 0,
	}
	if p.Processes > 0 && !p.Weak { // without a namespace it would count all processes of the user
		limits[unix.RLIMIT_NPROC] = uint64(p.Processes)
	}
	if p.Data > 0 {
		limits[unix.RLIMIT_DATA] = uint64(p.Data)
	}
	if p.Seconds > 0 {
		limits[unix.RLIMIT_CPU] = uint64(p.Seconds)
	}
	for resource, most := range limits {
		var now unix.Rlimit
		if unix.Getrlimit(resource, &now) == nil {
			most = min(most, now.Max)
		}
		err := unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most})
		if p.Contained && err == unix.EPERM {
			continue // a user-space kernel without this resource
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// changeUser changes to a user that owns no files, in all threads of the process.
func (p *SandboxPlan) changeUser() error {
	if p.User == 0 {
		return nil
	}
	if p.keptCapability() != noCapability {
		// This thread keeps its capabilities as another user, because access(2) considers them.
		const noSetuidFixup = 1 << 2 // SECBIT_NO_SETUID_FIXUP
		if err := unix.Prctl(unix.PR_SET_SECUREBITS, noSetuidFixup, 0, 0, 0); err != nil {
			return err
		}
	}
	if err := syscall.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setresgid(p.User, p.User, p.User); err != nil {
		return err
	}
	if err := syscall.Setresuid(p.User, p.User, p.User); err != nil {
		return err
	}
	// Changing the user clears the death signal, so set it again.
	return onAllThreads(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL))
}

// onAllThreads makes a system call in every thread of the process, including those that C code has started.
func onAllThreads(trap, a1, a2 uintptr) error {
	if _, _, errno := psx.Syscall6(trap, a1, a2, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

const standardError = 2

const lastCapability = 40 // number of the highest capability, CAP_CHECKPOINT_RESTORE

// dropCapabilities drops all capabilities except keptCapability. If the process becomes an interpreter, it also
// clears the bounding set, so that no capability can be regained. It clears the set only in the current thread,
// because the other threads end when the process becomes the interpreter.
func (p *SandboxPlan) dropCapabilities() error {
	if len(p.Argv) > 0 {
		for c := uintptr(0); c <= lastCapability; c++ {
			if int(c) == p.keptCapability() {
				continue // an inherited capability must be in the bounding set
			}
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && err != unix.EINVAL && err != unix.EPERM {
				return err
			}
		}
	}
	if err := onAllThreads(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL); err != nil {
		return err
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var set [2]unix.CapUserData
	if kept := p.keptCapability(); kept != noCapability {
		return keepOne(&header, &set, kept)
	}
	return onAllThreads(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&set[0])))
}

// noCapability means that the process keeps no capability.
const noCapability = -1

// keptCapability returns the one capability that the process keeps, or noCapability. A process that runs as another
// user needs a capability to read folders that the engine owns, and to write to them if one of them is writable.
// Everything else in the sandbox is read-only and readable by everybody.
func (p *SandboxPlan) keptCapability() int {
	kept := noCapability
	for _, m := range p.Mounts {
		switch {
		case m.Below == "" || p.User == 0 || p.Weak || p.Contained:
		case m.Writable:
			return unix.CAP_DAC_OVERRIDE
		default:
			kept = unix.CAP_DAC_READ_SEARCH
		}
	}
	return kept
}

// keepOne drops all capabilities of this thread except the argument kept, and makes that one survive execve. The
// other threads lost their capabilities when they changed the user.
func keepOne(header *unix.CapUserHeader, set *[2]unix.CapUserData, kept int) error {
	bit := uint32(1) << kept
	set[0] = unix.CapUserData{Effective: bit, Permitted: bit, Inheritable: bit}
	if err := unix.Capset(header, &set[0]); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, uintptr(kept), 0, 0)
}

// heldInterpreter represents the interpreter that this process can become. The sandbox's file system has no path to
// it, and the process must not start any other program. The system call filter therefore allows execve for only one
// memory address, which programs cannot guess later.
type heldInterpreter struct {
	path    []byte // path of the executable; the filter allows execve only for the address of this text
	address uintptr
}

func (p *SandboxPlan) openInterpreter() (*heldInterpreter, error) {
	if len(p.Argv) == 0 {
		return nil, nil
	}
	memory, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, setupError("memory", err)
	}
	n := copy(memory, p.Argv[0])
	if n == len(memory) {
		return nil, setupError("start", unix.ENAMETOOLONG)
	}
	return &heldInterpreter{memory, uintptr(unsafe.Pointer(&memory[0]))}, nil
}

// execInterpreter replaces this process with the interpreter.
func (i *heldInterpreter) execInterpreter(argv, env []string) error {
	arguments, err := syscall.SlicePtrFromStrings(argv)
	if err != nil {
		return err
	}
	environment, err := syscall.SlicePtrFromStrings(env)
	if err != nil {
		return err
	}
	_, _, errno := syscall.RawSyscall(
		unix.SYS_EXECVE, i.address, uintptr(unsafe.Pointer(&arguments[0])), uintptr(unsafe.Pointer(&environment[0])),
	)
	runtime.KeepAlive(arguments)
	runtime.KeepAlive(environment)
	return errno
}
