//go:build unix && !linux && !darwin

package process

import "syscall"

// attributes put a child into a session of its own.
func attributes(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
