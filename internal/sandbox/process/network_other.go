//go:build !linux

package process

import (
	"errors"
	"os"
	"syscall"

	"retort/internal/sandbox"
	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/interpreter"
)

func join(*interpreter.Network, *confine.Plan) {}

func networked(*syscall.SysProcAttr) {}

func descriptorPair() (near, far *os.File, err error) { return nil, nil, errors.ErrUnsupported }

func closeFile(*os.File) {}

func (c *child) lead(sandbox.Host) (shut func()) { return func() {} }
