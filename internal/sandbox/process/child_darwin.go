package process

import (
	"os/exec"
	"path/filepath"
	"syscall"
)

// childAttributes returns the process attributes that start a child in its own session.
func childAttributes(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// wrapCommand returns a command that runs the child under sandbox-exec, the sandbox of macOS.
func wrapCommand(command []string) *exec.Cmd {
	program := command[0]
	if real, err := filepath.EvalSymlinks(program); err == nil {
		program = real
	}
	return exec.Command("/usr/bin/sandbox-exec", append([]string{"-p", seatbeltProfile(program), program}, command[1:]...)...)
}

// strength and strengthWeak are the isolation strengths of this backend's sandboxes on macOS, where the operating
// system's sandbox-exec confines the process of a program. A program can require a minimum strength.
const (
	strength     = 40
	strengthWeak = 40
)

func walledBy(bool) []string {
	return []string{
		"a separate process, killed at the deadline", "no environment, no inherited descriptors",
		"the system's sandbox: no files except its own program, no network, no other process",
	}
}
