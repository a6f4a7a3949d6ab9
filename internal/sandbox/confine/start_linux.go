package confine

import (
	"bufio"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// innerUser and nobody are the ids of the user that a program runs as, inside and outside its own user namespace.
// Inside, this user owns no files. Outside, the engine's own user takes the place of nobody if the engine may not map
// nobody.
const (
	innerUser = 1000
	nobody    = 65534
)

// PlanUser returns the value of SandboxPlan.User for a child of this process: a user that owns no files, or 0 if the
// child keeps its original user.
func PlanUser(weak bool) int {
	switch {
	case !twoUsers():
		return 0
	case weak: // in the engine's own namespace
		return nobody
	}
	return innerUser
}

// ChildAttributes returns the attributes for starting a child that will call Enter. The child gets its own session
// and, unless weak is set, its own namespaces. The kernel kills the child when the thread that started it ends.
func ChildAttributes(weak bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if weak {
		return a
	}
	a.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	if twoUsers() {
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}, {ContainerID: innerUser, HostID: nobody, Size: 1}}
		a.GidMappings, a.GidMappingsEnableSetgroups = a.UidMappings, true
		return a
	}
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: innerUser, HostID: os.Geteuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: innerUser, HostID: os.Getegid(), Size: 1}}
	// A user other than root keeps only these capabilities over exec. They apply only to the namespaces and are
	// dropped before the program arrives.
	a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP}
	return a
}

// twoUsers reports whether this process may map two users into a namespace: its own user to set up the sandbox, and
// nobody to run the program.
var twoUsers = sync.OnceValue(func() bool {
	if os.Geteuid() != 0 || os.Getegid() != 0 {
		return false
	}
	for _, file := range []string{"/proc/self/uid_map", "/proc/self/gid_map"} {
		if !isIDMapped(file, nobody) {
			return false
		}
	}
	return true
})

// isIDMapped reports whether an id exists in the user namespace of this process.
func isIDMapped(file string, id int) bool {
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
