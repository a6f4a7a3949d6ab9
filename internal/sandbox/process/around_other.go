//go:build !darwin

package process

import "os/exec"

// wrapCommand returns the command unchanged: on this system a child cannot be confined from outside.
func wrapCommand(command []string) *exec.Cmd { return exec.Command(command[0], command[1:]...) }
