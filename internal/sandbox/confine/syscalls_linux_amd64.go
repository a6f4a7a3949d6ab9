package confine

import "golang.org/x/sys/unix"

const architecture = unix.AUDIT_ARCH_X86_64

// olderBasic and the following variables list the system calls that only older architectures have. Newer architectures
// have only the calls that replace them.
var (
	olderBasic = []uintptr{unix.SYS_TIME, unix.SYS_EPOLL_WAIT, unix.SYS_POLL, unix.SYS_SELECT, unix.SYS_DUP2, unix.SYS_ARCH_PRCTL}
	olderFiles = []uintptr{
		unix.SYS_OPEN, unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_ACCESS, unix.SYS_READLINK, unix.SYS_GETDENTS,
		unix.SYS_MKDIR, unix.SYS_RMDIR, unix.SYS_UNLINK, unix.SYS_RENAME, unix.SYS_CHMOD, unix.SYS_PIPE,
		unix.SYS_EPOLL_CREATE, unix.SYS_EVENTFD, unix.SYS_ALARM,
	}
	olderForbidden = []uintptr{unix.SYS_FORK, unix.SYS_VFORK}
	// olderChmod lists the system calls that set a file's mode. The mode is their second argument.
	olderChmod = []uintptr{unix.SYS_CHMOD, unix.SYS_MKDIR}
	olderOpen  = []uintptr{unix.SYS_OPEN}
)

// olderNames maps the system calls in this file to their names.
var olderNames = map[uintptr]string{
	unix.SYS_ACCESS:       "access",
	unix.SYS_ALARM:        "alarm",
	unix.SYS_ARCH_PRCTL:   "arch_prctl",
	unix.SYS_CHMOD:        "chmod",
	unix.SYS_DUP2:         "dup2",
	unix.SYS_EPOLL_CREATE: "epoll_create",
	unix.SYS_EPOLL_WAIT:   "epoll_wait",
	unix.SYS_EVENTFD:      "eventfd",
	unix.SYS_FORK:         "fork",
	unix.SYS_GETDENTS:     "getdents",
	unix.SYS_LSTAT:        "lstat",
	unix.SYS_MKDIR:        "mkdir",
	unix.SYS_OPEN:         "open",
	unix.SYS_PIPE:         "pipe",
	unix.SYS_POLL:         "poll",
	unix.SYS_READLINK:     "readlink",
	unix.SYS_RENAME:       "rename",
	unix.SYS_RMDIR:        "rmdir",
	unix.SYS_SELECT:       "select",
	unix.SYS_STAT:         "stat",
	unix.SYS_TIME:         "time",
	unix.SYS_UNLINK:       "unlink",
	unix.SYS_VFORK:        "vfork",
}
