package process

import (
	"os"
	"strings"
	"syscall"

	"retort/internal/sandbox/confine"
)

const hasWalls = true

// userOf is the user that a child changes to behind its walls; 0 if it stays who
// it is from the beginning.
func userOf(weak bool) int { return confine.User(weak) }

func attributes(weak bool) *syscall.SysProcAttr { return confine.Attributes(weak) }

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
