package process

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

const hasWalls = true

// Who a program is: a user of its own namespace who owns nothing. Outside it is
// nobody, where the engine may choose, and else the engine's own user.
const (
	inside = 1000
	nobody = 65534
)

// userOf is the user that a child changes to behind its walls; 0 if it stays who
// it is from the beginning.
func userOf(weak bool) int {
	switch {
	case !twoUsers():
		return 0
	case weak: // in the engine's own namespace
		return nobody
	}
	return inside
}

// twoUsers says that the engine may map two users into a namespace: itself, to
// build the walls, and nobody, to live behind them.
var twoUsers = sync.OnceValue(func() bool {
	if os.Geteuid() != 0 || os.Getegid() != 0 {
		return false
	}
	for _, file := range []string{"/proc/self/uid_map", "/proc/self/gid_map"} {
		if !mapped(file, nobody) {
			return false
		}
	}
	return true
})

// mapped says whether an id exists in the user namespace of this process.
func mapped(file string, id int) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var first, outside, count int
		if n, _ := fmt.Sscan(lines.Text(), &first, &outside, &count); n == 3 && id >= first && id-first < count {
			return true
		}
	}
	return false
}

// attributes put a child into a session and namespaces of its own and have the
// kernel kill it when the thread that started it ends.
func attributes(weak bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if weak {
		return a
	}
	a.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	if twoUsers() {
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}, {ContainerID: inside, HostID: nobody, Size: 1}}
		a.GidMappings, a.GidMappingsEnableSetgroups = a.UidMappings, true
		return a
	}
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: inside, HostID: os.Geteuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: inside, HostID: os.Getegid(), Size: 1}}
	// A user who is not root keeps no capability over exec but these. They are
	// for the namespaces alone, and are given up before the program comes.
	a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP}
	return a
}

// sameProgram is the path to start for path. For that of this very program it is
// what this process runs, also after an upgrade has put another in its place:
// host and guest must be of one version.
func sameProgram(path string) string {
	const running = "/proc/self/exe"
	own, err := os.Executable()
	if err != nil || path != own {
		return path
	}
	if _, err := os.Stat(running); err != nil {
		return path
	}
	return running
}

// remedy says why this machine refuses the walls, and the command that mends it.
func remedy(failure string) (cause, hint string) {
	reading := func(file string) string {
		data, _ := os.ReadFile(file)
		return strings.TrimSpace(string(data))
	}
	exists := func(file string) bool {
		_, err := os.Stat(file)
		return err == nil
	}
	switch {
	case strings.Contains(failure, syscall.ENOSYS.Error()):
		return "the kernel is too old: it needs to be Linux 5.12 or later", "update the kernel"
	case reading("/proc/sys/user/max_user_namespaces") == "0":
		return "user namespaces are switched off", "sudo sysctl -w user.max_user_namespaces=15000"
	case reading("/proc/sys/kernel/unprivileged_userns_clone") == "0" && os.Geteuid() != 0:
		return "user namespaces are for root only here", "sudo sysctl -w kernel.unprivileged_userns_clone=1"
	case reading("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" && os.Geteuid() != 0:
		return "AppArmor keeps user namespaces from programs that it does not know", "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
	case exists("/.dockerenv") || exists("/run/.containerenv"):
		return "this container may not make namespaces", "start the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined"
	}
	return "the system refuses them", "allow user namespaces, or let settings allow a weaker sandbox: sandboxFallback: quickjs"
}
