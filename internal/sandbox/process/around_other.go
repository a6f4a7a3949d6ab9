//go:build !darwin

package process

import "os/exec"

// wrapCommand returns the command unchanged: this system cannot confine a child from outside.
func wrapCommand(command []string) *exec.Cmd { return exec.Command(command[0], command[1:]...) }
