//go:build !linux

package process

import (
	"errors"
	"os"
	"syscall"

	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/interpreter"
)

func addNetwork(*interpreter.ProxyNetwork, *confine.SandboxPlan) {}

func allowLoopback(*syscall.SysProcAttr) {}

func descriptorPair() (near, far *os.File, err error) { return nil, nil, errors.ErrUnsupported }

func closeFile(*os.File) {}
