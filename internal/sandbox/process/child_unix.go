//go:build unix && !linux && !darwin

package process

import "syscall"

// attributes returns the attributes that put a child into a session of its own.
func attributes(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
