package process

import (
	"os"
	"strings"
	"syscall"

	"retort/internal/sandbox/confine"
)

const hasWalls = true

// userOf returns the id of the user that a confined child changes to, or 0 if the child keeps the engine's user.
func userOf(weak bool) int { return confine.PlanUser(weak) }

func childAttributes(weak bool) *syscall.SysProcAttr { return confine.ChildAttributes(weak) }

// sameProgram returns the path from which to execute the file at path. If that file is this binary, it returns
// /proc/self/exe, which stays the same when an upgrade replaces the binary: host and guest must have the same
// version.
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

// findRemedy returns the reason why this machine does not let a child confine itself, and a hint with the command
// that fixes it.
func findRemedy(failure string) (cause, hint string) {
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
		return "user namespaces are turned off on this machine", "sudo sysctl -w user.max_user_namespaces=15000"
	case reading("/proc/sys/kernel/unprivileged_userns_clone") == "0" && os.Geteuid() != 0:
		return "only root may create user namespaces on this machine", "sudo sysctl -w kernel.unprivileged_userns_clone=1"
	case reading("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" && os.Geteuid() != 0:
		return "AppArmor denies user namespaces to programs without a profile",
			"sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
	case exists("/.dockerenv") || exists("/run/.containerenv"):
		return "this container may not create namespaces",
			"start the container with --security-opt seccomp=seccomp.json, which is Retort's file packaging/seccomp.json; " +
				"on a host with AppArmor also with --security-opt apparmor=unconfined"
	}
	return "the system refuses them", "allow user namespaces, or let settings allow a weaker sandbox: sandboxFallback: quickjs"
}
