package sandboxtest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox"
	"retort/internal/sandbox/wire"
)

// escapeAttempt represents an attempt to escape from the sandbox. If do returns nil, the attempt has succeeded and
// the sandbox has failed.
type escapeAttempt struct {
	name string
	do   func() error
}

//go:embed escape.py
var escapePython string

// CheckEscapes tests that a sandbox of b blocks every escape attempt. The guest of b must be RunProbe with the same
// runtime. The argument leftOut names attempts to skip, for example because they would exhaust a resource and thereby
// end the whole sandbox.
func CheckEscapes(t *testing.T, b sandbox.Backend, runtime string, leftOut ...string) {
	CheckProbe(t, probeOutput(t, b, runtime, strings.Join(append([]string{makeSecret(t)}, leftOut...), "\n")), 100)
}

// PythonEscapes works like CheckEscapes, but the attempts are made by a Python program, through ctypes. The argument
// without lists source lines of that program that must be removed because they do not apply to the backend b.
func PythonEscapes(t *testing.T, b sandbox.Backend, without ...string) {
	code := escapePython
	for _, line := range without {
		if !strings.Contains(code, line) {
			t.Fatalf("there is no %s", line)
		}
		code = strings.Replace(code, line, "", 1)
	}
	CheckProbe(t, probeOutput(t, b, "python", fmt.Sprintf("SECRET, PARENT = %q, %d\n%s", makeSecret(t), os.Getpid(), code)), 60)
}

// makeSecret creates a file on the host that every user may read, but no program in a sandbox. It returns the path.
func makeSecret(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("swordfish"), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// probeOutput runs a program that tries to escape and returns its output.
func probeOutput(t *testing.T, b sandbox.Backend, runtime, code string) string {
	t.Helper()
	return triedWith(t, b, runtime, code, echo)
}

func triedWith(t *testing.T, b sandbox.Backend, runtime, code string, h sandbox.ToolHost) string {
	t.Helper()
	l := core.Limits{Timeout: hangTimeout}.WithDefaults(core.DefaultLimits())
	s, err := b.Prepare(context.Background(), sandbox.SandboxSpec{Runtime: runtime, Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := s.Run(context.Background(), core.CheckedProgram{Code: code, Name: "program", Limits: l}, h)
	if err != nil || r.Status != core.StatusOK {
		t.Fatalf("%v, %s: %v\n%s", err, r.Status, r.Error, r.Output)
	}
	return string(r.Output)
}

// CheckProbe checks the output of a program that probes ways out of its sandbox. Each line of the output is "closed
// NAME: reason" or "OPEN NAME". The test fails if a way out is open, or if fewer ways were closed than the argument
// least says.
func CheckProbe(t *testing.T, output string, least int) {
	t.Helper()
	closed := 0
	for line := range strings.Lines(output) {
		switch {
		case strings.HasPrefix(line, "closed "):
			closed++
		default:
			t.Error(strings.TrimSpace(line))
		}
	}
	if closed < least {
		t.Errorf("only %d ways out were tried:\n%s", closed, output)
	}
	t.Logf("%d ways out are closed", closed)
}

// RunProbe implements the main function of a guest that probes every way out of its sandbox. To the engine it looks
// like a guest for the given runtime. It expects no code as its program, but lines of text: the path of a file on the
// host that it must not be able to read, and the names of attempts to skip.
func RunProbe(runtime string, in io.Reader, out io.Writer) {
	conn := wire.NewConn(stdioStream{in, out})
	conn.Accept(wire.GuestSizes())
	_ = conn.SendFrame(wire.ReadyFrame(runtime))
	f, err := conn.Read()
	if err != nil {
		return
	}
	told := strings.Split(string(f.Body), "\n")
	for _, a := range escapeAttempts(told[0]) {
		if slices.Contains(told[1:], a.name) {
			continue
		}
		verdict := "OPEN " + a.name
		if err := a.do(); err != nil {
			verdict = fmt.Sprintf("closed %s: %v", a.name, err)
		}
		_ = conn.SendFrame(wire.OutputFrame([]byte(verdict + "\n")))
	}
	_ = conn.SendFrame(wire.DoneFrame(wire.ProgramDone{Status: core.StatusOK}, nil))
	testenv.Hang()
}

func escapeAttempts(secret string) []escapeAttempt {
	list := append(fileAttempts(secret), callAttempts()...)
	return append(append(list, networkAttempts()...), floodAttempts()...)
}

func readAttempt(path string) escapeAttempt {
	return escapeAttempt{"read " + path, func() error {
		data, err := os.ReadFile(path)
		if err == nil && len(data) == 0 {
			return errors.New("it is empty")
		}
		return err
	}}
}

func writeAttempt(path string) escapeAttempt {
	return escapeAttempt{"write " + path, func() error { return os.WriteFile(path, []byte("x"), 0o644) }}
}

func fileAttempts(secret string) []escapeAttempt {
	var list []escapeAttempt
	for _, path := range []string{secret, "/etc/passwd", "/etc/shadow", "/etc/hostname", "/etc/resolv.conf", "/proc/version", "/proc/cpuinfo", "/proc/meminfo", "/proc/mounts", "/proc/kallsyms", "/proc/2/environ", "/proc/1/environ",
		"/proc/self/environ", "/proc/self/root" + secret, "/proc/1/root" + secret, "/proc/self/cwd" + secret,
		"/proc/self/fd/3", "/proc/sys/kernel/hostname", "/sys/class/net/lo/address", "/dev/mem", "/dev/kmsg", "/dev/kvm",
		"/dev/fuse", "/run/dbus/system_bus_socket",
		"../../../../../../../.." + secret, "/tmp/../.." + secret, "/usr/../.." + secret, "/sys/fs/cgroup/cgroup.procs"} {
		list = append(list, readAttempt(path))
	}
	for _, path := range []string{
		"/x", "/usr/x", "/usr/bin/probe", "/usr/lib/retort/main.py", "/etc/x", "/dev/x", "/proc/x",
		"/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/self/oom_score_adj", "/proc/self/uid_map",
		filepath.Dir(secret) + "/x",
	} {
		list = append(list, writeAttempt(path))
	}
	for _, path := range []string{"/root", "/home", "/var", "/sys", "/boot", filepath.Dir(secret)} {
		list = append(list, escapeAttempt{"list " + path, func() error {
			entries, err := os.ReadDir(path)
			if err == nil && len(entries) == 0 {
				return errors.New("it is empty")
			}
			return err
		}})
	}
	return append(append(list, linkAttempts(secret)...), execAttempts(secret)...)
}

func linkAttempts(secret string) []escapeAttempt {
	return []escapeAttempt{
		{"follow a symbolic link", func() error {
			if err := os.Symlink(secret, "/tmp/link"); err != nil {
				return err
			}
			_, err := os.ReadFile("/tmp/link")
			return err
		}},
		{"make a hard link", func() error { return os.Link("/usr/bin/probe", "/tmp/probe") }},
		{"change the mode of a file of the runtime", func() error { return os.Chmod("/usr/bin/probe", 0o777) }},
		{"make a setuid file that runs", func() error {
			if err := os.WriteFile("/tmp/run", []byte("#!/usr/bin/probe\n"), 0o755); err != nil {
				return err
			}
			if err := os.Chmod("/tmp/run", 0o4755); err != nil {
				return err
			}
			return unix.Exec("/tmp/run", []string{"run"}, nil)
		}},
		{"map a file of /tmp to execute it", func() error {
			f, err := os.Create("/tmp/code")
			if err != nil {
				return err
			}
			if err := f.Truncate(4096); err != nil {
				return err
			}
			_, err = unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
			return err
		}},
	}
}

// execAttempts returns the attempts to execute another program or to leave the root directory. A sandbox must block
// all of them.
func execAttempts(secret string) []escapeAttempt {
	return []escapeAttempt{
		{"make a device", func() error { return unix.Mknod("/tmp/mem", unix.S_IFCHR|0o666, 1<<8|1) }},
		{"make a fifo", func() error { return unix.Mkfifo("/tmp/fifo", 0o666) }},
		{"leave the root by a descriptor", func() error {
			fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY, 0)
			if err != nil {
				return err
			}
			for range 20 {
				_ = unix.Fchdir(fd)
				_ = unix.Chdir("..")
			}
			_, err = os.ReadFile(strings.TrimPrefix(secret, "/"))
			return err
		}},
		{"execute a shell", func() error { return unix.Exec("/bin/sh", []string{"sh"}, nil) }},
		{"execute the runtime again", func() error { return unix.Exec("/usr/bin/probe", []string{"probe"}, nil) }},
		{"execute from memory", func() error {
			fd, err := unix.MemfdCreate("code", 0)
			if err != nil {
				return err
			}
			empty := []byte{0}
			_, _, errno := unix.RawSyscall6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(&empty[0])), 0, 0, unix.AT_EMPTY_PATH, 0)
			return errno
		}},
	}
}

// syscallAttempt returns an attempt to make a system call that the sandbox must block.
func syscallAttempt(name string, trap uintptr, arguments ...uintptr) escapeAttempt {
	return escapeAttempt{name, func() error {
		var a [6]uintptr
		copy(a[:], arguments)
		if _, _, errno := unix.RawSyscall6(trap, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
			return errno
		}
		return nil
	}}
}

var (
	zeros = make([]byte, 4096)
	here  = []byte("/\x00")
	tmpfs = []byte("tmpfs\x00")
)

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }

func callAttempts() []escapeAttempt {
	const one = 1
	rlimit := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	clone3 := make([]byte, 88)
	list := []escapeAttempt{
		syscallAttempt("ptrace a process", unix.SYS_PTRACE, unix.PTRACE_ATTACH, one, 0, 0),
		syscallAttempt("be traced", unix.SYS_PTRACE, unix.PTRACE_TRACEME),
		syscallAttempt("read the memory of a process", unix.SYS_PROCESS_VM_READV, one, addressOf(zeros), one, addressOf(zeros), one, 0),
		syscallAttempt("write the memory of a process", unix.SYS_PROCESS_VM_WRITEV, one, addressOf(zeros), one, addressOf(zeros), one, 0),
		syscallAttempt("signal everybody", unix.SYS_KILL, ^uintptr(0), 0),
		syscallAttempt("signal the parent", unix.SYS_KILL, uintptr(os.Getppid()), 0),
		syscallAttempt("signal init", unix.SYS_KILL, one, 0),
		syscallAttempt("signal the group", unix.SYS_KILL, 0, 0), syscallAttempt("signal a thread", unix.SYS_TKILL, 2, 0),
		syscallAttempt("open a process", unix.SYS_PIDFD_OPEN, one, 0),
		syscallAttempt("take a descriptor of a process", unix.SYS_PIDFD_GETFD, 0, 0, 0),
		syscallAttempt("compare processes", unix.SYS_KCMP, one, one, 0, 0, 0),
		syscallAttempt("fork", unix.SYS_CLONE, uintptr(unix.SIGCHLD)),
		syscallAttempt("fork with a number of another call", unix.SYS_CLONE, 72),
		syscallAttempt("clone3", unix.SYS_CLONE3, addressOf(clone3), 88),
		syscallAttempt("clone a user namespace", unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD)),
		syscallAttempt("clone a thread in a namespace", unix.SYS_CLONE, unix.CLONE_THREAD|unix.CLONE_VM|unix.CLONE_SIGHAND|unix.CLONE_NEWNET),
		syscallAttempt("enter a namespace", unix.SYS_SETNS, 0, 0),
		syscallAttempt("mount", unix.SYS_MOUNT, addressOf(tmpfs), addressOf(here), addressOf(tmpfs), 0, 0),
		syscallAttempt("mount again to write", unix.SYS_MOUNT, 0, addressOf(here), 0, unix.MS_REMOUNT|unix.MS_BIND, 0),
		syscallAttempt("unmount", unix.SYS_UMOUNT2, addressOf(here), unix.MNT_DETACH),
		syscallAttempt("pivot_root", unix.SYS_PIVOT_ROOT, addressOf(here), addressOf(here)),
		syscallAttempt("chroot", unix.SYS_CHROOT, addressOf(here)),
		syscallAttempt("open a file system", unix.SYS_FSOPEN, addressOf(tmpfs), 0),
		syscallAttempt("open a mount", unix.SYS_OPEN_TREE, 0, addressOf(here), one),
		syscallAttempt("move a mount", unix.SYS_MOVE_MOUNT, 0, addressOf(here), 0, addressOf(here), 0),
		syscallAttempt("change a mount", unix.SYS_MOUNT_SETATTR, 0, addressOf(here), 0, addressOf(zeros), 32),
		syscallAttempt(
			"name a file by handle", unix.SYS_NAME_TO_HANDLE_AT, uintptr(^uint32(99)), addressOf(here), addressOf(zeros),
			addressOf(zeros), 0,
		),
		syscallAttempt("open a file by handle", unix.SYS_OPEN_BY_HANDLE_AT, 0, addressOf(zeros), 0),
		syscallAttempt("load a program into the kernel", unix.SYS_BPF, 0, addressOf(zeros), 128),
		syscallAttempt("count events", unix.SYS_PERF_EVENT_OPEN, addressOf(zeros), 0, 0, 0, 0),
		syscallAttempt("io_uring", unix.SYS_IO_URING_SETUP, 1, addressOf(zeros)),
		syscallAttempt("asynchronous I/O", unix.SYS_IO_SETUP, 1, addressOf(zeros)),
		syscallAttempt("keys", unix.SYS_KEYCTL, 0, 0, 0), syscallAttempt("add a key", unix.SYS_ADD_KEY, addressOf(tmpfs), addressOf(tmpfs), addressOf(zeros), one, 0), syscallAttempt("userfaultfd", unix.SYS_USERFAULTFD, 1),
		syscallAttempt("load a module", unix.SYS_INIT_MODULE, addressOf(zeros), 0, addressOf(zeros)), syscallAttempt("load a module file", unix.SYS_FINIT_MODULE, 0, addressOf(zeros), 0), syscallAttempt("load a kernel", unix.SYS_KEXEC_LOAD, 0, 0, 0, 0), syscallAttempt("reboot", unix.SYS_REBOOT, 0xfee1dead, 672274793, 0),
		syscallAttempt("swap", unix.SYS_SWAPON, addressOf(here), 0), syscallAttempt("accounting", unix.SYS_ACCT, 0), syscallAttempt("the kernel's log", unix.SYS_SYSLOG, 10, 0, 0), syscallAttempt("quotas", unix.SYS_QUOTACTL, 0, 0, 0, 0), syscallAttempt("set the clock", unix.SYS_CLOCK_SETTIME, 0, addressOf(zeros)), syscallAttempt("adjust the clock", unix.SYS_ADJTIMEX, addressOf(zeros)),
		syscallAttempt("set the host name", unix.SYS_SETHOSTNAME, addressOf(here), one), syscallAttempt("set the domain name", unix.SYS_SETDOMAINNAME, addressOf(here), one), syscallAttempt("another personality", unix.SYS_PERSONALITY, 0x0400000),
		syscallAttempt("become root", unix.SYS_SETRESUID, 0, 0, 0), syscallAttempt("become root's group", unix.SYS_SETRESGID, 0, 0, 0), syscallAttempt("join groups", unix.SYS_SETGROUPS, one, addressOf(zeros)), syscallAttempt("take capabilities", unix.SYS_CAPSET, addressOf(zeros), addressOf(zeros)),
		syscallAttempt("keep capabilities", unix.SYS_PRCTL, unix.PR_SET_KEEPCAPS, one), syscallAttempt("become undumpable", unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0), syscallAttempt("another filter", unix.SYS_SECCOMP, 1, 0, addressOf(zeros)), syscallAttempt("take over orphans", unix.SYS_PRCTL, unix.PR_SET_CHILD_SUBREAPER, one),
		syscallAttempt("raise a limit", unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&rlimit)), 0), syscallAttempt("raise a limit of another", unix.SYS_PRLIMIT64, one, unix.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&rlimit)), 0),
		syscallAttempt("watch files", unix.SYS_FANOTIFY_INIT, 0, 0), syscallAttempt("watch a directory", unix.SYS_INOTIFY_INIT1, 0), syscallAttempt("shared memory", unix.SYS_SHMGET, 0, 4096, 0o1666), syscallAttempt("message queues", unix.SYS_MSGGET, 0, 0o1666), syscallAttempt("POSIX message queues", unix.SYS_MQ_OPEN, addressOf(tmpfs), unix.O_CREAT, 0o666, 0),
		syscallAttempt("semaphores", unix.SYS_SEMGET, 0, 1, 0o1666), syscallAttempt("secret memory", unix.SYS_MEMFD_SECRET, 0), syscallAttempt("a file in memory", unix.SYS_MEMFD_CREATE, addressOf(here), 0), syscallAttempt("memory to share", unix.SYS_MMAP, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS, ^uintptr(0), 0), syscallAttempt("splice", unix.SYS_VMSPLICE, 0, addressOf(zeros), 0, 0), syscallAttempt("wait for a process", unix.SYS_WAITID, 0, 0, 0, unix.WNOHANG|unix.WEXITED, 0),
		syscallAttempt("type on the terminal", unix.SYS_IOCTL, 0, unix.TIOCSTI, addressOf(here)), syscallAttempt("connect", unix.SYS_CONNECT, 0, addressOf(zeros), 16), syscallAttempt("bind", unix.SYS_BIND, 0, addressOf(zeros), 16), syscallAttempt("listen", unix.SYS_LISTEN, 0, 1), syscallAttempt("accept", unix.SYS_ACCEPT4, 0, 0, 0, 0),
		syscallAttempt("a call of the x32 kind", 0x40000000|unix.SYS_GETPID), syscallAttempt("a call that does not exist", 1<<20), syscallAttempt("signal with a value", unix.SYS_RT_SIGQUEUEINFO, one, 0, addressOf(zeros)), syscallAttempt("set its group", unix.SYS_SETPGID, 0, 0), syscallAttempt("begin a session", unix.SYS_SETSID),
	}
	for name, flag := range map[string]uintptr{"user": unix.CLONE_NEWUSER, "mount": unix.CLONE_NEWNS, "network": unix.CLONE_NEWNET, "process": unix.CLONE_NEWPID, "time": unix.CLONE_NEWTIME} {
		list = append(list, syscallAttempt("unshare a "+name+" namespace", unix.SYS_UNSHARE, flag))
	}
	for name, family := range map[string]uintptr{"unix": unix.AF_UNIX, "IPv4": unix.AF_INET, "IPv6": unix.AF_INET6, "netlink": unix.AF_NETLINK, "packet": unix.AF_PACKET, "vsock": unix.AF_VSOCK, "crypto": unix.AF_ALG, "bluetooth": unix.AF_BLUETOOTH, "key": unix.AF_KEY, "xdp": unix.AF_XDP} {
		list = append(list, syscallAttempt("a socket: "+name, unix.SYS_SOCKET, family, unix.SOCK_STREAM, 0), syscallAttempt("a datagram socket: "+name, unix.SYS_SOCKET, family, unix.SOCK_DGRAM, 0))
	}
	return append(list, syscallAttempt("a pair of sockets: IPv4", unix.SYS_SOCKETPAIR, unix.AF_INET, unix.SOCK_STREAM, 0, addressOf(zeros)))
}

// floodAttempts returns attempts to exhaust a resource such as files or descriptors. The sandbox must stop each of
// them.
func floodAttempts() []escapeAttempt {
	return []escapeAttempt{
		{"a sparse file of 1 TB", func() error { return os.Truncate(createFile("/tmp/sparse"), 1<<40) }},
		{"fill /tmp", func() error {
			f, err := os.Create("/tmp/full")
			for n := 0; err == nil && n < 1<<30; n += len(zeros) {
				_, err = f.Write(zeros)
			}
			return err
		}},
		{"a million files", func() (err error) {
			for i := 0; err == nil && i < 1_000_000; i++ {
				var f *os.File
				if f, err = os.Create(fmt.Sprintf("/tmp/%d", i)); err == nil {
					err = f.Close()
				}
			}
			return err
		}},
		{"a million descriptors", func() (err error) {
			var fds []int
			for i := 0; err == nil && i < 1_000_000; i++ {
				var fd int
				if fd, err = unix.Dup(0); err == nil {
					fds = append(fds, fd)
				}
			}
			for _, fd := range fds {
				_ = unix.Close(fd)
			}
			return err
		}},
		{"a thousand threads", func() error {
			// This clone asks for a thread with flags that no thread can have. If clone is allowed for threads, it
			// starts none but still counts as a way out.
			runtime.LockOSThread()
			limit := unix.Rlimit{}
			if err := unix.Prlimit(0, unix.RLIMIT_NPROC, nil, &limit); err != nil {
				return err
			}
			if limit.Cur > 64 {
				return nil
			}
			return fmt.Errorf("at most %d", limit.Cur)
		}},
	}
}

func createFile(path string) string {
	_ = os.WriteFile(path, nil, 0o644)
	return path
}

// stdioStream combines the standard input and output of a guest into one stream.
type stdioStream struct {
	io.Reader
	io.Writer
}

// Close does nothing, because the guest ends the conversation by exiting.
func (stdioStream) Close() error { return nil }
