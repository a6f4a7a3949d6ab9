//go:build !linux

package process

import (
	"errors"
	"os"
	"syscall"

	"retort/internal/pipeline/isolate"
	"retort/internal/pipeline/isolate/interpreter"
	"retort/internal/pipeline/isolate/process/walls"
)

func join(*interpreter.Network, *walls.Plan) {}

func networked(*syscall.SysProcAttr) {}

func descriptorPair() (near, far *os.File, err error) { return nil, nil, errors.ErrUnsupported }

func closeFile(*os.File) {}

func (c *child) lead(isolate.Host) (shut func()) { return func() {} }
