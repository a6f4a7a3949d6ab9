//go:build unix && !linux && !darwin

package process

import "syscall"

// childAttributes returns the attributes that put a child into a session of its own.
func childAttributes(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
