# Tries every way out of the sandbox that a Python program has, by way of the
# library and by way of raw system calls. Each line says whether it is closed.
import builtins, ctypes, os, signal, socket, subprocess, sys, threading

libc = ctypes.CDLL(None, use_errno=True)


def attempt(name, do):
    try:
        got = do()
    except BaseException as error:
        print(f"closed {name}: {type(error).__name__}: {error}".replace("\n", " "))
    else:
        print(f"OPEN {name}: {str(got)[:80]!r}".replace("\n", " "))


def call(number, *arguments):
    arguments = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


# The guest virtualises open; these are the ways below it.
def c_read(path):
    fd = libc.open(path.encode(), os.O_NONBLOCK)  # it may be a pipe of its own
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    buffer = ctypes.create_string_buffer(64)
    if libc.read(fd, buffer, 64) <= 0:
        raise OSError("nothing to read")
    return buffer.raw


def c_write(path):
    fd = libc.open(path.encode(), os.O_WRONLY | os.O_CREAT, 0o666)
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return fd


READ = [SECRET, "/etc/passwd", "/etc/shadow", "/proc/1/environ", "/proc/self/environ", "/proc/self/maps", "/proc/version", "/proc/meminfo", "/proc/self/root" + SECRET,
        f"/proc/{PARENT}/environ", f"/proc/{PARENT}/maps", f"/proc/{PARENT}/mem", "/proc/1/mem", "/dev/mem", "/dev/kmsg", "/sys/kernel/notes", "/etc/hostname", "../../../../.." + SECRET, "/proc/self/fd/3"]
for path in READ:
    attempt("read " + path, lambda: c_read(path))
    attempt("open " + path, lambda: open(path, "rb").read(10) or 1 / 0)
for path in ["/x", "/usr/x", "/usr/lib/retort/main.py", "/dev/x", "/etc/passwd", SECRET, "/proc/sysrq-trigger", "/proc/self/uid_map"]:
    attempt("write " + path, lambda: c_write(path))
for path in ["/root", "/home", "/var", os.path.dirname(SECRET)]:
    attempt("list " + path, lambda: os.listdir(path)[0])

attempt("fork", os.fork)
attempt("fork a terminal", lambda: os.forkpty())
attempt("posix_spawn", lambda: os.posix_spawn(sys.executable, ["python3", "-c", ""], {}))
attempt("subprocess", lambda: subprocess.run([sys.executable, "-c", "print(1)"]))
attempt("os.system", lambda: os.system("true") and 1 / 0)
attempt("execve", lambda: os.execv(sys.executable, ["python3", "-c", "print('OPEN execve')"]))
attempt("popen", lambda: os.popen("id").read() or 1 / 0)
attempt("kill the parent", lambda: os.kill(PARENT, 0))
attempt("kill everybody", lambda: os.kill(-1, 0))
attempt("kill init", lambda: os.kill(1, 0))
attempt("setuid", lambda: os.setuid(0))
attempt("setgroups", lambda: os.setgroups([0]))
attempt("chroot", lambda: os.chroot("/"))
attempt("make a device", lambda: os.mknod("/tmp/d", 0o20666, os.makedev(1, 1)))
attempt("a symbolic link", lambda: libc.symlink(SECRET.encode(), b"/tmp/l") and 1 / 0)
attempt("set the clock", lambda: __import__("time").clock_settime(0, 0))
attempt("sethostname", lambda: socket.sethostname("x"))
attempt("unshare", lambda: call(272, 0x10000000))
attempt("clone a user namespace", lambda: call(56, 0x10000000 | 17, 0, 0, 0, 0))
attempt("clone3", lambda: call(435, ctypes.create_string_buffer(88), 88))
attempt("setns", lambda: call(308, 0, 0))
attempt("mount", lambda: call(165, b"tmpfs", b"/tmp", b"tmpfs", 0, 0))
attempt("ptrace", lambda: call(101, 16, PARENT, 0, 0))
attempt("process_vm_readv", lambda: call(310, PARENT, 0, 0, 0, 0, 0))
attempt("bpf", lambda: call(321, 0, ctypes.create_string_buffer(128), 128))
attempt("io_uring", lambda: call(425, 1, ctypes.create_string_buffer(256)))
attempt("keyctl", lambda: call(250, 0, 0, 0))
attempt("userfaultfd", lambda: call(323, 1))
attempt("perf_event_open", lambda: call(298, ctypes.create_string_buffer(128), 0, -1, -1, 0))
attempt("init_module", lambda: call(175, 0, 0, 0))
attempt("open_by_handle_at", lambda: call(304, 0, ctypes.create_string_buffer(128), 0))
attempt("pidfd_open", lambda: call(434, 1, 0))
attempt("x32", lambda: call(0x40000000 | 39))
attempt("a filter of its own", lambda: call(317, 1, 0, ctypes.create_string_buffer(64)))
attempt("execveat", lambda: call(322, 0, b"", 0, 0, 0x1000))
for name in ["AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK", "AF_PACKET", "AF_VSOCK", "AF_ALG", "AF_BLUETOOTH"]:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        attempt(f"socket {name} {kind.name}", lambda: socket.socket(getattr(socket, name), kind))
attempt("resolve a name", lambda: socket.getaddrinfo("example.com", 80))
attempt("http", lambda: __import__("urllib.request").request.urlopen("http://127.0.0.1:1/"))


def threads():
    started = []
    gate = threading.Event()
    try:
        for _ in range(1000):
            t = threading.Thread(target=gate.wait, daemon=True)
            t.start()
            started.append(t)
    finally:
        gate.set()
    return len(started)


def fill():
    fd = c_write("/tmp/full")
    while True:
        if libc.write(fd, b"x" * 65536, 65536) < 65536:
            raise OSError("full")


attempt("a thousand threads", threads)
attempt("a sparse file of 1 TB", lambda: libc.ftruncate(c_write("/tmp/sparse"), ctypes.c_long(1 << 40)) and 1 / 0)
attempt("fill /tmp", fill)
