//go:build amd64 || arm64

package confine

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"retort/internal/sandbox/wire/shm"
)

// The allowed system calls. Every other call returns ENOSYS, as on a kernel that lacks it. C libraries then fall back
// to other calls, and attackers learn nothing. The allowed calls affect only the process itself, its memory, its
// threads and its open descriptors.
var (
	basicCalls = []uintptr{
		unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREAD64, unix.SYS_PWRITE64,
		unix.SYS_CLOSE, unix.SYS_CLOSE_RANGE, unix.SYS_LSEEK, unix.SYS_FSTAT,
		unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MPROTECT, unix.SYS_MADVISE, unix.SYS_BRK, unix.SYS_MEMBARRIER,
		unix.SYS_FUTEX, unix.SYS_SET_ROBUST_LIST, unix.SYS_GET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_SET_TID_ADDRESS,
		unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_RT_SIGTIMEDWAIT,
		unix.SYS_SIGALTSTACK, unix.SYS_RESTART_SYSCALL,
		unix.SYS_GETTID, unix.SYS_GETPID, unix.SYS_GETPPID, unix.SYS_TGKILL, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
		unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID,
		unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_NANOSLEEP,
		unix.SYS_GETTIMEOFDAY, unix.SYS_TIMES, unix.SYS_GETRUSAGE,
		unix.SYS_GETRANDOM, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_GETCPU, unix.SYS_UNAME, unix.SYS_SYSINFO,
		unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2, unix.SYS_EVENTFD2,
		unix.SYS_PIPE2, unix.SYS_PPOLL, unix.SYS_PSELECT6,
		unix.SYS_DUP, unix.SYS_DUP3, unix.SYS_GETRLIMIT,
		unix.SYS_TIMER_CREATE, unix.SYS_TIMER_SETTIME, unix.SYS_TIMER_DELETE, unix.SYS_SETITIMER, unix.SYS_GETITIMER,
	}
	// fileCalls lists the system calls for runtimes that read files. The sandbox's file system and Landlock determine
	// which files they reach.
	fileCalls = []uintptr{
		unix.SYS_OPENAT, unix.SYS_NEWFSTATAT, unix.SYS_STATX, unix.SYS_STATFS, unix.SYS_FSTATFS, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2,
		unix.SYS_READLINKAT, unix.SYS_GETCWD, unix.SYS_CHDIR, unix.SYS_FCHDIR, unix.SYS_GETDENTS64, unix.SYS_FADVISE64,
		unix.SYS_MKDIRAT, unix.SYS_UNLINKAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_FTRUNCATE, unix.SYS_TRUNCATE,
		unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_FALLOCATE, unix.SYS_FLOCK, unix.SYS_UTIMENSAT, unix.SYS_UMASK,
		unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_SENDFILE, unix.SYS_COPY_FILE_RANGE,
	}
	// socketPairCalls lists the system calls for event loops that wake themselves through a socket pair.
	socketPairCalls = []uintptr{
		unix.SYS_SENDTO, unix.SYS_RECVFROM, unix.SYS_SENDMSG, unix.SYS_RECVMSG, unix.SYS_SHUTDOWN, unix.SYS_GETSOCKOPT,
		unix.SYS_SETSOCKOPT, unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME,
	}
	// schedulingCalls lists the system calls with which JIT runtimes schedule their own threads.
	schedulingCalls = []uintptr{unix.SYS_SCHED_GETPARAM, unix.SYS_SCHED_GETSCHEDULER, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_GET_PRIORITY_MAX, unix.SYS_SCHED_GET_PRIORITY_MIN,
		unix.SYS_GETPRIORITY, unix.SYS_SETPRIORITY, unix.SYS_SCHED_SETAFFINITY, unix.SYS_PKEY_ALLOC,
		unix.SYS_PKEY_MPROTECT, unix.SYS_PKEY_FREE, unix.SYS_TIMERFD_CREATE, unix.SYS_TIMERFD_SETTIME,
		unix.SYS_TIMERFD_GETTIME,
		unix.SYS_CAPGET, unix.SYS_MINCORE}
)

// machineCalls lists the additional calls that QEMU and Firecracker need to run a virtual machine: for memory shared
// with a file, and for KVM if its device is mounted.
var machineCalls = []uintptr{
	unix.SYS_MMAP, unix.SYS_IOCTL, unix.SYS_SIGNALFD4, unix.SYS_MSYNC, unix.SYS_MLOCK, unix.SYS_MUNLOCK,
	unix.SYS_MBIND,
}

// relayCalls lists the system calls that a relay needs after its listener is open and its guest is running.
var relayCalls = []uintptr{unix.SYS_ACCEPT4, unix.SYS_WAIT4, unix.SYS_WAITID}

// profiles maps each runtime to its allowed system calls, apart from those that are allowed only with certain
// arguments.
var profiles = map[string][][]uintptr{
	"quickjs": {basicCalls, olderBasic},
	"python":  {basicCalls, olderBasic, fileCalls, olderFiles, socketPairCalls},
	"node":    {basicCalls, olderBasic, fileCalls, olderFiles, socketPairCalls, schedulingCalls},
	"bun":     {basicCalls, olderBasic, fileCalls, olderFiles, socketPairCalls, schedulingCalls},
	"deno":    {basicCalls, olderBasic, fileCalls, olderFiles, socketPairCalls, schedulingCalls},
	"command": {basicCalls, olderBasic, fileCalls, olderFiles},
	"machine": {basicCalls, olderBasic, fileCalls, olderFiles, socketPairCalls, schedulingCalls, machineCalls},
	"relay":   {basicCalls, olderBasic, socketPairCalls, relayCalls},
}

// syscallRule allows one system call if all its conditions hold, and refuses it otherwise.
type syscallRule struct {
	number     uintptr
	conditions []argumentCondition
	refuse     bool
}

// argumentCondition tests one argument of a system call. The test named address compares all 64 bits of the argument.
// The other tests look only at the lower 32 bits, because kernels ignore the rest of an argument of the C type int.
type argumentCondition struct {
	argument int
	test     conditionTest
	value    uint64
}

type conditionTest int

const (
	equal   conditionTest = iota
	address               // all 64 bits of the argument equal the value
	anySet                // at least one of the bits of value is set in the argument
	noneSet               // none of the bits of value is set in the argument
)

// loadFilter installs the system call filter in every thread. The filter cannot be removed later.
func (p *SandboxPlan) loadFilter(program *heldInterpreter) error {
	code, err := p.filterCode(program)
	if err != nil {
		return err
	}
	list := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&list)))
	if errno != 0 {
		return errno
	}
	return nil
}

// filterCode returns the filter as a BPF program for this machine's architecture.
func (p *SandboxPlan) filterCode(program *heldInterpreter) ([]unix.SockFilter, error) {
	lists, ok := profiles[p.Profile]
	if !ok {
		return nil, fmt.Errorf("there is no profile %q", p.Profile)
	}
	var rules []syscallRule
	modes := p.modeRules()
	for _, list := range lists {
		for _, number := range list {
			if !slices.ContainsFunc(modes, func(r syscallRule) bool { return r.number == number }) {
				rules = append(rules, syscallRule{number: number})
			}
		}
	}
	rules = append(rules, modes...)
	return assembleFilter(append(rules, p.conditionalRules(program)...)), nil
}

// conditionalRules returns the rules for system calls that are allowed only with certain arguments.
func (p *SandboxPlan) conditionalRules(program *heldInterpreter) []syscallRule {
	rules := []syscallRule{
		// Only threads may be started, no processes or namespaces. clone3 returns ENOSYS, because a filter cannot
		// read its flags and C libraries fall back.
		{number: unix.SYS_CLONE, conditions: []argumentCondition{{0, anySet, unix.CLONE_THREAD}, {0, noneSet, namespaces}}},
		{number: unix.SYS_PRLIMIT64, conditions: []argumentCondition{{0, equal, 0}, {2, address, 0}}}, // its own limits, to read
		// Shared memory remains when it is not resident any more. The watcher does not see it then, and it does
		// not count as data.
		{number: unix.SYS_MMAP, conditions: []argumentCondition{{3, noneSet, unix.MAP_SHARED}}},
		{number: unix.SYS_SOCKETPAIR, conditions: []argumentCondition{{0, equal, unix.AF_UNIX}}},
	}
	allow := func(number uintptr, argument int, values ...uint64) {
		for _, v := range values {
			rules = append(rules, syscallRule{number: number, conditions: []argumentCondition{{argument, equal, v}}})
		}
	}
	allow(unix.SYS_PRCTL, 0, unix.PR_SET_NAME, unix.PR_GET_NAME, unix.PR_SET_VMA, unix.PR_GET_DUMPABLE)
	const fionread, fionbio, fionclex, fioclex = 0x541b, 0x5421, 0x5450, 0x5451
	allow(unix.SYS_IOCTL, 1, fionread, fionbio, fionclex, fioclex, unix.TCGETS, unix.TIOCGWINSZ)
	allow(unix.SYS_FCNTL, 1, unix.F_DUPFD, unix.F_DUPFD_CLOEXEC, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL, unix.F_SETLK, unix.F_SETLKW,
		unix.F_GETLK, unix.F_GETPIPE_SZ, unix.F_SETPIPE_SZ)
	if p.Profile == "python" {
		// The harness limits its own memory, so that it can report an error to the program. It cannot exceed the
		// limits that were set from outside.
		for _, resource := range []uint64{unix.RLIMIT_AS, unix.RLIMIT_DATA} {
			rules = append(rules, syscallRule{number: unix.SYS_PRLIMIT64, conditions: []argumentCondition{{0, equal, 0}, {1, equal, resource}}},
				syscallRule{number: unix.SYS_SETRLIMIT, conditions: []argumentCondition{{0, equal, resource}}})
		}
	}
	rules = append(append(append(rules, p.networkRules()...), p.servingRules()...), p.sharingRules()...)
	if program != nil { // which this process becomes
		rules = append(rules, syscallRule{number: unix.SYS_EXECVE, conditions: []argumentCondition{{0, address, uint64(program.address)}}})
	}
	return rules
}

// modeRules returns the rules for system calls that set file modes, for programs that write to folders of the host.
// No file there may become setuid or setgid. For these calls, the rules apply instead of the profile's list of
// allowed calls.
func (p *SandboxPlan) modeRules() (rules []syscallRule) {
	if !slices.ContainsFunc(p.Mounts, func(m PlanMount) bool { return m.Below != "" && m.Writable }) {
		return nil
	}
	const special = unix.S_ISUID | unix.S_ISGID
	const makes = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY
	for number, mode := range map[uintptr]int{unix.SYS_FCHMOD: 1, unix.SYS_FCHMODAT: 2, unix.SYS_MKDIRAT: 2} {
		rules = append(rules, syscallRule{number: number, conditions: []argumentCondition{{mode, noneSet, special}}})
	}
	for _, number := range olderChmod {
		rules = append(rules, syscallRule{number: number, conditions: []argumentCondition{{1, noneSet, special}}})
	}
	opens := map[uintptr]int{unix.SYS_OPENAT: 2} // index of the flags; the mode follows
	for _, number := range olderOpen {
		opens[number] = 1
	}
	for number, flags := range opens {
		rules = append(rules, syscallRule{number: number, conditions: []argumentCondition{{flags, noneSet, makes}}},
			syscallRule{number: number, conditions: []argumentCondition{{flags + 1, noneSet, special}}})
	}
	return rules
}

// networkRules returns the rules that let a program connect to its proxy. It may create and connect TCP sockets over
// IPv4. Listening, UDP, IPv6 and unix sockets stay forbidden.
func (p *SandboxPlan) networkRules() []syscallRule {
	if p.Network == NoNetwork || p.Weak {
		return nil
	}
	const otherTypes = 0xf &^ unix.SOCK_STREAM
	list := []syscallRule{{number: unix.SYS_CONNECT}}
	for _, protocol := range []uint64{0, unix.IPPROTO_TCP} {
		list = append(list, syscallRule{number: unix.SYS_SOCKET, conditions: []argumentCondition{
			{0, equal, unix.AF_INET}, {1, anySet, unix.SOCK_STREAM}, {1, noneSet, otherTypes}, {2, equal, protocol},
		}})
	}
	return list
}

// servingRules returns the rules for a program that listens on unix sockets, shares memory over them through sealed
// memory files, and installs its own filters.
func (p *SandboxPlan) servingRules() []syscallRule {
	if !p.Serves {
		return nil
	}
	const otherTypes = 0xf &^ unix.SOCK_STREAM
	return []syscallRule{
		{
			number:     unix.SYS_SOCKET,
			conditions: []argumentCondition{{0, equal, unix.AF_UNIX}, {1, anySet, unix.SOCK_STREAM}, {1, noneSet, otherTypes}},
		},
		{number: unix.SYS_BIND}, {number: unix.SYS_LISTEN}, {number: unix.SYS_ACCEPT4},
		{number: unix.SYS_MEMFD_CREATE}, {number: unix.SYS_FCNTL, conditions: []argumentCondition{{1, equal, unix.F_ADD_SEALS}}},
		{number: unix.SYS_SECCOMP, conditions: []argumentCondition{{0, equal, unix.SECCOMP_SET_MODE_FILTER}}},
		{number: unix.SYS_PRCTL, conditions: []argumentCondition{{0, equal, unix.PR_SET_NO_NEW_PRIVS}}},
	}
}

// sharingRules returns the rule that lets a guest map the memory that it shares with the engine, but no larger area.
func (p *SandboxPlan) sharingRules() []syscallRule {
	if !p.Ring {
		return nil
	}
	return []syscallRule{{
		number: unix.SYS_MMAP,
		conditions: []argumentCondition{
			{1, address, shm.Size}, {3, anySet, unix.MAP_SHARED}, {3, noneSet, unix.MAP_ANONYMOUS},
			{4, equal, shm.Descriptor}, {5, address, uint64(p.RingAt)},
		},
	}}
}

const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME

var bigEndian = binary.NativeEndian.Uint16([]byte{0, 1}) == 1

// forbiddenCalls lists the system calls that return EPERM instead of ENOSYS, because programs would misinterpret
// ENOSYS from them.
var forbiddenCalls = append([]uintptr{
	unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_KILL, unix.SYS_TKILL,
	unix.SYS_CLONE, unix.SYS_EXECVE, unix.SYS_EXECVEAT,
	unix.SYS_PTRACE, unix.SYS_MOUNT, unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_IOCTL, unix.SYS_FCNTL, unix.SYS_PRCTL, unix.SYS_MMAP,
}, olderForbidden...)

// atNumber and the following constants are byte offsets of fields in the kernel's struct seccomp_data, the input of
// the filter.
const (
	atNumber       = 0
	atArchitecture = 4
	atArguments    = 16
)

// assembleFilter returns a filter program that allows exactly the given rules. Each rule becomes a block that tests
// for one system call and passes any other call on to the next block.
func assembleFilter(rules []syscallRule) []unix.SockFilter {
	none := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)}
	load := func(offset int) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: uint32(offset)}
	}
	code := []unix.SockFilter{
		load(atArchitecture), {Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: architecture, Jt: 1}, none,
		// x32 has the same architecture value; its numbers start at this bit.
		load(atNumber), {Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: 0x40000000, Jf: 1}, none,
	}
	for _, number := range forbiddenCalls {
		rules = append(rules, syscallRule{number: number, refuse: true})
	}
	for _, r := range rules {
		verdict := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
		if r.refuse {
			verdict.K = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
		}
		var tests []unix.SockFilter
		for _, c := range r.conditions {
			tests = append(tests, c.conditionCode(load)...)
		}
		// Each block loads the number again: the tests of the previous block may have loaded an argument, which
		// could look like a number.
		block := append([]unix.SockFilter{load(atNumber), {Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(r.number)}}, tests...)
		block = append(block, verdict)
		leaveAtMismatch(block)
		code = append(code, block...)
	}
	return append(code, none)
}

// mismatchJump is a placeholder for the distance of a jump out of its block. leaveAtMismatch replaces it.
const mismatchJump = 0xff

// conditionCode returns the instructions that test the condition. Execution continues after them only if the
// condition holds.
func (c argumentCondition) conditionCode(load func(int) unix.SockFilter) []unix.SockFilter {
	low, high := load(atArguments+8*c.argument), load(atArguments+8*c.argument+4)
	if bigEndian {
		low, high = high, low
	}
	jump := func(test uint16, value uint32, ifTrue, ifFalse uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, K: value, Jt: ifTrue, Jf: ifFalse}
	}
	switch c.test {
	case address:
		return []unix.SockFilter{
			low, jump(unix.BPF_JEQ, uint32(c.value), 0, mismatchJump), high,
			jump(unix.BPF_JEQ, uint32(c.value>>32), 0, mismatchJump),
		}
	case anySet:
		return []unix.SockFilter{low, jump(unix.BPF_JSET, uint32(c.value), 0, mismatchJump)}
	case noneSet:
		return []unix.SockFilter{low, jump(unix.BPF_JSET, uint32(c.value), mismatchJump, 0)}
	}
	return []unix.SockFilter{low, jump(unix.BPF_JEQ, uint32(c.value), 0, mismatchJump)}
}

func leaveAtMismatch(block []unix.SockFilter) {
	for i := range block {
		rest := uint8(len(block) - i - 1)
		switch {
		case i == 1:
			block[i].Jf = rest
		case block[i].Jt == mismatchJump:
			block[i].Jt = rest
		case block[i].Jf == mismatchJump:
			block[i].Jf = rest
		}
	}
}
