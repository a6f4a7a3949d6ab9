//go:build !darwin

package process

import "os/exec"

// around is how a child starts where nothing can be put around it from outside.
func around(command []string) *exec.Cmd { return exec.Command(command[0], command[1:]...) }
