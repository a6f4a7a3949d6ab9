package vm

import (
	"context"
	"os/exec"
)

// driver is a program that makes machines.
type driver interface {
	// version is part of what a kept machine depends on.
	version() (string, error)
	// boot is the command of a machine that starts from a kernel; keep has it write what
	// it is made of into the folder when it has come to rest.
	boot(i *image, dir string, p *ports) *exec.Cmd
	keep(ctx context.Context, p *ports, dir string) error
	// restore is the command of a copy of the machine in a folder; resume has it run.
	restore(dir string, p *ports) (*exec.Cmd, error)
	resume(p *ports) error
}
