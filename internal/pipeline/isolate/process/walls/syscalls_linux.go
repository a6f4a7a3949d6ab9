package walls

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// The system calls that stay. Everything else answers ENOSYS, as on a kernel
// that does not have it: C libraries fall back from that, and attackers find
// nothing. What is here acts on the process itself, its memory, its threads and
// descriptors that it has.
var (
	basic = []string{
		"read", "write", "readv", "writev", "pread64", "pwrite64", "close", "close_range", "lseek", "fstat",
		"munmap", "mremap", "mprotect", "madvise", "brk", "membarrier",
		"futex", "set_robust_list", "get_robust_list", "rseq", "set_tid_address", "arch_prctl",
		"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigtimedwait", "sigaltstack", "restart_syscall",
		"gettid", "getpid", "getppid", "tgkill", "exit", "exit_group", "getuid", "geteuid", "getgid", "getegid",
		"clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time", "times", "getrusage",
		"getrandom", "sched_yield", "sched_getaffinity", "getcpu", "uname", "sysinfo",
		"epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2", "eventfd2", "pipe2", "poll", "ppoll", "select", "pselect6",
		"dup", "dup2", "dup3", "getrlimit",
		"timer_create", "timer_settime", "timer_delete", "setitimer", "getitimer",
	}
	// files are for a runtime with files of its own. What they can reach is the
	// matter of the file system and of Landlock.
	files = []string{
		"open", "openat", "stat", "lstat", "newfstatat", "statx", "statfs", "fstatfs", "access", "faccessat", "faccessat2",
		"readlink", "readlinkat", "getcwd", "chdir", "fchdir", "getdents64", "getdents", "fadvise64",
		"mkdir", "mkdirat", "rmdir", "unlink", "unlinkat", "rename", "renameat", "renameat2", "ftruncate", "truncate",
		"fsync", "fdatasync", "fallocate", "flock", "utimensat", "umask", "fchmod", "fchmodat", "chmod", "sendfile", "copy_file_range",
		"pipe", "epoll_create", "eventfd", "alarm",
	}
	// pair is for event loops that wake themselves through a pair of sockets.
	pair = []string{"sendto", "recvfrom", "sendmsg", "recvmsg", "shutdown", "getsockopt", "setsockopt", "getsockname", "getpeername"}
	// scheduling is asked for by JIT runtimes, for their own threads.
	scheduling = []string{"sched_getparam", "sched_getscheduler", "sched_setscheduler", "sched_get_priority_max", "sched_get_priority_min",
		"getpriority", "setpriority", "sched_setaffinity", "pkey_alloc", "pkey_mprotect", "pkey_free", "timerfd_create", "timerfd_settime", "timerfd_gettime",
		"capget", "mincore"}
)

// profiles are the system calls of each runtime, beside those that are allowed
// with certain arguments only.
var profiles = map[string][][]string{
	"quickjs": {basic},
	"python":  {basic, files, pair},
	"node":    {basic, files, pair, scheduling},
	"bun":     {basic, files, pair, scheduling},
	"deno":    {basic, files, pair, scheduling},
}

// rule allows one system call, if all its conditions hold, or refuses it.
type rule struct {
	name       string
	conditions []condition
	refuse     bool
}

// condition is about the lower 32 bits of one argument, or with address all of
// them. Kernels look at no more of an int than that.
type condition struct {
	argument int
	test     test
	value    uint64
}

type test int

const (
	equal   test = iota
	address      // equal in all 64 bits
	anySet       // one of the bits of value, at least
	noneSet      // none of them
)

// filter loads the allow list into every thread. It cannot be taken back.
func (p *Plan) filter(program *interpreter) error {
	code, err := p.code(program)
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

// code is the filter for this machine's architecture.
func (p *Plan) code(program *interpreter) ([]unix.SockFilter, error) {
	lists, ok := profiles[p.Profile]
	if !ok {
		return nil, fmt.Errorf("there is no profile %q", p.Profile)
	}
	info, err := arch.GetInfo("")
	if err != nil {
		return nil, err
	}
	var rules []rule
	for _, list := range lists {
		for _, name := range list {
			rules = append(rules, rule{name: name})
		}
	}
	return assemble(append(rules, p.conditional(program)...), info), nil
}

// conditional are the system calls whose arguments decide.
func (p *Plan) conditional(program *interpreter) []rule {
	rules := []rule{
		// Threads, and nothing that is a process or a namespace. clone3 answers
		// ENOSYS: a filter cannot read its flags, and C libraries fall back.
		{name: "clone", conditions: []condition{{0, anySet, unix.CLONE_THREAD}, {0, noneSet, namespaces}}},
		{name: "prlimit64", conditions: []condition{{0, equal, 0}, {2, address, 0}}}, // its own limits, to read
		// Shared memory stays when it is not resident any more, where no watcher
		// sees it, and counts as nobody's data.
		{name: "mmap", conditions: []condition{{3, noneSet, unix.MAP_SHARED}}},
		{name: "socketpair", conditions: []condition{{0, equal, unix.AF_UNIX}}},
	}
	allow := func(name string, argument int, values ...uint64) {
		for _, v := range values {
			rules = append(rules, rule{name: name, conditions: []condition{{argument, equal, v}}})
		}
	}
	allow("prctl", 0, unix.PR_SET_NAME, unix.PR_GET_NAME, unix.PR_SET_VMA, unix.PR_GET_DUMPABLE)
	const fionread, fionbio, fionclex, fioclex = 0x541b, 0x5421, 0x5450, 0x5451
	allow("ioctl", 1, fionread, fionbio, fionclex, fioclex, unix.TCGETS, unix.TIOCGWINSZ)
	allow("fcntl", 1, unix.F_DUPFD, unix.F_DUPFD_CLOEXEC, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL, unix.F_SETLK, unix.F_SETLKW,
		unix.F_GETLK, unix.F_GETPIPE_SZ, unix.F_SETPIPE_SZ)
	if p.Profile == "python" {
		// The harness bounds its own memory, so that a program can be told of it.
		// Nothing can be set above what it was bounded to from outside.
		for _, resource := range []uint64{unix.RLIMIT_AS, unix.RLIMIT_DATA} {
			rules = append(rules, rule{name: "prlimit64", conditions: []condition{{0, equal, 0}, {1, equal, resource}}},
				rule{name: "setrlimit", conditions: []condition{{0, equal, resource}}})
		}
	}
	if program != nil { // which this process becomes
		rules = append(rules, rule{name: "execve", conditions: []condition{{0, address, uint64(program.address)}}})
	}
	return rules
}

const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME

var bigEndian = binary.NativeEndian.Uint16([]byte{0, 1}) == 1

// forbidden are system calls that answer EPERM instead of ENOSYS: programs would
// take their absence for something else.
var forbidden = []string{"socket", "socketpair", "connect", "bind", "kill", "tkill", "fork", "vfork", "clone", "execve", "execveat", "ptrace", "mount", "unshare", "setns", "ioctl", "fcntl", "prctl", "mmap"}

// Offsets in struct seccomp_data.
const (
	atNumber       = 0
	atArchitecture = 4
	atArguments    = 16
)

// assemble makes a filter that allows rules. It is a list of blocks: each looks
// for one system call, and goes on behind itself if that is not it.
func assemble(rules []rule, info *arch.Info) []unix.SockFilter {
	none := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)}
	load := func(offset int) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: uint32(offset)}
	}
	code := []unix.SockFilter{
		load(atArchitecture), {Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(info.ID), Jt: 1}, none,
		// x32 has the same architecture and numbers from this bit on.
		load(atNumber), {Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: 0x40000000, Jf: 1}, none,
	}
	for _, name := range forbidden {
		rules = append(rules, rule{name: name, refuse: true})
	}
	for _, r := range rules {
		number, exists := info.SyscallNames[r.name]
		if !exists {
			continue
		}
		verdict := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
		if r.refuse {
			verdict.K = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
		}
		var tests []unix.SockFilter
		for _, c := range r.conditions {
			tests = append(tests, c.code(load)...)
		}
		// The number is loaded for each block: tests of the one before may have
		// left an argument in its place, which could look like a number.
		block := append([]unix.SockFilter{load(atNumber), {Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(number)}}, tests...)
		block = append(block, verdict)
		leaveAtMismatch(block)
		code = append(code, block...)
	}
	return append(code, none)
}

// failing marks a jump that leaves the block; leaveAtMismatch fills it in.
const failing = 0xff

// code is the test of a condition, which goes on if it holds.
func (c condition) code(load func(int) unix.SockFilter) []unix.SockFilter {
	low, high := load(atArguments+8*c.argument), load(atArguments+8*c.argument+4)
	if bigEndian {
		low, high = high, low
	}
	jump := func(test uint16, value uint32, ifTrue, ifFalse uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, K: value, Jt: ifTrue, Jf: ifFalse}
	}
	switch c.test {
	case address:
		return []unix.SockFilter{low, jump(unix.BPF_JEQ, uint32(c.value), 0, failing), high, jump(unix.BPF_JEQ, uint32(c.value>>32), 0, failing)}
	case anySet:
		return []unix.SockFilter{low, jump(unix.BPF_JSET, uint32(c.value), 0, failing)}
	case noneSet:
		return []unix.SockFilter{low, jump(unix.BPF_JSET, uint32(c.value), failing, 0)}
	}
	return []unix.SockFilter{low, jump(unix.BPF_JEQ, uint32(c.value), 0, failing)}
}

func leaveAtMismatch(block []unix.SockFilter) {
	for i := range block {
		rest := uint8(len(block) - i - 1)
		switch {
		case i == 1:
			block[i].Jf = rest
		case block[i].Jt == failing:
			block[i].Jt = rest
		case block[i].Jf == failing:
			block[i].Jf = rest
		}
	}
}
